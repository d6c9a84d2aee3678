"""Does an interval cover what it says, and how often is an answer false? Simulated over the lab's own noise.

    python tests/benchmarks/bench_inference.py [--campaigns 100] [--csv data/inference.csv]

Each trial measures CONFIGURATIONS configurations and their base at POINTS points, all with a true ratio of 1 (so that
every yes and every no is false), by a design that the tool uses, and judges them with the tool's own functions.

Noise of a start: 0, 4, 8, 11% of a server's speed, half of its variance common to all points of the server. Noise of a
block: 2, 8, 15% of the ratio, where both sides are paired in it, or of each side. Beside normal noise of one size:
configurations of unequal noise (half to double; `noisiest` is the coverage of the last), heavy tails (Student's t, 4
degrees of freedom), and a drift of the machine of 3% from one cell to the next. With several campaigns each ratio moves
by 0, 5 or 15% from one to the next, half of the variance common to the engine. Prints Markdown, then a JSON object.
"""

import argparse
import csv
import itertools
import json
import math
import pathlib

import numpy as np

from runners.analyse import comparisons, inference
from runners.analyse.blocks import Point
from runners.analyse.comparisons import Data

BETWEEN, WITHIN, CAMPAIGN = (0.0, 0.04, 0.08, 0.11), (0.02, 0.08, 0.15), (0.0, 0.05, 0.15)
KINDS = ("normal", "unequal", "heavy", "drift")
CONFIGURATIONS, POINTS, MARGIN, DRIFT = 5, 2, 0.03, 0.03
UNEQUAL = (0.5, 0.7, 1.0, 1.4, 2.0)
BASE = "base"
NAMES = [f"c{i}" for i in range(CONFIGURATIONS)]
METRIC = "throughput"
HEADER = ["design", "campaign", "start", "block", "noise", "covers", "noisiest", "false_yes", "false_no", "undecided"]
HEADER += ["half_width"]


class Noise:
    """Draws of one kind of noise."""

    def __init__(self, rng, between, within, kind, campaign=0.0):
        self.rng, self.between, self.within, self.kind, self.campaign = rng, between, within, kind, campaign
        self.factors = UNEQUAL if kind == "unequal" else (1.0,) * CONFIGURATIONS

    def draw(self, *size):
        return self.rng.standard_t(4, size) / math.sqrt(2) if self.kind == "heavy" else self.rng.standard_normal(size)

    def start(self):
        """[POINTS]: what one start adds to its points."""
        return self.between * (self.draw(1) + self.draw(POINTS)) / math.sqrt(2)

    def shifts(self):
        """[CONFIGURATIONS, POINTS]: what one campaign adds to each ratio."""
        own, common = self.draw(CONFIGURATIONS, POINTS), self.draw(1, 1)
        return self.campaign * (own + common) / math.sqrt(2)


def paired(noise, logs, name, starts, size, shifts=0.0, first=0):
    """Visits: base and one configuration are alive together, and a block holds both, seconds apart."""
    for i, configuration in enumerate(NAMES):
        for start in range(first, first + starts):
            at = noise.factors[i] * (noise.start() - noise.start()) + np.broadcast_to(shifts, (len(NAMES), POINTS))[i]
            block = noise.factors[i] * noise.within * noise.draw(POINTS, size)
            # What both sides meet leaves the ratio; the drift between the two windows of a block does not.
            apart = DRIFT * noise.draw(POINTS, size) if noise.kind == "drift" else 0.0
            both = at[:, None] + block + apart
            visit = i * 100 + start
            for p in range(POINTS):
                for b in range(size):
                    key = (name, visit, visit * 100 + b)
                    logs[Point(BASE, "w", p)][key] = 0.0
                    logs[Point(configuration, "w", p)][key] = both[p, b]


def rounds(noise, logs, name, starts, size, shifts=0.0, first=0):
    """Each configuration is started once a round, one after the other; a block is one repeat of a round."""
    sides = [BASE, *NAMES]
    for start in range(first, first + starts):
        walk = np.cumsum(DRIFT * noise.draw(len(sides) * POINTS * size)) if noise.kind == "drift" else None
        for i, configuration in enumerate(noise.rng.permutation(len(sides))):
            side, factor = sides[configuration], noise.factors[configuration - 1] if configuration else 1.0
            at = factor * noise.start()
            if configuration:
                at = at + np.broadcast_to(shifts, (len(NAMES), POINTS))[configuration - 1]
            own = at[:, None] + factor * noise.within * noise.draw(POINTS, size)
            if walk is not None:
                own = own + walk[i * POINTS * size : (i + 1) * POINTS * size].reshape(POINTS, size)
            for p in range(POINTS):
                for b in range(size):
                    logs[Point(side, "w", p)][name, start, start * 100 + b] = own[p, b]


def empty():
    return {Point(side, "w", p): {} for side in [BASE, *NAMES] for p in range(POINTS)}


def data(logs, earlier=None, most=None):
    """comparisons.Data of figures that are given by block instead of by cells."""
    made = Data(None)
    made.__dict__.update(
        logs={METRIC: logs}, _earlier={METRIC: earlier or {}}, _engines=dict.fromkeys([BASE, *NAMES], "e"),
        _bases=dict.fromkeys([BASE, *NAMES], BASE), most_starts=most or {},
    )  # fmt: skip
    return made


def judged(made):
    return {
        (i, p): comparisons.over_base(made, Point(name, "w", p)) for i, name in enumerate(NAMES) for p in range(POINTS)
    }


def one_campaign(measure, starts, size):
    def trial(noise):
        logs = empty()
        measure(noise, logs, "now", starts, size)
        return judged(data(logs))

    return trial


def quick(measure, size, quieter=1.0):
    """One start; an earlier campaign stands in for what one start cannot see. quieter: its noise over today's."""

    def trial(noise):
        logs, earlier = empty(), empty()
        before = Noise(noise.rng, noise.between * quieter, noise.within * quieter, noise.kind)
        rounds(before, earlier, "published", 3, 2)
        measure(noise, logs, "now", 1, size)
        return judged(data(logs, earlier))

    return trial


def looking(measure, size, most, with_earlier):
    """A look after each start; a point that has its answer is measured no more."""

    def trial(noise):
        logs, earlier, found = empty(), empty(), {}
        if with_earlier:
            rounds(noise, earlier, "published", 3, 2)
        for start in range(most):
            new = empty()
            measure(noise, new, "now", 1, size, first=start)
            for point, own in new.items():
                logs[point] |= own
            for key, estimate in judged(data(logs, earlier, {"now": most})).items():
                if key not in found or found[key].answer(MARGIN) == inference.UNDECIDED:
                    found[key] = estimate
        return found

    return trial


def campaigns(measure, count, starts, size):
    def trial(noise):
        logs = empty()
        for i in range(count):
            measure(noise, logs, f"campaign {i}", starts, size, noise.shifts())
        return judged(data(logs))

    return trial


DESIGNS = {
    "paired, 2 starts of 4": one_campaign(paired, 2, 4),
    "paired, 3 starts of 2": one_campaign(paired, 3, 2),
    "rounds, 3 starts of 2": one_campaign(rounds, 3, 2),
    "rounds, 6 starts of 1": one_campaign(rounds, 6, 1),
    "quick, 1 start of 1": quick(paired, 1),
    "quick, 1 start of 3": quick(paired, 3),
    "looks, up to 4 starts": looking(paired, 2, 4, False),
    "quick looks, up to 4 starts": looking(paired, 1, 4, True),
}
# What no interval can know: today is noisier than the campaign that stands in. Shown, and not held to the standard.
BEYOND = {"quick, 1 start of 1, noise 1.5 times the earlier": quick(paired, 1, 1 / 1.5)}
SEVERAL = {
    "2 campaigns of 3 starts": campaigns(rounds, 2, 3, 2),
    "3 campaigns of 2 starts": campaigns(paired, 3, 2, 2),
}


def row(trial, noise, trials):
    """covers, noisiest, false yes, false no, undecided: as shares of the points that have an interval; the last of all.
    half_width: the median, as a share.
    """
    covered, last, answers, reach = [], [], [], []
    for _ in range(trials):
        for (i, _), e in trial(noise).items():
            low, high = e.interval()
            if math.isnan(low):
                continue
            covered.append(low <= 1 <= high)
            if i == CONFIGURATIONS - 1:
                last.append(covered[-1])
            answers.append(e.answer(MARGIN))
            reach.append((math.log(high) - math.log(low)) / 2)
    n = max(len(answers), 1)
    shares = [answers.count(a) / n for a in (inference.YES, inference.NO, inference.UNDECIDED)]
    return [np.mean(covered), np.mean(last), *shares, math.expm1(np.median(reach))]


def table(trials, designs=None, seed=1, grid=None):
    """Rows of HEADER: the whole grid, or a part of it (between, within)."""
    rows = []
    for name, trial in {**DESIGNS, **SEVERAL, **BEYOND}.items():
        if designs is not None and name not in designs:
            continue
        for campaign in CAMPAIGN if name in SEVERAL else (0.0,):
            for kind in KINDS:
                # Kinds other than normal at the corners of the grid alone: the middle lies between them.
                sides = (BETWEEN, WITHIN) if kind == "normal" else (BETWEEN[:: len(BETWEEN) - 1], WITHIN[::2])
                for between, within in grid or itertools.product(*sides):
                    noise = Noise(np.random.default_rng(seed), between, within, kind, campaign)
                    rows.append([name, campaign, between, within, kind, *row(trial, noise, trials)])
    return rows


def summary(rows):
    """Rows of HEADER as text, one a design: the least coverage for each kind of noise, the most false answers."""
    table = [
        [
            "design",
            *(f"covers at least, {kind}" for kind in KINDS),
            "noisiest",
            "false yes, at most",
            "false no, at most",
        ]
    ]
    for name in dict.fromkeys(r[0] for r in rows):
        own = [dict(zip(HEADER, r, strict=False)) for r in rows if r[0] == name]
        least = [min(float(r["covers"]) for r in own if r["noise"] == kind) for kind in KINDS]
        least.append(min(float(r["noisiest"]) for r in own if r["noise"] == "unequal"))
        most = [max(float(r[end]) for r in own) for end in ("false_yes", "false_no")]
        table.append([name, *(f"{v:.1%}" for v in (*least, *most))])
    return table


def write(path, rows):
    """The table at `path`, with the number of trials of each row, and its summary beside it, which the book shows."""
    for file, table in ((path, [[*HEADER, "trials"], *rows]), (path.with_stem(path.stem + "_summary"), summary(rows))):
        with file.open("w", newline="") as out:
            csv.writer(out, lineterminator="\n").writerows(table)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--campaigns", type=int, default=100, help="trials of each row")
    parser.add_argument("--designs", nargs="*", help="these alone")
    parser.add_argument("--csv", help="also written here, with a summary beside it")
    args = parser.parse_args()
    rows = table(args.campaigns, args.designs)
    print("| " + " | ".join(HEADER) + " |\n|" + "---|" * len(HEADER))
    for r in rows:
        print("| " + " | ".join([r[0], *(f"{v:.0%}" for v in r[1:4]), r[4], *(f"{v:.1%}" for v in r[5:])]) + " |")
    if args.csv:
        write(pathlib.Path(args.csv), [[*r[:5], *(f"{v:.4f}" for v in r[5:]), args.campaigns] for r in rows])
    held = [r for r in rows if r[0] not in BEYOND]
    worst = {
        "covers": min(r[5] for r in held),
        "false_yes": max(r[7] for r in held),
        "false_no": max(r[8] for r in held),
    }
    print(json.dumps({k: round(float(v), 4) for k, v in worst.items()}))


if __name__ == "__main__":
    main()
