"""What a campaign and a plan ask: which points are open, and what more time would decide."""

import pandas as pd
import pytest

from runners.analyse import inference, looks, open_points
from runners.measure.campaign_run import Open
from runners.measure.estimate import Estimate
from runners.profiles import load
from runners.profiles.points import Load

LAB = load.load("lab-cpu")
NAMES = ["vllm-base", "vllm-ngram"]
POINTS = len(LAB.workload.prompt_sets) * len(LAB.workload.concurrencies)


class Clock:
    """A cell takes 10 s, a start 30 s."""

    def visit(self, sides, loads, alive=()):
        return Estimate(10.0 * len(sides) * len(loads), 30.0 * len(sides))


def point(workload="chat", concurrency=1, pays=inference.YES, configuration="vllm-ngram", **more):
    row = dict(configuration=configuration, engine="vllm", workload=workload, concurrency=concurrency, pays=pays)
    row |= dict(speed_up=1.2, error=0.1, df=20, level=0.95, n_starts=2, margin=0.03)
    return row | more


@pytest.fixture
def known(monkeypatch):
    """Set the rows that the analysis finds."""

    def put(*rows):
        frame = pd.DataFrame(list(rows), columns=None if rows else open_points.COLUMNS)
        monkeypatch.setattr(open_points, "status", lambda *_: frame)

    return put


def everywhere(**more):
    return [point(w, c, **more) for w in LAB.workload.prompt_sets for c in LAB.workload.concurrencies]


def test_a_point_without_a_good_block_is_open(known, tmp_path):
    known()
    still, total = looks.for_campaign(tmp_path, LAB, NAMES)
    assert total == POINTS and still == [
        Open("vllm-ngram", Load(w, c), 1) for w in LAB.workload.prompt_sets for c in LAB.workload.concurrencies
    ]


def test_runs_that_are_not_there_are_all_open(tmp_path):
    still, total = looks.for_campaign(tmp_path, LAB, NAMES)
    assert len(still) == total == POINTS


@pytest.mark.parametrize("answer", [inference.YES, inference.NO, inference.NO_DIFFERENCE])
def test_an_answer_closes_a_point(known, tmp_path, answer):
    known(*everywhere(pays=answer))
    assert looks.for_campaign(tmp_path, LAB, NAMES) == ([], POINTS)


def test_undecided_points_say_how_many_starts_are_missing(known, tmp_path):
    rows = everywhere()
    rows[0] |= dict(pays=inference.UNDECIDED)
    rows[1] |= dict(pays=inference.UNDECIDED, speed_up=1.031)
    known(*rows)
    still, total = looks.for_campaign(tmp_path, LAB, NAMES)
    first, second = (Load(r["workload"], r["concurrency"]) for r in rows[:2])
    assert still == [Open("vllm-ngram", first, 2), Open("vllm-ngram", second, None)] and total == POINTS


def test_bases_beside_each_other_are_no_points(known, tmp_path):
    known(*everywhere())
    assert looks.for_campaign(tmp_path, LAB, ["llamacpp-base", *NAMES])[1] == POINTS
    assert looks.for_campaign(tmp_path, LAB, ["vllm-base"]) == ([], 0)


def test_points_of_configurations_that_are_not_asked_for_are_left_out(known, tmp_path):
    known(*everywhere(), *everywhere(configuration="vllm-eagle3-aligned", pays=inference.UNDECIDED))
    assert looks.for_campaign(tmp_path, LAB, NAMES) == ([], POINTS)


def only_ngram(monkeypatch):
    monkeypatch.setattr(type(LAB), "at_preset", lambda self, preset: NAMES)


def test_a_plan_says_what_the_next_hour_buys(known, tmp_path, monkeypatch):
    only_ngram(monkeypatch)
    rows = everywhere()
    rows[0] |= dict(pays=inference.UNDECIDED)  # two more starts
    rows[1] |= dict(pays=inference.UNDECIDED)
    rows[2] |= dict(pays=inference.UNDECIDED, speed_up=1.031)
    known(*rows)
    first, second, third = looks.plan_lines(tmp_path, LAB, "quick", Clock())
    assert first == f"{POINTS - 3} of {POINTS} points are decided by the runs that are there; 3 are open"
    # Two points, two starts each: 20 s of cells, and half of the 60 s that both share.
    assert second == "about 3 min more would decide 2 of them (report --more)"
    assert third.startswith("1 are so near the margin that no number of starts")


def test_a_plan_with_nothing_open_is_one_line(known, tmp_path, monkeypatch):
    only_ngram(monkeypatch)
    known(*everywhere())
    lines = looks.plan_lines(tmp_path, LAB, "quick", Clock())
    assert lines == [f"{POINTS} of {POINTS} points are decided by the runs that are there"]


def test_a_plan_without_runs_says_nothing_of_them(tmp_path):
    assert looks.plan_lines(tmp_path, LAB, "quick", Clock()) == []
