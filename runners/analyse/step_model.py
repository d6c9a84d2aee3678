"""One small model of a decode step, fitted to measured cells: it forecasts the speed-up of cells nobody measured.

    plain step        t0(B, L, X) = a + b B + c B L + p X
    speculative step  tK(B, L, X) = t0(B, L, X) + s + q X + K (d + e B + f B L)
    speed-up          AL t0 / tK

B: requests decoding at once; L: mean context in tokens; X: prompt tokens of other requests read in the same step;
K: drafted tokens; AL: tokens per step. a: what a step costs whatever it does (weights read, launches); b: a token more
in the batch; c: its attention; p, q: a prompt token for the target and for the drafter; s: what a step costs more for
being speculative, whatever K (told only where one drafter has several K, else it is in d); d: a pass of the drafter
whatever it does; e: one drafted token of one request, drafted and verified (the two cannot be told apart by timing);
f: its attention over the context. d and e are each drafter's own: a larger head costs more. All are at least 0 and in
milliseconds. Fitted by least squares on relative errors, so that a fast step weighs as much as a slow one.

The fit reads B and X from each cell's requests; a forecast has none yet and plays the load (closed_loop.play) with the
fitted coefficients. Break-even is told at X = 0: prompts cost both sides the same a token, so only q would move it.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.optimize import nnls

from runners.analyse import acceptance, intervals, load_simulation, results, step_cost
from runners.core.errors import UserError
from runners.profiles.schema import CHAINED

NAMES = ("a", "b", "c", "p", "q", "f", "s")  # shared by all of an engine
OWN = ("d", "e")  # then these, of each drafter
SHARED = len(NAMES)
POINT = ["configuration", "engine", "method", "k", "workload", "concurrency"]
LOAD = ["requests", "at_once", "prompt", "output"]  # closed_loop.Load; at_once: the concurrency, or the lower cap
COLUMNS = [*POINT, "drafter", *LOAD, "context", "batch", "prefill", "step_ms", "tokens_per_step", "scatter"]
RESAMPLES = 200


@dataclass(frozen=True)
class Model:
    """Coefficients in milliseconds: NAMES, then OWN of each of `drafters`; `draws` [n, 7 + 2 drafters] are refits
    of resampled points, for intervals; `residuals` [points]: log of measured over fitted.
    """

    drafters: list[str]
    coefficients: np.ndarray
    draws: np.ndarray
    residuals: np.ndarray

    def of(self, drafter: str, x: np.ndarray | None = None) -> np.ndarray:
        """NAMES and OWN of one drafter, from the fit or from one of the draws."""
        x = self.coefficients if x is None else x
        at = SHARED + len(OWN) * self.drafters.index(drafter)
        return np.concatenate([x[:SHARED], x[at : at + len(OWN)]])

    def step_ms(self, k, batch, context, drafter, x: np.ndarray | None = None, prefill=0.0) -> np.ndarray:
        """Milliseconds of a step; arrays broadcast. drafter: a name or one a row (any name where k is 0)."""
        return _step(self.coefficients if x is None else x, k, batch, context, _places(drafter, self.drafters), prefill)

    def break_even(self, k, batch, context, drafter, x: np.ndarray | None = None) -> np.ndarray:
        """The accept length at which the speed-up is 1: the step-cost ratio r, with no prompt read meanwhile."""
        return self.step_ms(k, batch, context, drafter, x) / self.step_ms(0, batch, context, drafter, x)

    def break_even_interval(self, k, batch, context, drafter, level: float = intervals.LEVEL):
        """(low, high) over the refits."""
        values = [self.break_even(k, batch, context, drafter, x) for x in self.draws]
        tail = (1 - level) / 2
        return np.quantile(values, [tail, 1 - tail], axis=0)

    def plays(
        self, k: float, drafter: str, context: float, load: load_simulation.LoadShape, length: float
    ) -> load_simulation.Seen:
        """What a decoding request sees under this load, by the model's own steps."""
        place = _places(drafter, self.drafters)

        def step_ms(batch: float, prefill: float) -> float:
            return float(_step(self.coefficients, k if batch else 0, batch, context, place, prefill))

        return load_simulation.play(step_ms, load, length, k=int(k))


def _places(drafter, known: list[str]) -> np.ndarray:
    names = np.atleast_1d(np.asarray(drafter, dtype=object))
    places = np.array([known.index(n) if n in known else 0 for n in names])
    return places if np.ndim(drafter) else places[0]


def _step(x: np.ndarray, k, batch, context, place, prefill=0.0) -> np.ndarray:
    a, b, c, p, q, f, s = x[:SHARED]
    d, e = (x[SHARED + i :: len(OWN)][place] for i in range(len(OWN)))
    k, batch, context, prefill = (np.asarray(v, float) for v in (k, batch, context, prefill))
    drafts = k * (d + e * batch + f * batch * context) + (s + q * prefill) * (k > 0)
    return a + b * batch + c * batch * context + p * prefill + drafts


def points(cells: pd.DataFrame, requests: pd.DataFrame, groups: dict[str, str] | None = None) -> pd.DataFrame:
    """One row a point of one engine's plain and of its chained configurations (EAGLE-3, draft model): COLUMNS.

    groups: configuration -> the drafter whose cost it has (payoff.drafters); its own name where none is given.

    step_ms: decode time of a step, TPOT x tokens per step, over the repeats that count; scatter: the standard error of
    its logarithm (NaN with one repeat). context: the prompt and half the answer, in tokens: what a step attends to on
    average. batch, prefill: what its decoding requests saw (closed_loop.measured). n-gram configurations are left out:
    their steps are of two kinds (drafted or not).
    """
    good = results.ok(cells)
    good = good[good.method.isin(("none", *CHAINED)) & good.context_tokens.notna()]
    if good.empty:
        return pd.DataFrame(columns=COLUMNS)
    good = good.assign(tpot=step_cost.decode_tpot(good, requests))
    lengths = [1.0 if r.method == "none" else acceptance.tokens_per_step(r) for _, r in good.iterrows()]
    good = good.assign(al=lengths, k=good.k.fillna(0)).dropna(subset=["tpot", "al"])
    seen = _seen(good, requests)
    good = good.assign(batch=[s.batch for s in seen], prefill=[s.prefill for s in seen])
    rows = []
    for names, group in good.groupby(POINT, sort=False):
        at_once = group.concurrency.astype(float).where(group.capped_at.isna(), group.capped_at)
        row = dict(zip(POINT, names, strict=True))
        row["drafter"] = (groups or {}).get(row["configuration"], row["configuration"]) if row["k"] else ""
        row |= {"requests": group.requests.mean(), "at_once": at_once.mean(), "prompt": group.context_tokens.mean()}
        row |= {"output": group.output_tokens_per_request.mean()}
        row |= {"context": row["prompt"] + row["output"] / 2, "batch": group.batch.mean()}
        # Geometric means: a ratio of two points is then the mean of their repeats' ratios.
        logs = np.log(group.tpot * group.al)
        row |= {"step_ms": float(np.exp(logs.mean())), "tokens_per_step": group.al.mean()}
        row |= {"prefill": group.prefill.mean(), "scatter": float(logs.std() / np.sqrt(len(logs)))}
        rows.append(row)
    return pd.DataFrame(rows, columns=COLUMNS)


def _seen(cells: pd.DataFrame, requests: pd.DataFrame) -> list[load_simulation.Seen]:
    """closed_loop.measured of each cell; the concurrency (or the cap) alone where its requests are not at hand."""
    good = requests[requests.error.isna()] if "error" in requests else requests
    columns = ["first_token_s", "last_token_s", "prompt_tokens", "output_tokens"]
    known = all(c in good for c in columns)
    by_key = {key: part[columns].dropna() for key, part in good.groupby("key")} if known else {}
    found = []
    for r in cells.itertuples():
        part = by_key.get(r.key)
        if part is None or part.empty:
            found.append(load_simulation.Seen(float(r.concurrency if pd.isna(r.capped_at) else r.capped_at), 0.0))
        else:
            found.append(load_simulation.measured(*(part[c].to_numpy(float) for c in columns), r.al))
    return found


def fit(rows: pd.DataFrame, seed: int = intervals.SEED) -> Model:
    """Fit the points of one engine. UserError when they hold no plain or no speculative step, or too few of them.

    Where all points have one context, c and f cannot be told and are 0, and s where no drafter has two K. A drafter of
    one point alone is left out.
    """
    rows = usable(rows)
    if (rows.k == 0).sum() < 2 or (rows.k > 0).sum() < 2:
        raise UserError("The model of a step needs at least two plain and two speculative points; measure more cells.")
    drafters = sorted(set(rows.drafter[rows.k > 0]))
    free = np.ones(SHARED + len(OWN) * len(drafters), dtype=bool)
    free[[NAMES.index("c"), NAMES.index("f")]] = rows.context.max() > 1.3 * rows.context.min()
    free[NAMES.index("s")] = (rows[rows.k > 0].groupby("drafter").k.nunique() > 1).any()
    places = _places(rows.drafter.to_numpy(), drafters)
    terms = _terms(rows, places, len(free))[:, free]

    def solved(step_ms: np.ndarray) -> np.ndarray:
        whole = np.zeros(len(free))
        whole[free] = nnls(terms / step_ms[:, None], np.ones(len(step_ms)))[0]
        return whole

    y = rows.step_ms.to_numpy(float)
    found = solved(y)
    fitted = _step(found, rows.k, rows.batch, rows.context, places, rows.prefill)
    # The fit takes its share of the scatter: what is left is too small by the coefficients spent on it.
    spent = min(np.count_nonzero(found), len(y) - 1)
    residual = np.log(y / fitted) * np.sqrt(len(y) / (len(y) - spent))
    rng = np.random.default_rng(seed)
    # Residuals are resampled, not points: a point left out may be the only one of its kind.
    draws = [solved(fitted * np.exp(rng.choice(residual, len(rows)))) for _ in range(RESAMPLES)]
    return Model(drafters, found, np.array(draws), residual)


def _terms(rows: pd.DataFrame, places: np.ndarray, n: int) -> np.ndarray:
    """[points, coefficients]: what each coefficient is multiplied by, read off the step itself, which is linear."""
    unit = np.eye(n)
    at = (rows.k.to_numpy(), rows.batch.to_numpy(), rows.context.to_numpy(), places, rows.prefill.to_numpy())
    return np.stack([np.broadcast_to(_step(x, *at), len(rows)) for x in unit], axis=1)


def usable(rows: pd.DataFrame) -> pd.DataFrame:
    """Points without those of a drafter that has one only: its d and e cannot both be told."""
    counts = rows[rows.k > 0].groupby("drafter").size()
    return rows[(rows.k == 0) | rows.drafter.isin(counts[counts > 1].index)]


def forecasts(model: Model, rows: pd.DataFrame) -> pd.DataFrame:
    """A speed-up for each speculative point: POINT, speed_up with _lo, _hi, break_even. Needs LOAD, context, drafter
    and tokens_per_step, nothing measured at the point itself. The interval is for what would be measured: it holds the
    refits and, for either side, how far measured points scatter around the fit.
    """
    spec = rows[(rows.k > 0) & rows.drafter.isin(model.drafters)]
    columns = [*POINT, "speed_up", "speed_up_lo", "speed_up_hi", "break_even"]
    if spec.empty:
        return pd.DataFrame(columns=columns)
    made = [_forecast(model, row) for row in spec.itertuples()]
    return spec[POINT].assign(**dict(zip(columns[len(POINT) :], zip(*made, strict=True), strict=True)))


def _forecast(model: Model, row) -> tuple[float, float, float, float]:
    """(speed-up, low, high, r): both sides' steps as the load fills them, tokens per step over their quotient."""
    load = load_simulation.LoadShape(round(row.requests), round(row.at_once), row.prompt, row.output)
    spec = model.plays(row.k, row.drafter, row.context, load, row.tokens_per_step)
    plain = model.plays(0, row.drafter, row.context, load, 1.0)

    def ratio(x: np.ndarray | None) -> float:
        own = model.step_ms(row.k, spec.batch, row.context, row.drafter, x, spec.prefill)
        return float(own / model.step_ms(0, plain.batch, row.context, row.drafter, x, plain.prefill))

    rng = np.random.default_rng(intervals.SEED)
    scatter = [rng.choice(model.residuals, len(model.draws)) for _ in range(2)]
    r, draws = ratio(None), np.array([ratio(x) for x in model.draws]) * np.exp(scatter[0] - scatter[1])
    tail = (1 - intervals.LEVEL) / 2
    low, high = np.quantile(draws, [tail, 1 - tail])
    return row.tokens_per_step / r, row.tokens_per_step / high, row.tokens_per_step / low, r


def scored(made: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Forecasts beside what was then measured: POINT, forecast, measured, measured_length, error (relative), within its
    interval; noise: the standard error of the measured speed-up, relative (NaN with one repeat).
    """
    plain = rows[rows.k == 0].drop_duplicates(["workload", "concurrency"]).set_index(["workload", "concurrency"])
    spec = rows[rows.k > 0]
    base = plain.reindex(list(zip(spec.workload, spec.concurrency, strict=True)))
    spec = spec.assign(
        measured=spec.tokens_per_step.to_numpy() * base.step_ms.to_numpy() / spec.step_ms.to_numpy(),
        measured_length=spec.tokens_per_step,
        noise=np.hypot(spec.scatter.to_numpy(), base.scatter.to_numpy()),
    )
    both = made.merge(spec[[*POINT, "measured", "measured_length", "noise"]], on=POINT).dropna(subset=["measured"])
    return both.assign(
        error=both.speed_up / both.measured - 1,
        within=(both.speed_up_lo <= both.measured) & (both.measured <= both.speed_up_hi),
    )


def held_out(rows: pd.DataFrame, concurrency: int) -> tuple[Model, pd.DataFrame]:
    """Fit on every concurrency but one and score that one: the model has not seen its cells."""
    model = fit(rows[rows.concurrency != concurrency])
    out = rows[rows.concurrency == concurrency]
    return model, scored(forecasts(model, out), out)
