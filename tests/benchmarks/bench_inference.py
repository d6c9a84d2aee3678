"""Does an interval cover what it says, and how often is an answer false? Simulated over the lab's own noise.

    python tests/benchmarks/bench_inference.py [--campaigns 400]

Each campaign compares POINTS points of a true ratio of 1 (so that every yes and every no is false). Noise of a start:
0, 4, 8, 11% of a speed; noise within a start: 2, 8, 15% of a block, normal or with heavy tails (Student's t, 3 degrees
of freedom, scaled to the same standard deviation). Prints a table and, last, one JSON object.
"""

import argparse
import json
import math

import numpy as np

from runners.analyse import inference

BETWEEN, WITHIN = (0.0, 0.04, 0.08, 0.11), (0.02, 0.08, 0.15)
POINTS = 12
# name -> (starts a side, blocks a start, paired)
DESIGNS = {
    "paired, 2 starts of 4": (2, 4, True),
    "paired, 3 starts of 4": (3, 4, True),
    "sequential, 3 starts of 2": (3, 2, False),
    "sequential, 6 starts of 2": (6, 2, False),
}
MARGIN = 0.03


def noise(rng, size, heavy):
    return rng.standard_t(3, size) / math.sqrt(3) if heavy else rng.standard_normal(size)


def campaign(rng, design, between, within, heavy):
    """The estimates of one campaign: all its points share the pooled variances."""
    starts, blocks, paired = design

    def side(spread):
        return spread * noise(rng, (POINTS, starts, 1), False) + within * noise(rng, (POINTS, starts, blocks), heavy)

    if paired:  # both servers of a pair restart together, and a block's noise is that of its ratio
        ratios = side(between * math.sqrt(2))
        variances = inference.pooled(list(ratios))
        return [inference.estimate(r, variances) for r in ratios]
    upper, lower = side(between), side(between)
    variances = inference.pooled([*upper, *lower])
    return [inference.difference(u, w, variances) for u, w in zip(upper, lower, strict=True)]


def judged(estimates):
    """(covers 1, false yes, false no) as shares."""
    ends = [e.interval() for e in estimates]
    answers = [e.answer(MARGIN) for e in estimates]
    covered = np.mean([low <= 1 <= high for low, high in ends])
    return float(covered), answers.count(inference.YES) / len(answers), answers.count(inference.NO) / len(answers)


def table(campaigns, seed=1):
    rows = []
    for name, design in DESIGNS.items():
        for between in BETWEEN:
            for within in WITHIN:
                for heavy in (False, True):
                    rng = np.random.default_rng(seed)
                    found = [e for _ in range(campaigns) for e in campaign(rng, design, between, within, heavy)]
                    rows.append([name, between, within, "heavy" if heavy else "normal", *judged(found)])
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--campaigns", type=int, default=400)
    rows = table(parser.parse_args().campaigns)
    print(f"{'design':28}{'start':>7}{'block':>7}  tails   covers  false yes  false no")
    for name, between, within, tails, covered, yes, no in rows:
        print(f"{name:28}{between:7.0%}{within:7.0%}  {tails:7}{covered:7.1%}{yes:10.2%}{no:10.2%}")
    worst = {
        "covers": min(r[4] for r in rows),
        "false_yes": max(r[5] for r in rows),
        "false_no": max(r[6] for r in rows),
    }
    print(json.dumps(worst))


if __name__ == "__main__":
    main()
