"""One cell, in parts, on made-up observations: what makes it void, what its row holds, how counts are taken."""

import dataclasses
from types import SimpleNamespace

import pytest

from runners.measure import cell, cell_key, observation
from runners.measure.base_answers import BaseAnswers, Sample, Text
from runners.measure.cell_context import CellContext
from runners.measure.cell_key import Place
from runners.measure.client import CUT, Loop, Result
from runners.measure.judge import compared, judge
from runners.measure.ledger import Ledger
from runners.measure.observation import Observation
from runners.measure.speeds import speeds
from runners.measure.text_gates import Compared
from runners.profiles import load
from runners.profiles.points import Point
from runners.readers.records import Counters

LAB = load.load("lab-cpu")
TOKENS = LAB.workload.output_tokens
POINT = Point("chat", concurrency=2, repeat=0, round=0, requests=2)
PLACE = Place("20261201-120000", start=1, block=7, order=1)
TEXT = " ".join(f"word{i}" for i in range(20))


def context(tmp_path, name="vllm-base", profile=LAB, **changes):
    return CellContext(profile, name, None, Ledger(tmp_path), {}, SimpleNamespace(), **changes)


def drafting(tmp_path, profile=LAB, name="vllm-eagle3-aligned", **changes):
    """A configuration that speculates."""
    return context(tmp_path, name, profile, base="vllm-base", **changes)


def answer(**changes):
    """A request sent at 0 s, answered from 0.1 s to 1.1 s."""
    whole = Result("p", 0.0, 0.0, 0.1, 1.1, 7, TOKENS, "usage", "length", text=TEXT)
    return dataclasses.replace(whole, **changes)


COUNTS = Counters(steps=30, drafted=90, accepted=60, accepted_per_position=[30, 20, 10], output_tokens=2 * TOKENS)


def seen(**changes):
    """A cell without a fault: two answers at once in 1.2 s."""
    good = Observation(
        "2026-01-01T00:00:00+00:00",
        Loop([answer(), answer()], seconds=1.2, client_cpu_s=0.01),
        before=Counters(running=0, queued=0),
        after=Counters(running=0, queued=0),
        counts=COUNTS,
        running_peak=2.0,
        server_cores=1.5,
        distinct_bigrams=1.0,
        to_base=[Compared("p", 90, 90), Compared("p", 90, 90)],
    )
    return dataclasses.replace(good, **changes)


def test_a_cell_without_a_fault_is_ok(tmp_path):
    assert judge(seen(), context(tmp_path), POINT) == []
    assert judge(seen(), drafting(tmp_path), POINT) == []


def loop(*results, cpu=0.01):
    return Loop(list(results), 1.2, cpu)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"before": None}, "the server's counters could not be read"),
        ({"after": None}, "the server's counters could not be read"),
        ({"count_fault": "counter steps went backwards"}, "counter steps went backwards"),
        ({"before": Counters(running=3, queued=0)}, "the queue was not empty before the cell: 3 running"),
        ({"before": Counters(running=None, queued=1)}, "the queue was not empty before the cell: 0 running"),
        ({"counts": dataclasses.replace(COUNTS, output_tokens=9)}, "the server counted 9 output tokens"),
        ({"death": "out of memory"}, "the server died: out of memory"),
        ({"loop": loop(answer(), answer(error="HTTP 500"))}, "1 of 2 requests failed, first: HTTP 500"),
        ({"loop": loop(answer(), answer(output_tokens=TOKENS - 1))}, f"1 answers are not {TOKENS} tokens long"),
        ({"running_peak": 1.0}, "the server ran 1 requests at once, not 2"),
        ({"running_peak": None}, "the server reported no number of running requests"),
        ({"loop": loop(answer(), answer(), cpu=0.6)}, "the client itself used 50% of a core"),
        ({"distinct_bigrams": 0.1}, "answers repeat themselves"),
        ({"neighbour_cores": 2.0}, "the machine was not quiet: other work used 2 cores"),
        ({"steal_share": 0.5}, "the machine was not quiet: steal 50%"),
        ({"loop": loop(answer(last_token_s=0.1), answer(last_token_s=0.1))}, "no time passed between"),
    ],
)
def test_each_fault_is_one_reason(tmp_path, change, reason):
    (found,) = judge(seen(**change), context(tmp_path), POINT)
    assert found.startswith(reason)


def test_a_mute_server_is_a_stall_unless_it_died(tmp_path):
    mute = seen(loop=loop(answer(first_token_s=None, output_tokens=None, error="no byte for 300 s")), server_cores=0.0)
    assert any(r.startswith("stall") for r in judge(mute, context(tmp_path), POINT))
    died = dataclasses.replace(mute, death="killed")
    reasons = judge(died, context(tmp_path), POINT)
    assert "the server died: killed" in reasons and not any(r.startswith("stall") for r in reasons)


def test_an_attached_servers_neighbours_are_not_judged(tmp_path):
    assert judge(seen(attached=True, neighbour_cores=2.0, server_cores=None), context(tmp_path), POINT) == []


def test_what_a_cut_request_left_behind_is_no_other_user(tmp_path):
    """Of an attached server nobody has said K: its counts by position say how much a step can yield."""
    running = context(tmp_path)  # no K in its configuration
    cut = [answer(role=CUT, output_tokens=None)] * 3
    server = dataclasses.replace(COUNTS, output_tokens=2 * TOKENS + 3 * 2 * 4)
    assert judge(seen(loop=loop(answer(), answer(), *cut), counts=server), running, POINT) == []
    more = dataclasses.replace(server, output_tokens=3 * 2 * 4 + 3 * TOKENS)
    reasons = judge(seen(loop=loop(answer(), answer(), *cut), counts=more), running, POINT)
    assert any("the server counted" in reason for reason in reasons)


TIED = [Compared("p", 90, 90)] * 4 + [Compared("p", 45, 90)] * 12


def test_each_cell_is_judged_on_its_own_texts(tmp_path):
    (found,) = judge(seen(to_base=TIED), drafting(tmp_path), POINT)
    assert found.startswith("12 of 16 answers differ from vllm-base's, which this engine must repeat exactly")
    int4 = drafting(tmp_path, name="llamacpp-eagle3-aligned")
    assert judge(seen(to_base=TIED), int4, POINT) == [], "ties"
    garbage = [Compared("p", 3, 90)] * 16
    assert judge(seen(), int4, POINT) == []
    (found,) = judge(seen(to_base=garbage), int4, POINT)
    assert found.startswith("16 of 16 answers differ from vllm-base's within the first 20 characters")
    (found,) = judge(seen(to_reference=garbage), int4, POINT)
    assert "the reference model's" in found


def test_answers_are_compared_with_the_bases_and_the_references(tmp_path):
    known = drafting(tmp_path, reference_texts={"p": [Text(TEXT + " and on")]})
    known.base_answers.add("chat", 2, [answer()])
    ended = answer(finish_reason="stop")
    found = compared(seen(loop=loop(answer(), ended), to_base=[]), known)
    assert [c.differs for c in found.to_base] == [False, False]
    assert [c.differs for c in found.to_reference] == [False, False], "the reference goes on behind the end of text"


HOT = LAB.model_copy(update={"workload": LAB.workload.model_copy(update={"temperature": 0.7})})
NATURAL = LAB.model_copy(update={"workload": HOT.workload.model_copy(update={"ends": "natural"})})


def sampled(tmp_path, profile=HOT):
    made = drafting(tmp_path, profile)
    made.base_answers = BaseAnswers(samples={("chat", 2): [Sample("p", TEXT, TOKENS)] * 12})
    return made


def test_at_a_temperature_no_texts_are_compared(tmp_path):
    hot = sampled(tmp_path)
    hot.base_answers.full["p"] = [Text("something else altogether")]
    found = compared(seen(to_base=[]), hot)
    assert found.to_base == [] == found.to_reference
    assert judge(found, hot, POINT) == []
    (reason,) = judge(found, drafting(tmp_path, HOT), POINT)
    assert reason.endswith("measure the base first")


def test_at_a_temperature_distributions_are_compared(tmp_path):
    short = [answer(output_tokens=5, finish_reason="stop")] * 12
    cell_of_short = seen(loop=loop(*short), counts=dataclasses.replace(COUNTS, output_tokens=60), to_base=[])
    (reason,) = judge(cell_of_short, sampled(tmp_path, NATURAL), POINT)
    assert reason.startswith("answer lengths differ from vllm-base's: mean 5 tokens")
    (reason,) = judge(cell_of_short, sampled(tmp_path), POINT)
    assert "answers are not 64 tokens long" in reason, "with fixed ends a short answer is a fault of its own"


def test_an_impossible_accept_length(tmp_path):
    (reason,) = judge(seen(counts=dataclasses.replace(COUNTS, steps=10)), drafting(tmp_path), POINT)
    assert reason == "the counters show an accept length of 7.00, which K = 3 cannot give"


def test_a_window_that_was_not_full(tmp_path):
    half = Loop([answer(), answer(last_token_s=0.6)], 1.2, 0.01, window=(0.1, 1.1))
    (reason,) = judge(seen(loop=half), context(tmp_path), POINT)
    assert reason == "mean requests in flight 1.5 of 2 (0.75), floor 0.95"


def test_a_server_that_does_not_speculate_is_named(tmp_path):
    (found,) = judge(seen(counts=dataclasses.replace(COUNTS, drafted=0, accepted=0)), drafting(tmp_path), POINT)
    assert found == "no token was drafted: the server does not speculate"
    # An n-gram drafter may find nothing to draft.
    ngram = drafting(tmp_path, name="vllm-ngram")
    assert judge(seen(counts=dataclasses.replace(COUNTS, drafted=0, accepted=0)), ngram, POINT) == []


def test_speculation_needs_something_to_compare_with(tmp_path):
    no_reference = LAB.model_copy(update={"gates": LAB.gates.model_copy(update={"equal_to_reference_floor": None})})
    (found,) = judge(seen(to_base=[]), drafting(tmp_path, no_reference), POINT)
    assert found.endswith("measure the base first")
    assert judge(seen(to_base=[]), context(tmp_path, profile=no_reference), POINT) == [], "the base itself needs none"


def test_synthetic_acceptance_is_judged_by_its_counters_and_not_by_its_text(tmp_path):
    sweeps = load.load("lab-cpu-sweeps")
    synthetic = context(tmp_path, "llamacpp-forced-3.0", sweeps)
    held = seen(distinct_bigrams=0.0, to_base=[])  # accept length 1 + 60/30
    assert judge(held, synthetic, POINT) == []
    (found,) = judge(dataclasses.replace(held, counts=dataclasses.replace(COUNTS, accepted=0)), synthetic, POINT)
    assert found.endswith("accept length of 3, but the counters show 1.00")


def test_a_rehearsal_does_not_judge_the_client(tmp_path):
    rehearsal = LAB.model_copy(update={"simulated": True})
    busy = seen(loop=loop(answer(), answer(), cpu=0.6))
    assert judge(busy, context(tmp_path, profile=rehearsal), POINT) == []


def test_the_row_of_a_good_cell(tmp_path):
    row = cell.measured_row(drafting(tmp_path), POINT, PLACE, seen(), [])
    assert (row.status, row.reasons, row.attempt, row.concurrency) == ("ok", [], 0, 2)
    assert (row.steps, row.drafted, row.accepted, row.accepted_per_position) == (30, 90, 60, [30, 20, 10])
    assert (row.equal_prefix_share, row.answers_compared, row.answers_that_differ, row.early_differences) == (
        1,
        2,
        0,
        0,
    )
    assert row.reference_share is None
    assert (row.campaign, row.start, row.block, row.order) == ("20261201-120000", 1, 7, 1)
    assert row.settings == cell_key.settings(LAB, "vllm-eagle3-aligned", POINT, None)
    assert row.key == cell_key.key(row.settings, PLACE)
    assert row.depth == LAB.workload.default_preset and row.started_at == "2026-01-01T00:00:00+00:00"


def test_a_void_row_keeps_what_was_measured_and_a_base_has_no_counts_of_speculation(tmp_path):
    row = cell.measured_row(context(tmp_path), POINT, PLACE, seen(), ["the machine was not quiet"])
    assert (row.status, row.reasons) == ("void", ["the machine was not quiet"])
    assert row.steps is None and row.drafted is None and row.acceptance_source is None
    assert row.output_tokens == 2 * TOKENS and row.neighbour_cores == 0.0


def test_the_row_of_a_cell_that_was_never_measured(tmp_path):
    written = cell.never_measured_row(context(tmp_path), POINT, PLACE, "the server died 2 times").as_json()
    assert written["status"] == "void" and written["reasons"] == ["the server died 2 times"]
    assert written["output_tokens"] == 0 and written["tpot_ms_p50"] is None
    assert "running_peak" not in written, "what was not looked at is not written"
    assert list(written)[-3:] == ["status", "reasons", "started_at"]


def test_the_next_attempt_is_counted(tmp_path):
    once = context(tmp_path)
    once.ledger.append(cell.measured_row(once, POINT, PLACE, seen(), ["noise"]), [answer()])
    assert cell.measured_row(once, POINT, PLACE, seen(), []).attempt == 1


def test_speeds():
    # One stream: 0.1 s to the first token and 1 s for the others; a failed request counts nowhere.
    later = answer(intended_s=0.5, sent_s=0.5, first_token_s=0.6, last_token_s=1.6)
    found = speeds(Loop([later, answer(error="broke")], seconds=2.0, client_cpu_s=0.5))
    assert found["output_tokens"] == TOKENS and found["output_tokens_per_second"] == TOKENS / 2
    assert found["ttft_ms_p50"] == 100.0 and found["context_tokens"] == 7.0
    assert found["tpot_ms_p50"] == pytest.approx(1000 / (TOKENS - 1), abs=1e-4)
    burst = speeds(Loop([answer()], seconds=2.0, client_cpu_s=0.5))
    assert burst["ttft_ms_p50"] is None, "the first requests are sent in one burst, which no steady state has"
    assert found["stream_tokens_per_second_p50"] == pytest.approx(TOKENS - 1)
    assert found["client_cpu_us_per_token"] == pytest.approx(0.5e6 / (2 * TOKENS), abs=0.1), "it reads what fails, too"


def test_speeds_of_nothing_are_none():
    found = speeds(Loop([answer(error="broke", output_tokens=None)], seconds=2.0, client_cpu_s=0.5))
    assert found.pop("seconds") == 2.0 and found.pop("output_tokens") == 0
    assert (found.pop("decode_seconds"), found.pop("decode_tokens")) == (0.0, 0) and set(found.values()) == {None}


def test_counts_are_the_difference_of_the_servers_counters(tmp_path):
    before, after = Counters(steps=10, drafted=30, accepted=5), Counters(steps=40, drafted=120, accepted=65)
    found = observation._with_counts(seen(before=before, after=after), drafting(tmp_path), None, None)
    assert (found.counts.steps, found.counts.drafted, found.counts.accepted) == (30, 90, 60)
    assert found.count_fault is None


def test_counts_of_a_restarted_server_mean_nothing(tmp_path):
    found = observation._with_counts(
        seen(before=Counters(steps=10), after=Counters(steps=4)), drafting(tmp_path), None, None
    )
    assert found.counts == Counters() and "the engine restarted" in found.count_fault


def test_counts_that_contradict_each_other_void_the_cell(tmp_path):
    zero, wrong = Counters(steps=0, drafted=0, accepted=0), Counters(steps=10, drafted=30, accepted=31)
    found = observation._with_counts(seen(before=zero, after=wrong), drafting(tmp_path), None, None)
    assert "31 accepted draft tokens, more than the 30 drafted" in found.count_fault
    reasons = judge(found, drafting(tmp_path), POINT)
    assert cell.measured_row(drafting(tmp_path), POINT, PLACE, found, reasons).status == "void"


ELSEWHERE = {"attached": True, "server_cores": None, "before": None, "after": None, "running_peak": None}


@pytest.mark.parametrize("counters", [None, Counters(source="a gateway's own page")])
def test_a_server_elsewhere_without_counters_is_judged_by_what_the_client_saw(tmp_path, counters):
    shown = seen(**(ELSEWHERE | {"before": counters, "after": counters, "counts": Counters()}))
    assert judge(shown, context(tmp_path), POINT) == [] and judge(shown, drafting(tmp_path), POINT) == []
    row = cell.measured_row(drafting(tmp_path), POINT, PLACE, shown, []).as_json()
    assert row["steps"] is None and row["tpot_ms_p50"] > 0
    assert row["not_seen"] == ["its counters (no /metrics): the accept length, and whether others used it meanwhile"]
    assert "not_seen" not in cell.measured_row(drafting(tmp_path), POINT, PLACE, seen(), []).as_json()


def test_counters_that_vanish_between_are_no_matter_of_where_a_server_is(tmp_path):
    vanished = seen(**(ELSEWHERE | {"before": Counters(running=0, queued=0)}))
    assert "the server's counters could not be read" in judge(vanished, context(tmp_path), POINT)


def test_a_server_elsewhere_that_does_not_answer_any_more_is_not_called_dead(tmp_path):
    gone = "http://box:8000 does not answer any more"
    assert judge(seen(attached=True, server_cores=None, death=gone), context(tmp_path), POINT) == [gone]


def test_what_a_server_elsewhere_shows_in_part_is_told(tmp_path):
    shown = seen(attached=True, server_cores=None, counts=Counters(output_tokens=2 * TOKENS), running_peak=None)
    row = cell.measured_row(drafting(tmp_path), POINT, PLACE, shown, []).as_json()
    assert row["not_seen"] == [
        "how many requests it ran at once",
        "how many drafted tokens it accepted (its /metrics has no such counts)",
    ]
    assert "running_peak" in row and cell.measured_row(context(tmp_path), POINT, PLACE, shown, []).not_seen == [
        "how many requests it ran at once"
    ]
