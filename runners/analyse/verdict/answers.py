"""What to serve: one answer for each use and workload, for each engine and precision by itself and then across them.

Workloads are never pooled: what is best for one may lose on another. A profile that weighs them (`workload.mix`) gets
one more answer, for the mix.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby

import pandas as pd

from runners.analyse import comparisons, goodput, results
from runners.analyse.blocks import Point
from runners.analyse.verdict import choose
from runners.analyse.verdict.choose import Choice, Contender, Lead, Ratio

MIX = "mix"


@dataclass(frozen=True)
class Use:
    """What somebody serves for: its words, the metric of summarise.summarise, and the concurrency (None: any)."""

    title: str
    phrase: str  # in a sentence, after "For chat, "
    metric: str
    unit: str
    concurrency: int | None = None


# One request at a time is judged end to end, as a person waits for it; the speed of its decoding stands beside.
USES = {
    "single_stream": Use("Single stream", "one request at a time", "throughput", "tok/s", 1),
    "throughput": Use("Throughput", "many requests at once", "throughput", "tok/s in all"),
    "goodput": Use("Goodput", "within the latency limits", "goodput", "tok/s in all within the limits"),
}


@dataclass(frozen=True)
class Pool:
    """Everything that an answer is made from.

    data: cells, ok or void, nothing synthetic; summary: their summarise.summarise; precisions: by configuration.
    """

    data: comparisons.Data
    summary: pd.DataFrame
    precisions: Mapping[str, str] = field(default_factory=dict)
    margin: float = 0.03

    @property
    def cells(self) -> pd.DataFrame:
        return self.data.cells

    def contenders(self, use: Use, workload: str) -> list[Contender]:
        """Each configuration at each measured concurrency of the use, one workload."""
        rows = self.summary[(self.summary.workload == workload) & self.summary.throughput.notna()]
        if use.concurrency is not None:
            rows = rows[rows.concurrency == use.concurrency]
        rows = rows[rows[use.metric].notna() & (rows[use.metric] > 0)]
        return [self._contender(r, use) for r in rows.to_dict("records")]

    def _contender(self, row: dict, use: Use) -> Contender:
        name, workload = row["configuration"], row["workload"]
        own = results.ok(self.cells[(self.cells.configuration == name) & (self.cells.workload == workload)])
        equal = own.reference_share.astype(float).mean()
        return Contender(
            name,
            row["engine"],
            row["method"],
            None if pd.isna(row["k"]) else int(row["k"]),
            self.precisions.get(name, ""),
            int(row["concurrency"]),
            float(row[use.metric]),
            float(row["throughput"]),
            float(row["stream"]),
            None if pd.isna(equal) else float(equal),
        )

    def lead(self, workload: str) -> Lead:
        """The ratio of two contenders in one workload.

        Of throughput for each use: goodput is the throughput of a load that reaches the attainment floor.
        """

        def ratio(upper: Contender, lower: Contender) -> Ratio:
            above, below = (Point(c.configuration, workload, c.concurrency) for c in (upper, lower))
            return comparisons.ratio(self.data, above, below)

        return ratio


def answers(pool: Pool, mix: Mapping[str, float] | None) -> list[dict]:
    """An answer for each use and workload, and for the mix, as plain data.

    Each: use, workload, mix (the shares, of the mix alone), serve, reason, clear, concurrency, value, end_to_end,
    decode, precision, to_reference, base and over_base, among, runner_up and ratio, engines. `serve` is None where
    nothing can be recommended.
    """
    found = []
    for name, use in USES.items():
        if use.metric == "goodput" and goodput.COLUMN not in pool.cells:
            continue  # the profile sets no limits
        workloads = sorted(set(pool.cells.workload))
        for workload in workloads:
            contenders, lead = pool.contenders(use, workload), pool.lead(workload)
            found.append({"use": name, "workload": workload, "mix": None} | _answer(pool, contenders, lead))
        if mix and set(mix) <= set(workloads):
            contenders, lead = _mixed(pool, use, mix)
            found.append({"use": name, "workload": MIX, "mix": dict(mix)} | _answer(pool, contenders, lead))
    return found


def _answer(pool: Pool, every: Sequence[Contender], lead: Lead) -> dict:
    """One answer from all contenders (each configuration at its fastest concurrency); of engine and precision first."""
    fastest: dict[str, Contender] = {}
    for c in sorted(every, key=lambda c: -c.value):
        fastest.setdefault(c.configuration, c)
    if not fastest:
        return {"serve": None, "among": [], "engines": []}
    group = lambda c: (c.engine, c.precision)  # noqa: E731
    engines = [
        {"engine": engine, "precision": precision} | _plain(choose.choose(list(part), lead, pool.margin), lead)
        for (engine, precision), part in groupby(sorted(fastest.values(), key=group), key=group)
    ]
    choice = choose.choose(list(fastest.values()), lead, pool.margin)
    return _plain(choice, lead) | _over_base(pool, choice.serve, every, lead) | {"engines": engines}


def _plain(choice: Choice, lead: Lead) -> dict:
    """A choice as plain data, with the ratios that it rests on."""
    shown = asdict(choice.serve)
    shown = {"serve": shown.pop("configuration")} | shown
    among = [asdict(c) | {"of_best": _triple(None if c is choice.best else lead(c, choice.best))} for c in choice.among]
    behind = choice.behind
    return shown | {
        "reason": choice.reason,
        "clear": choice.clear,
        "among": among,
        "runner_up": asdict(behind) if behind else None,
        "ratio": _triple(lead(choice.best, behind)) if behind else None,
    }


def _over_base(pool: Pool, serve: Contender, every: Sequence[Contender], lead: Lead) -> dict:
    """The name of the base of a configuration, and the ratio to it at the same concurrency; None for a base itself."""
    name = results.base_of(pool.cells, serve.engine, serve.configuration)
    base = next((c for c in every if c.configuration == name and c.concurrency == serve.concurrency), None)
    if serve.method == "none" or base is None:
        return {"base": None, "over_base": None}
    return {"base": name, "over_base": _triple(lead(serve, base))}


def _triple(ratio: Ratio | None) -> list[float] | None:
    return None if ratio is None or math.isnan(ratio.ratio) else [ratio.ratio, *ratio.interval()]


def _mixed(pool: Pool, use: Use, mix: Mapping[str, float]) -> tuple[list[Contender], Lead]:
    """The contenders that were measured in every workload of the mix, with their speeds over it, and their ratios."""
    shares = list(mix.values())
    parts = [{(c.configuration, c.concurrency): c for c in pool.contenders(use, w)} for w in mix]
    own_leads = [pool.lead(w) for w in mix]
    found = []
    for key, first in parts[0].items():
        if all(key in part for part in parts):
            same = [part[key] for part in parts]
            speeds = {
                name: choose.mixed_speed(shares, [getattr(c, name) for c in same])
                for name in ("value", "end_to_end", "decode")
            }
            known = [c.to_reference for c in same if c.to_reference is not None]
            equal = sum(known) / len(known) if known else None
            found.append(Contender(**(asdict(first) | speeds | {"to_reference": equal})))

    def lead(upper: Contender, lower: Contender) -> Ratio:
        sides = [
            (part[upper.configuration, upper.concurrency], part[lower.configuration, lower.concurrency])
            for part in parts
        ]
        ratios = [own(a, b) for own, (a, b) in zip(own_leads, sides, strict=True)]
        return choose.mixed_ratio(shares, [b.value for _, b in sides], ratios)

    return found, lead


def texts(pool: Pool) -> list[dict]:
    """engine, precision, to_reference (mean share of an answer that equals the reference's) of what does not draft."""
    plain = results.ok(pool.cells)
    plain = plain[plain.method == "none"]
    plain = plain.assign(precision=[pool.precisions.get(name, "") for name in plain.configuration])
    equal = plain.reference_share.astype(float).groupby([plain.engine, plain.precision]).mean()
    return [{"engine": e, "precision": p, "to_reference": share} for (e, p), share in equal.items()]
