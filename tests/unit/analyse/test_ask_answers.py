"""Two running servers, looked at after each block: every answer is reached, and a false one is rare."""

import math

import block_rows as made
import numpy as np
import pandas as pd
import pytest

from runners.analyse import inference, open_points

MARGIN, MOST = 0.03, 12
LOADS = (1, 4, 16)


def asked(rng, ratio, noise):
    """{C: (answer, whether its interval holds the true ratio)}. noise: of a block's log ratio, a standard deviation.

    As `ask` measures: one block of each open load a visit, a look after each, the servers the same all the time, so
    that only blocks scatter.
    """
    rows, found = [], {}
    for visit in range(MOST):
        for c in (c for c in LOADS if found.get(c, ("undecided",))[0] == inference.UNDECIDED):
            drift, apart = math.exp(rng.normal(0, 0.1)), math.exp(rng.normal(0, noise))
            for name, speed in (("b", 100 * drift), ("x", 100 * drift * ratio * apart)):
                rows += made.rows(name, [(visit, visit, speed)], "now", concurrency=c, most=MOST)
        frame = open_points.of_cells(pd.DataFrame(rows), MARGIN)
        for row in frame.to_dict("records"):
            holds = not row["speed_up_lo"] > ratio and not row["speed_up_hi"] < ratio
            found[row["concurrency"]] = (row["pays"], holds)
        if all(answer != inference.UNDECIDED for answer, _ in found.values()):
            break
    return found


@pytest.mark.parametrize(
    ("ratio", "noise", "answer"),
    [(1.25, 0.05, inference.YES), (0.8, 0.05, inference.NO), (1.0, 0.015, inference.NO_DIFFERENCE)],
)
def test_every_answer_is_reached_although_the_servers_were_started_once(ratio, noise, answer):
    rng = np.random.default_rng(7)
    answers = [a for _ in range(3) for a, _ in asked(rng, ratio, noise).values()]
    assert answers == [answer] * len(answers)


@pytest.mark.slow
def test_false_answers_are_rare_and_intervals_cover():
    """At no difference, with noise beyond what decides it: a yes or a no would be false."""
    rng = np.random.default_rng(11)
    every = [found for _ in range(60) for found in asked(rng, 1.0, 0.06).values()]
    false = sum(answer in (inference.YES, inference.NO) for answer, _ in every)
    assert false <= 0.05 * len(every)
    assert np.mean([holds for _, holds in every]) >= 0.93
