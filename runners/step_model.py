"""One small model of a decode step, fitted to measured cells: it forecasts the speed-up of cells nobody measured.

    plain step        t0(B, L)    = a + b B + c B L
    speculative step  tK(B, L)    = a + b B + c B L + K (d + e B)
    speed-up          AL tK=0 / tK

B: running requests (the concurrency, or the cap where that is lower); L: mean context in tokens; K: drafted tokens;
AL: tokens per step. a: what a step costs whatever it does (weights read, launches); b: a token more in the batch; c:
its attention; d: a pass of the drafter whatever it does; e: one drafted token of one request, drafted and verified (the
two cannot be told apart by timing). d and e are each drafter's own: a larger head costs more. All are at least 0 and in
milliseconds. Fitted by least squares on relative errors, so that a fast step weighs as much as a slow one.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.optimize import least_squares

from runners import breakeven, intervals, tables
from runners.errors import UserError

NAMES = ("a", "b", "c")  # shared by all of an engine; then d and e of each drafter
POINT = ["configuration", "engine", "method", "k", "workload", "concurrency"]
COLUMNS = [*POINT, "drafter", "batch", "context", "step_ms", "tokens_per_step"]
RESAMPLES = 200
TIGHT = {"ftol": 1e-12, "xtol": 1e-12, "gtol": 1e-12}


@dataclass(frozen=True)
class Model:
    """Coefficients in milliseconds: a, b, c, then d and e of each of `drafters`; `draws` [n, 3 + 2 drafters] are refits
    of resampled points, for intervals.
    """

    drafters: list[str]
    coefficients: np.ndarray
    draws: np.ndarray

    def step_ms(self, k, batch, context, drafter, x: np.ndarray | None = None) -> np.ndarray:
        """Milliseconds of a step; arrays broadcast. drafter: a name or one a row (any name where k is 0)."""
        return _step(self.coefficients if x is None else x, k, batch, context, _places(drafter, self.drafters))

    def break_even(self, k, batch, context, drafter, x: np.ndarray | None = None) -> np.ndarray:
        """The accept length at which the speed-up is 1: the step-cost ratio r."""
        return self.step_ms(k, batch, context, drafter, x) / self.step_ms(0, batch, context, drafter, x)

    def break_even_interval(self, k, batch, context, drafter, level: float = intervals.LEVEL):
        """(low, high) over the refits."""
        values = [self.break_even(k, batch, context, drafter, x) for x in self.draws]
        tail = (1 - level) / 2
        return np.quantile(values, [tail, 1 - tail], axis=0)


def _places(drafter, known: list[str]) -> np.ndarray:
    names = np.atleast_1d(np.asarray(drafter, dtype=object))
    places = np.array([known.index(n) if n in known else 0 for n in names])
    return places if np.ndim(drafter) else places[0]


def _step(x: np.ndarray, k, batch, context, place) -> np.ndarray:
    a, b, c = x[:3]
    d, e = x[3::2][place], x[4::2][place]
    k, batch, context = np.asarray(k, float), np.asarray(batch, float), np.asarray(context, float)
    return a + b * batch + c * batch * context + k * (d + e * batch)


def points(cells: pd.DataFrame, requests: pd.DataFrame, groups: dict[str, str] | None = None) -> pd.DataFrame:
    """One row a point of one engine's plain and EAGLE-3 configurations: COLUMNS.

    groups: configuration -> the drafter whose cost it has (payoff.drafters); its own name where none is given.

    step_ms: decode time of a step, TPOT x tokens per step, over the repeats that count. context: the prompt and half
    the answer, in tokens: what a step attends to on average. n-gram configurations are left out: their steps are of
    two kinds (drafted or not).
    """
    good = tables.ok(cells)
    good = good[good.method.isin(("none", "eagle3")) & good.context_tokens.notna()]
    if good.empty:
        return pd.DataFrame(columns=COLUMNS)
    good = good.assign(tpot=breakeven.decode_tpot(good, requests))
    lengths = [1.0 if r.method == "none" else breakeven.acceptance.tokens_per_step(r) for _, r in good.iterrows()]
    good = good.assign(al=lengths, k=good.k.fillna(0)).dropna(subset=["tpot", "al"])
    rows = []
    for names, group in good.groupby(POINT, sort=False):
        batch = group.concurrency.astype(float).where(group.capped_at.isna(), group.capped_at)
        row = dict(zip(POINT, names, strict=True))
        row["drafter"] = (groups or {}).get(row["configuration"], row["configuration"]) if row["k"] else ""
        # Geometric means: a ratio of two points is then the mean of their repeats' ratios.
        row |= {"batch": batch.mean(), "context": (group.context_tokens + group.output_tokens_per_request / 2).mean()}
        row |= {"step_ms": float(np.exp(np.log(group.tpot * group.al).mean())), "tokens_per_step": group.al.mean()}
        rows.append(row)
    return pd.DataFrame(rows, columns=COLUMNS)


def fit(rows: pd.DataFrame, seed: int = intervals.SEED) -> Model:
    """Fit the points of one engine. UserError when they hold no plain or no speculative step, or too few of them.

    Where all points have one context, c cannot be told and is 0. A drafter of one point alone is left out.
    """
    rows = usable(rows)
    if (rows.k == 0).sum() < 2 or (rows.k > 0).sum() < 2:
        raise UserError("The model of a step needs at least two plain and two speculative points; measure more cells.")
    drafters = sorted(set(rows.drafter[rows.k > 0]))
    free = np.ones(3 + 2 * len(drafters), dtype=bool)
    free[2] = rows.context.max() > 1.3 * rows.context.min()
    places = _places(rows.drafter.to_numpy(), drafters)
    found = _least_squares(rows, places, free)
    fitted = _step(found, rows.k, rows.batch, rows.context, places)
    residual = np.log(rows.step_ms.to_numpy() / fitted)
    rng = np.random.default_rng(seed)
    draws = []
    for _ in range(RESAMPLES):
        # Residuals are resampled, not points: a point left out may be the only one of its kind.
        noisy = rows.assign(step_ms=fitted * np.exp(rng.choice(residual, len(rows))))
        draws.append(_least_squares(noisy, places, free, found))
    return Model(drafters, found, np.array(draws))


def usable(rows: pd.DataFrame) -> pd.DataFrame:
    """Points without those of a drafter that has one only: its d and e cannot both be told."""
    counts = rows[rows.k > 0].groupby("drafter").size()
    return rows[(rows.k == 0) | rows.drafter.isin(counts[counts > 1].index)]


def _least_squares(rows: pd.DataFrame, places, free: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
    y, k, batch, context = (rows[name].to_numpy(float) for name in ("step_ms", "k", "batch", "context"))
    low = y.min()
    first = [low / 2, low / 4, 1e-6, *[low / 10, low / 20] * ((len(free) - 3) // 2)]
    x0 = np.array(first) if start is None else np.maximum(start, 1e-9)

    def whole(x: np.ndarray) -> np.ndarray:
        full = np.zeros(len(free))
        full[free] = x
        return full

    def relative(x: np.ndarray) -> np.ndarray:
        return _step(whole(x), k, batch, context, places) / y - 1

    scale = np.maximum(x0[free], 1e-6)
    return whole(least_squares(relative, x0[free], bounds=(0, np.inf), x_scale=scale, **TIGHT).x)


def forecasts(model: Model, rows: pd.DataFrame) -> pd.DataFrame:
    """A speed-up for each speculative point: POINT, speed_up with _lo and _hi, break_even. Needs no step_ms."""
    spec = rows[(rows.k > 0) & rows.drafter.isin(model.drafters)]
    if spec.empty:
        return pd.DataFrame(columns=[*POINT, "speed_up", "speed_up_lo", "speed_up_hi", "break_even"])
    at = (spec.k.to_numpy(), spec.batch.to_numpy(), spec.context.to_numpy(), spec.drafter.to_numpy())
    length, r = spec.tokens_per_step.to_numpy(), model.break_even(*at)
    low, high = model.break_even_interval(*at)
    return spec[POINT].assign(speed_up=length / r, speed_up_lo=length / high, speed_up_hi=length / low, break_even=r)


def scored(made: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Forecasts beside what was then measured: POINT, forecast, measured, error (relative), within its interval."""
    plain = rows[rows.k == 0].groupby(["workload", "concurrency"])["step_ms"].first()
    spec = rows[rows.k > 0].assign(
        measured=[
            r.tokens_per_step * plain.get((r.workload, r.concurrency), np.nan) / r.step_ms
            for r in rows[rows.k > 0].itertuples()
        ]
    )
    both = made.merge(spec[[*POINT, "measured"]], on=POINT).dropna(subset=["measured"])
    return both.assign(
        error=both.speed_up / both.measured - 1,
        within=(both.speed_up_lo <= both.measured) & (both.measured <= both.speed_up_hi),
    )


def held_out(rows: pd.DataFrame, concurrency: int) -> tuple[Model, pd.DataFrame]:
    """Fit on every concurrency but one and score that one: the model has not seen its cells."""
    model = fit(rows[rows.concurrency != concurrency])
    out = rows[rows.concurrency == concurrency]
    return model, scored(forecasts(model, out), out)
