"""What the next start is for: the order of a first pass, then the open points that the budget can decide."""

import dataclasses
from types import SimpleNamespace

import pytest

from runners.measure import next_start
from runners.measure.campaign_record import Campaign, Visit
from runners.measure.campaign_run import Open, Run
from runners.measure.estimate import Estimate
from runners.profiles import load, points
from runners.profiles.points import Comparison, Load

LAB = load.load("lab-cpu")
NAMES = ["llamacpp-base", "llamacpp-ngram", "llamacpp-eagle3-aligned", "vllm-base", "vllm-ngram", "vllm-eagle3-aligned"]
PAIR, OTHER = Comparison("vllm-base", "vllm-ngram"), Comparison("vllm-base", "vllm-eagle3-aligned")
ACROSS = Comparison("llamacpp-base", "vllm-base")
CHAT, EDIT = Load("chat", 1), Load("edit", 1)


class Clock:
    """A cell takes 10 s and a start 30 s, whatever it is of; `slow` ones take ten times as long."""

    slow: tuple[str, ...] = ()

    def cell(self, name, load):
        return 100.0 if name in self.slow else 10.0

    def start(self, name):
        return 30.0

    def visit(self, sides, loads, alive=()):
        cells = sum(self.cell(n, x) for n in sides for x in loads)
        return Estimate(cells, sum(self.start(n) for n in sides if n not in alive))


def campaign(seed=1, **more):
    return Campaign("c", seed, "quick", "2026-12-01T00:00:00Z", **{"most_starts": 3} | more)


def run(names=NAMES, at_once=2, alive=(), **more):
    """A run of a campaign without servers."""
    pool = SimpleNamespace(at_once=at_once, names=lambda: list(alive))
    compared = points.comparisons(LAB, names)
    return Run(LAB, "quick", None, campaign(**more), compared, pool, Clock(), lambda: None)


def started(this, comparison, *loads):
    """Note a start in the campaign."""
    this.campaign.visits.append(Visit(len(this.campaign.visits), list(comparison.sides), [list(x) for x in loads]))


def compared(plans):
    return [p.comparison for p in plans]


def test_a_first_pass_has_every_comparison_at_every_point_once():
    plans = next_start.first_pass(run())
    assert sorted(compared(plans)) == sorted(points.comparisons(LAB, NAMES))
    assert all(p.loads == points.loads(LAB, p.comparison) for p in plans)


def test_a_first_passes_order_is_the_campaigns_own():
    orders = [compared(next_start.first_pass(run(seed=seed))) for seed in (1, 1, *range(2, 9))]
    assert orders[0] == orders[1] and len({tuple(o) for o in orders}) > 3


@pytest.mark.parametrize("seed", range(8))
def test_comparisons_of_one_base_follow_each_other(seed):
    order = compared(next_start.first_pass(run(seed=seed)))
    bases = [c.base for c in order]
    assert len([1 for a, b in zip(bases, bases[1:], strict=False) if a != b]) == 1, "each base in one stretch"
    last = [c for c in order if c.base == "llamacpp-base"][-1]
    assert last == ACROSS, "next to the other engine's base"


def test_what_was_measured_before_an_interruption_is_not_planned_again():
    this = run()
    done = points.loads(LAB, PAIR)
    started(this, PAIR, *done[:2])
    started(this, OTHER, *done)
    plans = {p.comparison: p.loads for p in next_start.first_pass(this)}
    assert plans[PAIR] == done[2:] and OTHER not in plans


def test_where_one_server_fits_each_configuration_has_its_own_start():
    plans = next_start.first_pass(run(at_once=1))
    assert sorted(c.sides for c in compared(plans)) == sorted((n,) for n in NAMES)


def test_nothing_open_needs_no_start():
    assert next_start.of_open_points(run(), []) == []


def test_the_comparison_with_most_open_points_a_second_is_next():
    found = [Open("vllm-ngram", CHAT, 2), Open("vllm-eagle3-aligned", CHAT, 2), Open("vllm-eagle3-aligned", EDIT, 1)]
    (plan,) = next_start.of_open_points(run(), found)
    assert plan.comparison == OTHER and plan.loads == [CHAT, EDIT]
    slow = run()
    slow.clock.slow = ("vllm-eagle3-aligned",)
    (plan,) = next_start.of_open_points(slow, found)
    assert plan.comparison == PAIR and plan.loads == [CHAT], "two points in 280 s, or one in 80 s"


def test_what_no_number_of_starts_decides_gets_no_start():
    assert next_start.of_open_points(run(), [Open("vllm-ngram", CHAT, None)]) == []
    (plan,) = next_start.of_open_points(run(), [Open("vllm-ngram", CHAT, None), Open("vllm-ngram", EDIT, 9)])
    assert plan.loads == [EDIT]


def test_no_comparison_is_started_more_often_than_the_campaign_allows():
    this, still_open = run(most_starts=2), [Open("vllm-ngram", CHAT, 1)]
    started(this, PAIR, CHAT)
    assert compared(next_start.of_open_points(this, still_open)) == [PAIR]
    started(this, PAIR, CHAT)
    assert next_start.of_open_points(this, still_open) == []
    assert next_start.of_open_points(this, [Open("vllm-eagle3-aligned", CHAT, 1)]), "another one has its own starts"


def test_a_configuration_that_failed_is_not_started_again():
    this = run()
    this.failed["vllm-ngram"] = "no such file"
    assert next_start.of_open_points(this, [Open("vllm-ngram", CHAT, 1)]) == []


def test_what_the_budget_cannot_pay_for_stays_open(monkeypatch):
    said = []
    monkeypatch.setattr(next_start.progress, "say", said.append)
    found = [Open("vllm-ngram", CHAT, 1)]  # two starts and two cells: 80 s
    assert next_start.of_open_points(run(seconds=85.0), found)
    assert next_start.of_open_points(run(seconds=75.0), found) == [] and said == ["1 points stay open: the time is up"]
    assert next_start.of_open_points(run(seconds=85.0), []) == []
    this = run(seconds=1000.0)
    this.spent_before = 950.0
    assert next_start.of_open_points(this, found) == [], "what was spent before an interruption counts"


def test_a_round_starts_both_sides_of_every_open_point():
    found = [Open("vllm-ngram", CHAT, 1), Open("vllm-eagle3-aligned", EDIT, 2)]
    plans = {p.comparison.base: p.loads for p in next_start.of_open_points(run(at_once=1), found)}
    assert plans == {"vllm-base": [CHAT, EDIT], "vllm-ngram": [CHAT], "vllm-eagle3-aligned": [EDIT]}


def test_seconds_follow_the_pace_of_the_starts_that_were_made():
    this = run()
    assert this.paced(100.0) == 100.0
    this.foretold_s, this.took_s = 200.0, 400.0
    assert this.paced(100.0) == pytest.approx(150.0), "twice as slow so far, weighed with two that came as foretold"


def test_a_server_that_is_alive_is_started_anew_for_a_comparison_that_it_has_met():
    this = run(alive=["vllm-base"])
    (plan,) = next_start.of_open_points(this, [Open("vllm-ngram", CHAT, 1)])
    assert this.seconds(plan) == 20 + 30
    this.met[PAIR] = {0}
    assert this.seconds(plan) == 20 + 60


def test_a_start_begins_only_if_one_block_of_it_fits():
    (plan,) = next_start.of_open_points(run(), [Open("vllm-ngram", CHAT, 1)])
    for seconds, begins in ((85.0, True), (55.0, False), (15.0, False)):
        assert run(seconds=seconds).can_begin(plan) is begins, seconds


def test_a_campaign_without_a_budget_has_all_the_time():
    this = run()
    assert this.left() == float("inf")
    limited = dataclasses.replace(this, campaign=campaign(seconds=100.0))
    assert limited.left() < 100.1
