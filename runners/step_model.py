"""One small model of a decode step, fitted to measured cells: it forecasts the speed-up of cells nobody measured.

    plain step        t0(B, L)    = a + b B + c B L
    speculative step  tK(B, L)    = a + b B + c B L + K (d + e B)
    speed-up          AL tK=0 / tK

B: running requests (the concurrency, or the cap where that is lower); L: mean context in tokens; K: drafted tokens;
AL: tokens per step. a: what a step costs whatever it does (weights read, launches); b: a token more in the batch; c:
its attention; d: a pass of the drafter whatever it does; e: one drafted token of one request, drafted and verified (the
two cannot be told apart by timing). All are at least 0 and in milliseconds. Fitted by least squares on relative errors,
so that a fast step weighs as much as a slow one.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.optimize import least_squares

from runners import breakeven, intervals, tables
from runners.errors import UserError

NAMES = ("a", "b", "c", "d", "e")
POINT = ["configuration", "engine", "method", "k", "workload", "concurrency"]
COLUMNS = [*POINT, "batch", "context", "step_ms", "tokens_per_step"]
RESAMPLES = 200
TIGHT = {"ftol": 1e-12, "xtol": 1e-12, "gtol": 1e-12}


@dataclass(frozen=True)
class Model:
    """Coefficients in milliseconds; `draws` [n, 5] are refits of resampled points, for intervals."""

    coefficients: np.ndarray
    draws: np.ndarray

    def step_ms(self, k, batch, context) -> np.ndarray:
        """Milliseconds of a step; arrays broadcast."""
        return _step(self.coefficients, k, batch, context)

    def speed_up(self, k, batch, context, tokens_per_step) -> np.ndarray:
        """Decode speed-up over the plain engine at the same batch and context."""
        return tokens_per_step * self.step_ms(0, batch, context) / self.step_ms(k, batch, context)

    def speed_up_interval(self, k, batch, context, tokens_per_step, level: float = intervals.LEVEL):
        """(low, high) over the refits."""
        values = [tokens_per_step * _step(d, 0, batch, context) / _step(d, k, batch, context) for d in self.draws]
        tail = (1 - level) / 2
        return np.quantile(values, [tail, 1 - tail], axis=0)

    def break_even(self, k, batch, context) -> np.ndarray:
        """The accept length at which the speed-up is 1: the step-cost ratio r."""
        return self.step_ms(k, batch, context) / self.step_ms(0, batch, context)


def _step(x: np.ndarray, k, batch, context) -> np.ndarray:
    a, b, c, d, e = x
    k, batch, context = np.asarray(k, float), np.asarray(batch, float), np.asarray(context, float)
    return a + b * batch + c * batch * context + k * (d + e * batch)


def points(cells: pd.DataFrame, requests: pd.DataFrame) -> pd.DataFrame:
    """One row a point of one engine's plain and EAGLE-3 configurations: COLUMNS.

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
        # Geometric means: a ratio of two points is then the mean of their repeats' ratios.
        row |= {"batch": batch.mean(), "context": (group.context_tokens + group.output_tokens_per_request / 2).mean()}
        row |= {"step_ms": float(np.exp(np.log(group.tpot * group.al).mean())), "tokens_per_step": group.al.mean()}
        rows.append(row)
    return pd.DataFrame(rows, columns=COLUMNS)


def fit(rows: pd.DataFrame, seed: int = intervals.SEED) -> Model:
    """Fit the points of one engine. UserError when they hold no plain or no speculative step, or too few of them.

    Where all points have one context, c cannot be told and is 0.
    """
    if (rows.k == 0).sum() < 2 or (rows.k > 0).sum() < 2:
        raise UserError("The model of a step needs at least two plain and two speculative points; measure more cells.")
    free = np.array([True, True, rows.context.max() > 1.3 * rows.context.min(), True, True])
    found = _least_squares(rows, free)
    rng = np.random.default_rng(seed)
    draws = []
    residual = np.log(rows.step_ms.to_numpy() / _step(found, rows.k, rows.batch, rows.context))
    for _ in range(RESAMPLES):
        # Residuals are resampled, not points: a point left out may be the only one of its kind.
        noisy = rows.assign(
            step_ms=_step(found, rows.k, rows.batch, rows.context) * np.exp(rng.choice(residual, len(rows)))
        )
        draws.append(_least_squares(noisy, free, found))
    return Model(found, np.array(draws))


def _least_squares(rows: pd.DataFrame, free: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
    y = rows.step_ms.to_numpy()
    low = rows.step_ms.min()
    x0 = np.array([low / 2, low / 4, 1e-6, low / 10, low / 20]) if start is None else np.maximum(start, 1e-9)
    fixed = np.zeros(len(NAMES))

    def whole(x: np.ndarray) -> np.ndarray:
        full = fixed.copy()
        full[free] = x
        return full

    def relative(x: np.ndarray) -> np.ndarray:
        return _step(whole(x), rows.k, rows.batch, rows.context) / y - 1

    return whole(least_squares(relative, x0[free], bounds=(0, np.inf), x_scale=np.maximum(x0[free], 1e-6), **TIGHT).x)


def forecasts(model: Model, rows: pd.DataFrame) -> pd.DataFrame:
    """A speed-up for each speculative point: POINT, speed_up with _lo and _hi, break_even. Needs no step_ms."""
    spec = rows[rows.k > 0]
    lo, hi = (
        model.speed_up_interval(spec.k, spec.batch, spec.context, spec.tokens_per_step.to_numpy())
        if len(spec)
        else ([], [])
    )
    return spec[POINT].assign(
        speed_up=model.speed_up(spec.k, spec.batch, spec.context, spec.tokens_per_step.to_numpy()),
        speed_up_lo=lo,
        speed_up_hi=hi,
        break_even=model.break_even(spec.k, spec.batch, spec.context),
    )


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
