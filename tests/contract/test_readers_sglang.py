"""SGLang: both generations of the accept rate, ranks, server_info and meta_info."""

from pathlib import Path

import pytest

from runners.readers import sglang

FIXTURES = Path(__file__).parent / "fixtures"
OLD, NEW = "accept_len/num_draft_tokens", "(accept_len-1)/(num_draft_tokens-1)"


def read(name, **more):
    with open(FIXTURES / name, newline="\n") as lines:  # carriage returns stay as the engine wrote them
        return sglang.read_log(lines, **more)


def decode(fields, head="[2026-01-31 10:00:17 TP0] Decode batch, "):
    usage = "#running-req: 4, #token: 9, token usage: 0.02, "
    return f"{head}{usage}{fields}gen throughput (token/s): 8.50, #queue-req: 2"


def test_the_old_generation_counts_the_bonus_token():
    reading = read("sglang_0_5_9_eagle3.log")
    assert reading.generation == "accept rate up to 0.5.10.post1"
    assert [r.definition for r in reading.acceptance] == [OLD] * 3
    assert [r.printed_rate for r in reading.acceptance] == [0.41, 0.41, 0.25]
    # 0.25 at length 1.00 is the floor: nothing accepted.
    assert [r.recomputed_rate for r in reading.acceptance] == pytest.approx([0.62 / 3, 0.65 / 3, 0.0])
    assert reading.running_max == 48  # not the 999 of an echoed prompt


def test_throughput_right_after_idle_is_marked():
    assert [r.idle for r in read("sglang_0_5_9_eagle3.log").acceptance] == [True, False, False]


def test_phases_with_a_drafter_and_many_ranks():
    phases = read("sglang_0_5_9_eagle3.log").phases
    assert [p.name for p in phases] == [
        "starting",
        "joining ranks",
        "loading weights",
        "allocating memory",
        "capturing graphs",
        "loading drafter",
        "capturing drafter graphs",
        "warming up",
        "ready",
    ]
    assert phases[2].at == "2026-01-31 10:00:03"


def test_bars_are_known_and_a_torn_decode_line_is_unknown():
    reading = read("sglang_0_5_9_eagle3.log")
    assert reading.outcome == "served"
    assert reading.unknown_lines == 1 and "token usaccept rate" in reading.unknown_examples[0]


@pytest.mark.parametrize(
    "torn", ["#running-req", "accept len", "accept rate", "gen throughput (token/s)", "#queue-req"]
)
def test_a_field_without_a_value_makes_its_line_unknown(torn):
    fields = {"#running-req": "4", "accept len": "1.65", "accept rate": "0.41", "gen throughput (token/s)": "99.50"}
    fields |= {"#queue-req": "0", torn: ""}
    line = "[2026-02-01 12:00:00 TP0] Decode batch, " + ", ".join(f"{name}: {value}" for name, value in fields.items())
    reading = sglang.read_log([line])
    assert reading.unknown_lines == 1 and not reading.acceptance and sglang.acceptance_of(line) is None


def test_the_new_generation_and_its_extra_fields_in_any_order():
    reading = read("sglang_0_5_23_eagle3.log")
    assert reading.generation == "accept rate from 0.5.11 on"
    assert [(r.accept_length, r.printed_rate, r.recomputed_rate) for r in reading.acceptance] == [
        (1.0, 0.0, 0.0),
        (2.5, 0.5, 0.5),
        (2.5, 0.5, 0.5),
    ]
    assert [(r.running, r.queued) for r in reading.acceptance] == [(1, 0), (1, 0), (3, 2)]
    assert "capturing drafter graphs" in [p.name for p in reading.phases]
    assert (reading.outcome, reading.cause) == ("stopped", None)  # what is said after SIGTERM is no cause


def test_very_old_lines_have_a_length_and_no_rate():
    reading = read("sglang_very_old.log", num_draft_tokens=4)
    (record,) = reading.acceptance
    assert (record.accept_length, record.printed_rate, record.definition) == (1.65, None, "unknown")
    assert record.recomputed_rate == pytest.approx(0.65 / 3)
    assert (reading.outcome, reading.running_max, reading.generation) == ("served", 8, "no accept rate")


@pytest.mark.parametrize(
    "head",
    [
        "[2026-01-31 10:00:17 TP0] Decode batch. ",
        "[2026-01-31 10:00:17] Decode batch [17], ",
        "[2026-01-31 10:00:17.123 DP1 TP0 EP0] Decode batch, ",
        "[10:00:17 TP0] Decode batch. ",
    ],
)
@pytest.mark.parametrize("graph", ["", "cuda graph: True, ", "npu graph: False, ", "pre-allocated usage: 0.10, "])
def test_decode_lines_of_all_builds(head, graph):
    line = decode("accept len: 1.65, accept rate: 0.41, " + graph, head)
    alone, (whole,) = sglang.acceptance_of(line), sglang.read_log([line + "\n"]).acceptance
    for record in (alone, whole):
        assert (record.accept_length, record.printed_rate, record.definition) == (1.65, 0.41, OLD)
        assert (record.running, record.queued, record.throughput) == (4, 2, 8.5)
        assert record.recomputed_rate == pytest.approx(0.65 / 3)
    assert sglang.read_log([decode(graph, head)]).running_max == 4


@pytest.mark.parametrize(
    "line",
    [
        decode(""),  # no speculation
        "prompt: " + decode("accept len: 1.65, accept rate: 0.41, "),
        decode("accept len: 1.65, accept rate: 0.41, ", "Decode batch, "),
        decode("accept len: 1.65, accept rate: 0.41, ", "[user] Decode batch, "),
        decode("block accept len: 1.65, "),
    ],
)
def test_other_lines_are_no_acceptance_lines(line):
    assert sglang.acceptance_of(line) is None


def test_an_ambiguous_line_stays_undecided_until_the_number_is_known():
    line = decode("accept len: 2.00, accept rate: 0.50, ")
    assert sglang.acceptance_of(line).definition == "unknown"
    assert sglang.acceptance_of(line).recomputed_rate is None
    assert sglang.acceptance_of(line, num_draft_tokens=4).definition == OLD
    assert sglang.acceptance_of(line, num_draft_tokens=3).definition == NEW
    assert sglang.acceptance_of(line, num_draft_tokens=3).recomputed_rate == pytest.approx(0.5)


def test_interleaved_ranks_and_a_launcher_that_speaks_first():
    reading = read("sglang_dead_ranks.log")
    assert (reading.outcome, reading.cause_kind) == ("dead", "draft load")
    assert reading.cause == (
        "TP2 failed while loading drafter: AttributeError: 'KimiK25ForConditionalGeneration' object has no "
        "attribute 'get_embed_and_head'"
    )
    assert "drafter" in reading.advice


AT = "[2026-01-31 10:00:09] "
TRACEBACK = "Traceback (most recent call last):"
RANK = f"[2026-01-31 10:00:09 TP3] Scheduler hit an exception: {TRACEBACK}"
DEATHS = {
    "out of GPU memory": (
        [RANK, '  File "/a.py", line 1, in f', "torch.OutOfMemoryError: CUDA out of memory."],
        "gpu out of memory",
        "TP3 failed: torch.OutOfMemoryError",
    ),
    "drafter with a shorter context": (
        [
            RANK,
            "  f()",
            "ValueError: Warning: Target model's context_length (262144) is greater than the derived "
            "context_length (131072). To allow overriding this maximum, set the env var "
            "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1",
        ],
        "context overrun",
        "(262144) is greater",
    ),
    "rank killed, 0.5.9": (
        [
            AT + "Rank 3 scheduler is dead. Please check if there are relevant logs.",
            AT + "Exit code: -9",
            TRACEBACK,
            "EOFError",
        ],
        "killed",
        "Exit code: -9",
    ),
    "rank killed, 0.5.23": (
        [
            TRACEBACK,
            "RuntimeError: Rank 3 scheduler died during initialization (exit code: -9). If exit code is -9 "
            "(SIGKILL), a common cause is the OS OOM killer.",
        ],
        "killed",
        "Rank 3",
    ),
    "rank that exited by itself, 0.5.23": (
        [
            TRACEBACK,
            "RuntimeError: Rank 3 scheduler died during initialization (exit code: 1). If exit code is -9 "
            "(SIGKILL), a common cause is the OS OOM killer.",
        ],
        "other",
        "Rank 3",
    ),
    "watchdog": (
        [
            AT + "Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)",
            AT + "Received sigquit from a child process. It usually means the child failed.",
        ],
        "rank time-out",
        "watchdog",
    ),
    "PyTorch's own rank prefixes": (
        [
            "[rank3]: " + TRACEBACK,
            '[rank3]:   File "/a.py", line 1, in f',
            "[rank0]: " + TRACEBACK,
            '[rank0]:   File "/a.py", line 1, in f',
            "[rank0]: RuntimeError: Connection reset by peer",
            "[rank3]: RuntimeError: expected scalar type BFloat16 but found Half",
        ],
        "dtype",
        "rank 3 failed: RuntimeError: expected",
    ),
}


@pytest.mark.parametrize(("lines", "kind", "words"), DEATHS.values(), ids=DEATHS)
def test_deaths_and_their_kinds(lines, kind, words):
    reading = sglang.read_log(lines)
    assert (reading.outcome, reading.cause_kind) == ("dead", kind)
    assert words in reading.cause


def test_a_death_while_serving():
    lines = [
        "[2026-01-31 10:00:01] The server is fired up and ready to roll!",
        decode(""),
        RANK,
        "  f()",
        "IndexError: 7",
    ]
    reading = sglang.read_log(lines)
    assert (reading.outcome, reading.cause_kind) == ("dead", "engine dead mid-run")
    assert reading.cause == "TP3 failed while serving: IndexError: 7"


def test_gauges_are_taken_once_a_data_parallel_rank():
    counters = sglang.read_counters((FIXTURES / "sglang_metrics.txt").read_text())
    assert (counters.running, counters.queued) == (48.0, 80.0)  # neither tensor ranks nor priorities added
    assert (counters.steps, counters.drafted, counters.accepted, counters.output_tokens) == (
        600,
        None,
        None,
        1000,
    )
    assert counters.gauges["spec_accept_length"] == pytest.approx(1.65)
    assert counters.gauges["gen_throughput"] == 849.0
    assert "spec_accept_rate" not in counters.gauges  # NaN


def test_a_gauge_of_zero_is_no_value():
    assert sglang.read_counters('sglang:spec_accept_length{tp_rank="0"} 0.0\n').gauges == {}


def test_meta_info_under_old_and_new_names():
    old = {
        "spec_verify_ct": 10,
        "spec_accept_token_num": 6,
        "spec_draft_token_num": 30,
        "completion_tokens": 17,
        "spec_accept_histogram": [6, 2, 2],
    }
    new = {
        "spec_verify_ct": 5,
        "spec_num_correct_drafts": 3,
        "spec_num_proposed_drafts": 15,
        "completion_tokens": 9,
        "spec_correct_drafts_histogram": [3, 1, 1],
    }
    counters = sglang.counters_from_meta_info([old, new, {"completion_tokens": 4}])
    assert (counters.steps, counters.accepted, counters.drafted, counters.output_tokens) == (15, 9, 45, 30)
    assert counters.accepted_per_position == [6, 3] and sum(counters.accepted_per_position) == counters.accepted
    merged = sglang.read_counters((FIXTURES / "sglang_metrics.txt").read_text(), meta_info=[old])
    assert (merged.steps, merged.accepted, merged.running) == (10, 6, 48.0)
    assert sglang.counters_from_meta_info([{"completion_tokens": 4}]).accepted is None


def test_server_info_and_its_absences():
    name = "effective_max_running_requests_per_dp"
    info = sglang.read_server_info(
        {
            "version": "0.5.9",
            "speculative_num_draft_tokens": 4,
            "internal_states": [{name: 48, "avg_spec_accept_length": 1.5}, {name: 40}],
        }
    )
    assert info[name] == 40 and info["effective_max_running_requests"] == 88
    assert (info["avg_spec_accept_length"], info["num_draft_tokens"], info["version"]) == (1.5, 4, "0.5.9")
    for silent in ({}, {"internal_states": None}, {"internal_states": [{}]}, {"internal_states": []}):
        assert set(sglang.read_server_info(silent).values()) == {None}


def ranked(rank, second, fields, running=4):
    head = f"[2026-01-31 10:00:{second:02d} {rank}] Decode batch, "
    return decode(fields, head).replace("#running-req: 4", f"#running-req: {running}")


ACCEPTED = "accept len: 1.65, accept rate: 0.41, "


def test_the_first_decode_line_keeps_its_acceptance():
    line = decode("accept len: 1.65, accept rate: 0.41, ").replace("8.50", "0.39")
    (record,) = sglang.read_log([line]).acceptance
    assert (record.accept_length, record.throughput, record.idle) == (1.65, 0.39, True)


def test_idle_is_followed_for_each_data_parallel_rank():
    prefill = "Prefill batch, #new-seq: 1, #new-token: 6, token usage: 0.00, #running-req: 0, #queue-req: 0, "
    lines = [
        ranked("DP0 TP0", 1, ACCEPTED),
        ranked("DP0 TP0", 2, ACCEPTED),
        ranked("DP1 TP0", 3, ACCEPTED),  # its first one
        f"[2026-01-31 10:00:04 DP1 TP0] {prefill}",
        ranked("DP0 TP0", 5, ACCEPTED),  # the pause was of the other rank
        ranked("DP1 TP0", 6, ACCEPTED),
    ]
    assert [r.idle for r in sglang.read_log(lines).acceptance] == [True, False, True, False, True]


@pytest.mark.parametrize("fields", [ACCEPTED, ""])
def test_running_requests_are_added_over_data_parallel_ranks(fields):
    lines = [
        ranked("DP0 TP0", 1, fields, 51),
        ranked("DP1 TP0", 1, fields, 31),
        ranked("DP0 TP0", 9, fields, 20),
        ranked("DP0 TP0", 17, fields, 60),  # the other one has nothing to run
    ]
    assert sglang.read_log(lines).running_max == 82


def test_a_drafter_is_loaded_after_the_targets_graphs_even_if_the_first_load_is_cut_off():
    lines = [
        "[2026-01-31 10:00:07 TP0] Capture cuda graph end. Time elapsed: 19.60 s. avail mem=5.11 GB.",
        "[2026-01-31 10:00:08 TP0] Load weight begin. avail mem=5.11 GB",
    ]
    assert [p.name for p in sglang.read_log(lines).phases] == ["capturing graphs", "loading drafter"]
    replicas = [
        "[2026-01-31 10:00:07 DP0 TP0] Memory pool end. avail mem=6.11 GB",
        "[2026-01-31 10:00:08 DP1 TP0] Load weight begin. avail mem=94.11 GB",
    ]
    assert [p.name for p in sglang.read_log(replicas).phases] == ["allocating memory", "loading weights"]


BARE = "Decode batch. #running-req: 1, #token: 233, accept len: 2.17, gen throughput (token/s): 66.36"


@pytest.mark.parametrize(
    ("line", "running", "length"),
    [
        (BARE, 1, 2.17),
        ("Decode batch. #running-req: 1, ... accept len: 2.17", 1, 2.17),
        ("accept len: 1.00, accept rate: 0.00", None, 1.0),
        ("... accept len: 1.00, accept rate: 0.00", None, 1.0),
    ],
)
def test_a_line_cut_out_of_a_log_is_read_without_its_time(line, running, length):
    reading = sglang.read_log([line])
    (record,) = reading.acceptance
    assert (record.running, record.accept_length, reading.unknown_lines) == (running, length, 0)
    assert reading.running_max == running


def test_such_a_line_in_a_whole_log_is_an_echo():
    reading = sglang.read_log([decode(ACCEPTED), BARE])
    assert len(reading.acceptance) == 1 and reading.unknown_examples == [BARE]


def test_decode_lines_without_speculation_tell_requests_and_throughput():
    reading = sglang.read_log([decode(""), decode(""), decode("")])
    assert reading.acceptance == [] and reading.running_max == 4
    assert reading.plain_throughputs == [8.5, 8.5]  # the first one's interval began before it
