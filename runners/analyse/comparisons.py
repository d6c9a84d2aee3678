"""The ratio of any two points of one profile, with its interval, by the one model of inference.py."""

import functools
from dataclasses import dataclass, replace

import pandas as pd

from runners.analyse import blocks, inference, repeated_looks, results, variance_components, variances
from runners.analyse.blocks import DECODE, LENGTH, STEP_COST, Campaigns, Point
from runners.analyse.inference import CAMPAIGNS, STARTS, Estimate
from runners.analyse.variance_components import Logs
from runners.analyse.variances import Variances

UNKNOWN = Estimate(float("nan"), float("nan"), 0.0, starts=0, campaigns=0)


@dataclass(frozen=True, eq=False)
class Data:
    """The cells of one profile, ready to be compared: figures by block, and the variances of each engine.

    cells: results.cells; requests: results.requests, or None where only the ledger's own figures are needed.
    """

    cells: pd.DataFrame
    requests: pd.DataFrame | None = None

    @functools.cached_property
    def logs(self) -> dict[str, Logs]:
        """metric -> point -> block -> logarithm."""
        return _with_step_cost(blocks.values(self.cells, self.requests), self.base)

    @functools.cached_property
    def _earlier(self) -> dict[str, Logs]:
        """The same of earlier campaigns, by the ledger's own figures: only their scatter is used."""
        return _with_step_cost(blocks.values(variance_components.earlier(self.cells)), self.base)

    @functools.cached_property
    def _names(self) -> pd.DataFrame:
        """Each configuration, here or of an earlier campaign, once."""
        columns = [c for c in ("configuration", "engine", "method", "profile") if c in self.cells]
        both = pd.concat([f[columns] for f in (self.cells, variance_components.earlier(self.cells))])
        return both.drop_duplicates("configuration", ignore_index=True)

    @functools.cached_property
    def _engines(self) -> dict[str, str]:
        return dict(zip(self._names["configuration"], self._names["engine"], strict=True))

    @functools.cached_property
    def _bases(self) -> dict[str, str | None]:
        return {c: results.base_of(self._names, engine, c) for c, engine in self._engines.items()}

    def base(self, configuration: str) -> str | None:
        """What a configuration is compared with; itself where it is a base."""
        return self._bases.get(configuration)

    def engine(self, configuration: str) -> str:
        """The engine of a configuration; "" where it is not known."""
        return self._engines.get(configuration, "")

    @functools.cached_property
    def most_starts(self) -> dict[str, int]:
        """campaign -> the most starts that it may make; only of campaigns that looked after each one."""
        if "most_starts" not in self.cells:
            return {}
        known = blocks.numbered(self.cells).dropna(subset=["most_starts"])
        return {c: int(m) for c, m in zip(known["campaign"], known["most_starts"], strict=True) if m >= 1}

    @functools.cached_property
    def _cache(self) -> dict:
        return {}

    def variances(self, engines: frozenset[str], metric: str, level: str = STARTS, sides: bool = False) -> Variances:
        """What is known of the scatter of some engines' ratios to base (or of their sides), earlier campaigns' too."""
        key = (engines, metric, level, sides)
        if key not in self._cache:
            self._cache[key] = variances.joined(*(self._variances(logs, *key) for logs in (self.logs, self._earlier)))
        return self._cache[key]

    def _variances(self, logs: dict[str, Logs], engines, metric: str, level: str, sides: bool) -> Variances:
        mine = {p: own for p, own in logs.get(metric, {}).items() if self._engines.get(p.configuration) in engines}
        if sides:
            return variance_components.of_sides(mine, {p.configuration for p in mine}, level)
        return variance_components.of_comparisons(mine, self.base, level)


def _with_step_cost(logs: dict[str, Logs], base_of) -> dict[str, Logs]:
    """Adds STEP_COST: decode time of a step. Its ratio to the base's is r = AL x TPOT / TPOT_base."""
    decode, length = logs[DECODE], logs[LENGTH]
    steps = {p: {b: length[p][b] - d for b, d in own.items() if b in length.get(p, {})} for p, own in decode.items()}
    return logs | {STEP_COST: steps}


def ratio(data: Data, upper: Point, lower: Point, metric: str = "throughput") -> Estimate:
    """upper / lower in a metric: one of METRICS, `decode` (decode speed) or `step_cost` (time of a decode step).

    Within blocks where blocks hold both; else the chain over their bases, whose variances add; else by starts of one
    campaign, unpaired. Its error is not known (df 0) where no variance is; without a common campaign there is no ratio.
    """
    upper, lower = Point(*upper), Point(*lower)
    paired = _paired(data, upper, lower, metric)
    if paired is not None:
        return paired
    # A base measured beside both of them keeps the machine's drift out of the ratio.
    links = [upper, _base_point(data, upper), _base_point(data, lower), lower]
    steps = [(a, b) for a, b in zip(links, links[1:], strict=False) if a != b]
    if len(steps) > 1:
        parts = [_paired(data, a, b, metric) for a, b in steps]
        parts = [p or _unpaired(data, a, b, metric) for p, (a, b) in zip(parts, steps, strict=True)]
        if all(p is not None and p.df > 0 for p in parts):
            return inference.total([p for p in parts if p is not None])
    return _unpaired(data, upper, lower, metric) or UNKNOWN


def over_base(data: Data, point: Point, metric: str = "throughput") -> Estimate:
    """A point over its engine's base at the same workload and concurrency, within blocks."""
    return _paired(data, Point(*point), _base_point(data, Point(*point)), metric) or UNKNOWN


def of_a_campaign(data: Data, point: Point, metric: str) -> Estimate:
    """The error of a point's ratio to base in a single campaign, as one of many; not known without two campaigns."""
    known = data.variances(frozenset([data.engine(point.configuration)]), metric, CAMPAIGNS)
    return inference.estimate([[0.0]], known)


def alone(data: Data, point: Point, metric: str) -> Estimate:
    """A figure of one side by itself, without an error."""
    logs = data.logs.get(metric, {}).get(point, {})
    starts = inference.units([list(s.values()) for s in blocks.by_start(logs).values()])
    return inference.estimate(starts, Variances()) if logs else UNKNOWN


def mean(parts: list[Estimate]) -> Estimate:
    """The mean of the log ratios of several workloads. Their errors are taken as one: workloads share their starts."""
    if not parts:
        return UNKNOWN
    return replace(
        parts[0],
        log_ratio=sum(p.log_ratio for p in parts) / len(parts),
        error=sum(p.error for p in parts) / len(parts),
        df=min(p.df for p in parts),
        level=max(p.level for p in parts),
        starts=min(p.starts for p in parts),
        blocks=sum(p.blocks for p in parts),
        campaigns=min(p.campaigns for p in parts),
    )


def _base_point(data: Data, point: Point) -> Point:
    base = data.base(point.configuration)
    return point if base is None else point._replace(configuration=base)


def _paired(data: Data, upper: Point, lower: Point, metric: str) -> Estimate | None:
    """Within blocks; None where no block holds both."""
    if upper == lower or upper[1:] != lower[1:]:
        return None
    logs = data.logs.get(metric, {})
    both = blocks.ratios(logs.get(upper, {}), logs.get(lower, {}))
    return _estimate(data, blocks.by_start(both), upper, lower, metric) if both else None


def _unpaired(data: Data, upper: Point, lower: Point, metric: str) -> Estimate | None:
    """By starts of the campaigns that hold both; None where none does."""
    logs = data.logs.get(metric, {})
    above, below = (blocks.by_start(logs.get(p, {})) for p in (upper, lower))
    common = [c for c in above if c in below]
    if not common:
        return None
    engines = frozenset(data.engine(p.configuration) for p in (upper, lower))
    if len(common) == 1:
        a, b = (list(side[common[0]].values()) for side in (above, below))
        known = data.variances(engines, metric, STARTS, True)
        fewest = min(len(a), len(b))
        return replace(inference.difference(a, b, known, _level(data, common, [fewest])), starts=fewest)
    means = [[inference.units([list(side[c].values())]) for c in common] for side in (above, below)]
    whole = [[sum(map(_mean, s)) / len(s) for s in side] for side in means]
    apart = [[a - b] for a, b in zip(*whole, strict=True)]
    known = data.variances(engines, metric, CAMPAIGNS)
    return replace(inference.estimate(apart, known), campaigns=len(common))


def _mean(values) -> float:
    return sum(values) / len(values)


def _estimate(data: Data, logs: Campaigns, upper: Point, lower: Point, metric: str) -> Estimate:
    """The estimate over starts of one campaign, or over campaigns where there are more."""
    of = _compared(data, upper, lower)
    campaigns = [list(starts.values()) for starts in logs.values()]
    starts, count = sum(map(len, campaigns)), sum(len(s) for c in campaigns for s in c)
    within = _with_own(data, logs, upper, lower, metric, STARTS)
    if len(campaigns) == 1:
        return inference.estimate(campaigns[0], within, _level(data, list(logs), [starts]), of)
    between = _with_own(data, logs, upper, lower, metric, CAMPAIGNS)
    found = inference.estimate(inference.units(campaigns), between, of=of)
    # By chance few campaigns lie closer together than their own starts allow.
    parts = [inference.estimate(c, within, of=of) for c in campaigns]
    floor = sum(p.error**2 for p in parts if p.df > 0) ** 0.5 / len(campaigns)
    error = max(found.error, floor) if found.df > 0 else found.error
    return replace(found, error=error, starts=starts, blocks=count, campaigns=len(campaigns))


def _compared(data: Data, upper: Point, lower: Point) -> Point:
    """The name of a comparison among variances: the point beside its base, or both where neither is a base."""
    if lower == _base_point(data, upper):
        return upper
    if upper == _base_point(data, lower):
        return lower
    return upper._replace(configuration=" / ".join(sorted((upper.configuration, lower.configuration))))


def _with_own(data: Data, logs: Campaigns, upper: Point, lower: Point, metric: str, level: str) -> Variances:
    """The engines' variances, with this comparison's own where it is not one of a configuration with its base."""
    known = data.variances(frozenset(data.engine(p.configuration) for p in (upper, lower)), metric, level)
    of = _compared(data, upper, lower)
    if of in (upper, lower):
        return known
    return variances.joined(known, Variances(tuple(variance_components.of_one(logs, of, level))))


def _level(data: Data, campaigns: list[str], starts: list[int]) -> float:
    """The highest level of the campaigns' looks; LEVEL where none looks more than once."""
    levels = [
        repeated_looks.level(n, data.most_starts[c])
        for c, n in zip(campaigns, starts, strict=True)
        if data.most_starts.get(c, 1) > 1
    ]
    return max([inference.LEVEL, *levels])
