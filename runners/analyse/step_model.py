"""A model of a decode step, fitted to measured cells: it says what a step costs that nobody measured.

    plain step        t0(B, L, X) = a + b B + c B L + p X
    speculative step  tK(B, L, X) = t0(B, L, X) + s + q X + K (d + e B + f B L)
    speed-up          AL t0 / tK

B: requests that decode at once; L: mean context in tokens; X: prompt tokens of other requests read in the same step;
K: drafts a step; AL: tokens per step. `Coefficients` has a name and a unit for each letter. All are at least 0, and d
and e are each drafter's own: a larger head costs more. Drafting a token and verifying it are one coefficient (e),
because timing cannot separate them. Fitted by least squares on relative errors, so that a fast step weighs as much
as a slow one.

The fit reads B and X from each cell's requests. A forecast has no requests yet: it simulates the load
(load_simulation.simulate) with the fitted coefficients. Break-even is taken at X = 0: a prompt token costs both sides
the same, but for q. Speed-ups are forecast with this model and a plain baseline together (forecast_models.py).
"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.optimize import nnls

from runners.analyse import load_simulation
from runners.analyse.inference import LEVEL
from runners.analyse.load_simulation import SEED, DecodeLoad, LoadShape
from runners.core.errors import UserError

# The letters of the formula -> fields of Coefficients. This order is the one of a coefficient vector, of the chapter's
# table and of the field `terms` of a forecasts.csv, which is stored data: a new coefficient goes behind the others.
SHARED = {
    "a": "fixed",
    "b": "per_request",
    "c": "attention",
    "p": "prompt",
    "q": "draft_prompt",
    "f": "draft_attention",
    "s": "speculative",
}
OF_DRAFTER = {"d": "draft_pass", "e": "draft_token"}
SYMBOLS = SHARED | OF_DRAFTER

RESAMPLES = 200
# c and f are fitted where the longest context is this many times the shortest: below it they would fit noise. Without
# speculative steps at two contexts f took what belongs to e, and the forecast of a long context was 67% off.
CONTEXT_SPREAD = 1.3


@dataclass(frozen=True)
class Coefficients:
    """What a decode step of one engine costs, in milliseconds, each at least 0."""

    drafters: tuple[str, ...]
    fixed: float  # a: ms a step, whatever it does (weights read, launches)
    per_request: float  # b: ms a request in the batch, which is one token of it
    attention: float  # c: ms a request and token of its context
    prompt: float  # p: ms a prompt token that the target reads in the step
    draft_prompt: float  # q: ms a prompt token more, for the drafter to read
    draft_attention: float  # f: ms a draft, request and token of its context
    speculative: float  # s: ms a speculative step more, whatever K; in d where no drafter was measured at two K
    draft_pass: np.ndarray  # d [drafters]: ms a draft, whatever the batch
    draft_token: np.ndarray  # e [drafters]: ms a draft and request, drafted and verified

    @classmethod
    def from_vector(cls, vector: np.ndarray, drafters: Collection[str]) -> "Coefficients":
        """vector: the values of SHARED, then those of OF_DRAFTER of each drafter."""
        shared = dict(zip(SHARED.values(), map(float, vector[: len(SHARED)]), strict=True))
        own = np.reshape(vector[len(SHARED) :], (len(drafters), len(OF_DRAFTER)))
        return cls(tuple(drafters), **shared, draft_pass=own[:, 0], draft_token=own[:, 1])

    def vector(self) -> np.ndarray:
        """The inverse of `from_vector`."""
        shared = [getattr(self, name) for name in SHARED.values()]
        return np.concatenate([shared, np.stack([self.draft_pass, self.draft_token], axis=1).ravel()])

    def of(self, drafter: str) -> dict[str, float]:
        """Symbol of the formula -> its value for one drafter, in the order of SYMBOLS."""
        at = self.drafters.index(drafter)
        shared = {symbol: getattr(self, name) for symbol, name in SHARED.items()}
        return shared | {symbol: float(getattr(self, name)[at]) for symbol, name in OF_DRAFTER.items()}

    def step_ms(self, k, batch, context, drafter, prefill=0.0) -> np.ndarray:
        """Milliseconds of a step; arrays broadcast. drafter: a name, or one a row (any name where k is 0)."""
        at = self._index(drafter)
        k, batch, context, prefill = (np.asarray(v, float) for v in (k, batch, context, prefill))
        return self._formula(k, batch, context, prefill, self.draft_pass[at], self.draft_token[at])

    def _formula(self, k, batch, context, prefill, draft_pass, draft_token):
        """t0, or tK where k > 0: floats, or arrays that broadcast."""
        plain = self.fixed + self.per_request * batch + self.attention * batch * context + self.prompt * prefill
        drafts = k * (draft_pass + draft_token * batch + self.draft_attention * batch * context)
        return plain + (drafts + (self.speculative + self.draft_prompt * prefill) * (k > 0))

    def _index(self, drafter):
        """Where a drafter's values are; one a row for an array of names. 0 for a plain row's, where k = 0 hides it."""
        if isinstance(drafter, str):
            return self.drafters.index(drafter) if drafter in self.drafters else 0
        return np.array([self._index(name) for name in drafter])

    def break_even(self, k, batch, context, drafter) -> np.ndarray:
        """The accept length at which the speed-up is 1: the step-cost ratio r, with no prompt read meanwhile."""
        return self.step_ms(k, batch, context, drafter) / self.step_ms(0, batch, context, drafter)

    def simulate(self, k: float, drafter: str, context: float, load: LoadShape, accept_length: float) -> DecodeLoad:
        """What a decoding request shares its steps with under this load, by the model's own steps."""
        at = self._index(drafter)
        draft_pass, draft_token = float(self.draft_pass[at]), float(self.draft_token[at])

        def step_ms(batch: float, prefill: float) -> float:
            # A step in which nobody decodes drafts nothing.
            return self._formula(k if batch else 0, batch, context, prefill, draft_pass, draft_token)

        return load_simulation.simulate(step_ms, load, accept_length, k=int(k))


@dataclass(frozen=True)
class Model:
    """The fitted coefficients, and `refits` of resampled points: how well these points determine them."""

    coefficients: Coefficients
    refits: list[Coefficients]

    @property
    def drafters(self) -> tuple[str, ...]:
        return self.coefficients.drafters

    def break_even(self, k, batch, context, drafter) -> np.ndarray:
        """Coefficients.break_even of the fit."""
        return self.coefficients.break_even(k, batch, context, drafter)

    def break_even_interval(self, k, batch, context, drafter, level: float = LEVEL) -> np.ndarray:
        """(low, high) over the refits."""
        values = [refit.break_even(k, batch, context, drafter) for refit in self.refits]
        tail = (1 - level) / 2
        return np.quantile(values, [tail, 1 - tail], axis=0)


def fit(rows: pd.DataFrame, seed: int = SEED, resamples: int = RESAMPLES) -> Model:
    """Fit the points of one engine (step_points.points). resamples: how many refits the model holds.

    UserError when they hold no plain or no speculative step, or too few of them. A coefficient that these points cannot
    determine is 0 (`_unidentified`). A drafter of one point alone is left out.
    """
    rows = usable(rows)
    if (rows.k == 0).sum() < 2 or (rows.k > 0).sum() < 2:
        raise UserError("The model of a step needs at least two plain and two speculative points; measure more cells.")
    drafters = sorted(set(rows.drafter[rows.k > 0]))
    unidentified = _unidentified(rows)
    free = np.array([symbol not in unidentified for symbol in [*SHARED, *list(OF_DRAFTER) * len(drafters)]])
    terms = _terms(rows, drafters)[:, free]

    def solved(step_ms: np.ndarray) -> Coefficients:
        vector = np.zeros(len(free))
        vector[free] = nnls(terms / step_ms[:, None], np.ones(len(step_ms)))[0]
        return Coefficients.from_vector(vector, drafters)

    measured_ms = rows.step_ms.to_numpy(float)
    best = solved(measured_ms)
    fitted_ms = best.step_ms(rows.k, rows.batch, rows.context, rows.drafter, rows.prefill)
    # The fit takes its share of the scatter: what is left is too small by the coefficients spent on it.
    n = len(rows)
    spent = min(np.count_nonzero(best.vector()), n - 1)
    residuals = np.log(measured_ms / fitted_ms) * np.sqrt(n / (n - spent))
    rng = np.random.default_rng(seed)
    # Residuals are resampled, not points: a point left out may be the only one of its kind.
    refits = [solved(fitted_ms * np.exp(rng.choice(residuals, n))) for _ in range(resamples)]
    return Model(best, refits)


def _unidentified(rows: pd.DataFrame) -> set[str]:
    """Symbols whose share of a step these points cannot separate from another's.

    c where all contexts are alike, f where those of the speculative points are, s where no drafter has two K.
    """
    symbols = set()
    for symbol, own in (("c", rows), ("f", rows[rows.k > 0])):
        if own.context.max() <= CONTEXT_SPREAD * own.context.min():
            symbols.add(symbol)
    if not (rows[rows.k > 0].groupby("drafter").k.nunique() > 1).any():
        symbols.add("s")
    return symbols


def _terms(rows: pd.DataFrame, drafters: list[str]) -> np.ndarray:
    """[points, coefficients]: what each coefficient is multiplied by. The formula is linear in them, so that is the
    step with this one coefficient 1 and all others 0: the formula is written once.
    """
    units = np.eye(len(SHARED) + len(OF_DRAFTER) * len(drafters))
    at = [rows[c].to_numpy() for c in ("k", "batch", "context", "drafter", "prefill")]
    return np.stack([Coefficients.from_vector(unit, drafters).step_ms(*at) for unit in units], axis=1)


def usable(rows: pd.DataFrame) -> pd.DataFrame:
    """Points without those of a drafter that has only one: it cannot separate d from e."""
    counts = rows[rows.k > 0].groupby("drafter").size()
    return rows[(rows.k == 0) | rows.drafter.isin(counts[counts > 1].index)]


Models = dict[str, tuple[Model, pd.DataFrame]]  # engine -> (its model, its points)


def models(measured: dict[str, pd.DataFrame]) -> Models:
    """engine -> (model of all its points, the points); engines with too few points are left out. measured: their
    step_points.points.
    """
    fitted = {}
    for engine, rows in measured.items():
        try:
            fitted[engine] = (fit(rows), usable(rows))
        except UserError:
            continue
    return fitted


def step_cost(model: Model, row) -> float:
    """r of one speculative point, each side's steps shared as its own load fills them; NaN for an unknown drafter.

    row: k, drafter, context, tokens_per_step and LOAD (step_points); nothing measured at the point itself.
    """
    if row.drafter not in model.drafters:
        return float("nan")
    requests = None if pd.isna(row.requests) else round(row.requests)
    load = LoadShape(requests, round(row.at_once), row.prompt, row.output)
    coefficients = model.coefficients
    spec = coefficients.simulate(row.k, row.drafter, row.context, load, row.tokens_per_step)
    plain = coefficients.simulate(0, row.drafter, row.context, load, 1.0)
    own = coefficients.step_ms(row.k, spec.batch, row.context, row.drafter, spec.prefill)
    return float(own / coefficients.step_ms(0, plain.batch, row.context, row.drafter, plain.prefill))
