"""vLLM: lines as the 0.32.0 CPU build wrote them, and the older order of the acceptance line."""

from pathlib import Path

import pytest

from runners.readers import vllm

FIXTURES = Path(__file__).parent / "fixtures"
PREFIX = "(APIServer pid=104) INFO 11-29 16:23:28 [metrics.py:120] "
SPEC = (
    "SpecDecoding metrics: Mean acceptance length: 2.60, Accepted throughput: 6.40 tokens/s, Drafted "
    "throughput: 16.00 tokens/s, Accepted: 64 tokens, Drafted: 160 tokens, Per-position acceptance rate: "
    "0.550, 0.450, Avg Draft acceptance rate: 40.0%"
)
UNDECORATED = "INFO 11-29 16:23:28 [metrics.py:87] "
TRACEBACK = "Traceback (most recent call last):"


def read(name):
    with open(FIXTURES / name, newline="\n") as lines:  # carriage returns stay as the engine wrote them
        return vllm.read_log(lines)


def test_a_served_log_with_n_gram_speculation():
    reading = read("vllm_cpu_ngram.log")
    assert reading.outcome == "served" and reading.cause is None  # errors after an orderly stop are none
    names = "importing|starting ranks|loading weights|loading drafter|profiling|starting server|ready"
    assert [p.name for p in reading.phases] == names.split("|")
    assert reading.phases[2].at == "11-29 16:23:13"
    assert reading.running_max == 2
    assert reading.unknown_lines == 0


def test_only_the_engines_own_acceptance_line_is_read():
    reading = read("vllm_cpu_ngram.log")  # holds two echoes of other lengths
    assert [r.accept_length for r in reading.acceptance] == [2.6]
    record = reading.acceptance[0]
    assert (record.accepted, record.drafted, record.definition) == (64, 160, "accepted/drafted")
    assert record.printed_rate == pytest.approx(0.4) and record.recomputed_rate == pytest.approx(0.4)
    assert record.per_position == [0.55, 0.45, 0.35, 0.25]
    assert (record.running, record.queued, record.throughput) == (2, 1, 17.9)


@pytest.mark.parametrize("prefix", [PREFIX, UNDECORATED, UNDECORATED.replace("[", "[v1/spec_decode/")])
def test_acceptance_line_under_each_prefix(prefix):
    record = vllm.acceptance_of(prefix + SPEC)
    assert (record.accept_length, record.accepted, record.drafted) == (2.6, 64, 160)


@pytest.mark.parametrize(
    "line",
    [
        SPEC,
        PREFIX.replace("metrics.py", "logger.py") + SPEC,
        PREFIX + "prompt: '" + SPEC + "'",
        "Generated text: " + PREFIX + SPEC,
        PREFIX + "SpecDecoding metrics: Mean acceptance length: 2.60",
        "",
    ],
)
def test_other_lines_are_no_acceptance_lines(line):
    assert vllm.acceptance_of(line) is None


def test_an_acceptance_line_of_a_new_form_is_counted_as_unknown():
    reading = vllm.read_log([PREFIX + "SpecDecoding metrics: Acceptance is 40%\n"])
    assert reading.unknown_lines == 1 and reading.acceptance == []


def test_older_log_rate_first_progress_bars_and_a_death_while_serving():
    reading = read("vllm_old.log")
    busy, idle = reading.acceptance
    assert (busy.accept_length, busy.printed_rate, busy.recomputed_rate) == (1.66, 0.22, 0.22)
    assert idle.idle and idle.printed_rate is None and idle.recomputed_rate is None and idle.per_position is None
    assert reading.generation == "acceptance line with rate first"
    assert [p.name for p in reading.phases][-3:] == ["loading weights", "capturing graphs", "ready"]
    assert reading.unknown_lines == 0  # bars redrawn by carriage returns, one with a log line glued behind it
    assert (reading.outcome, reading.cause_kind) == ("dead", "engine dead mid-run")
    assert reading.cause == (
        "vllm failed while serving: AttributeError: 'torch._C.Generator' object has no attribute 'set_offset'"
    )


def test_interleaved_tracebacks_of_ranks_give_the_real_one():
    reading = read("vllm_ranks.log")
    # Rank 0 lost its peer and said so first; the launcher's wrappers come last.
    assert reading.outcome == "dead" and reading.cause_kind == "gpu out of memory"
    assert reading.cause.startswith("Worker_TP1 failed: torch.OutOfMemoryError: CUDA out of memory. Tried to")
    assert reading.advice
    lines = (FIXTURES / "vllm_ranks.log").read_text().splitlines()
    assert vllm.first_error(lines) == (reading.cause, reading.cause_kind)


def test_a_killed_worker_beats_the_launchers_wrappers():
    reading = read("vllm_killed_worker.log")
    assert (reading.outcome, reading.cause_kind) == ("dead", "killed")
    assert "VllmWorker-0 died unexpectedly" in reading.cause


VOCABULARY = "ValueError: Target and draft model should have the same vocabulary size. 49152 != 32000"
DTYPE = "RuntimeError: expected mat1 and mat2 to have the same dtype, but got: float != c10::BFloat16"
STORE = "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 7/8 clients joined."


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("OSError: [Errno 98] Address already in use", "port in use"),
        ("MemoryError: out", "host out of memory"),
        ("ValueError: No available memory for the cache blocks. Try increasing it.", "gpu out of memory"),
        (VOCABULARY, "vocabulary mismatch"),
        (DTYPE, "dtype"),
        (STORE, "rank time-out"),
        ("KeyError: 'layers.0.hidden_norm.weight'", "other"),
    ],
)
def test_kinds_of_a_start_that_raised(error, kind):
    reading = vllm.read_log([TRACEBACK, '  File "/venv/x.py", line 1, in f', "    f()", error])
    assert (reading.outcome, reading.cause_kind) == ("dead", kind)
    assert error.split(":")[0] in reading.cause


def test_an_error_in_the_drafters_code_is_a_draft_load():
    frame = '  File "/venv/vllm/v1/spec_decode/eagle.py", line 9, in load_model'
    assert vllm.first_error([TRACEBACK, frame, "KeyError: 'layers.0.hidden_norm.weight'"])[1] == "draft load"


def test_pydantic_says_what_is_wrong_on_the_next_line():
    lines = [
        TRACEBACK,
        '  File "/venv/a.py", line 1, in b',
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig",
        "  Value error, User-specified max_model_len (4096) is greater than the derived max_model_len (512). "
        "To allow overriding this maximum, set the env var VLLM_ALLOW_LONG_MAX_MODEL_LEN=1. [type=error]",
    ]
    reading = vllm.read_log(lines)
    assert reading.cause_kind == "context overrun"
    assert "User-specified max_model_len (4096) is greater" in reading.cause
    assert reading.advice.endswith("VLLM_ALLOW_LONG_MAX_MODEL_LEN=1.")


def test_what_a_start_survived_is_not_why_it_died_later():
    error = "(Worker pid=3) ERROR 11-29 16:24:56 [x.py:3] "
    lines = [
        error + TRACEBACK,
        error + "ImportError: no flash attention",
        "INFO:     Application startup complete.",
        error + TRACEBACK,
        error + "IndexError: 7",
        "(EngineCore pid=2) ERROR 11-29 16:24:56 [core.py:1512] EngineCore encountered a fatal error.",
    ]
    assert vllm.first_error(lines) == ("Worker failed while serving: IndexError: 7", "engine dead mid-run")
    assert "ImportError" in vllm.first_error(lines[:3])[0]


def test_warnings_ignored_exceptions_and_caught_ones_are_no_death():
    lines = [
        "Exception ignored in: <function Pool.__del__ at 0x7f>",
        "Traceback (most recent call last):",
        "AttributeError: 'NoneType' object has no attribute 'close'",
        "(Worker pid=3) WARNING 11-29 16:24:56 [x.py:3] Traceback (most recent call last):",
        "(Worker pid=3) WARNING 11-29 16:24:56 [x.py:3] ImportError: no flash attention",
        "INFO:     Application startup complete.",
    ]
    reading = vllm.read_log(lines)
    assert (reading.outcome, reading.cause) == ("ready", None)


def test_a_second_start_in_the_same_log_is_seen():
    with open(FIXTURES / "vllm_cpu_ngram.log") as log:
        lines = log.readlines()
    twice = vllm.read_log(lines + lines)
    names = [p.name for p in twice.phases]
    assert names.count("ready") == 2 and names[7] == "restarted"
    assert twice.outcome == "served"
    death = "(EngineCore pid=2) ERROR 11-29 16:24:56 [core.py:1512] EngineCore encountered a fatal error."
    assert vllm.read_log([*lines, *lines[:18], death]).outcome == "dead"  # the first run's stop is forgotten


def test_counters_are_summed_over_engines_and_unix_times_left_out():
    before = vllm.read_counters((FIXTURES / "vllm_metrics_before.txt").read_text())
    after = vllm.read_counters((FIXTURES / "vllm_metrics_after.txt").read_text())
    assert (before.steps, before.drafted, before.accepted, before.output_tokens) == (50, 150, 60, 110)
    assert (after.running, after.queued) == (3.0, 4.0)
    done = after.since(before)
    assert (done.steps, done.drafted, done.accepted, done.output_tokens) == (50, 150, 40, 131)
    assert done.accepted_per_position == [25, 12, 3] and sum(done.accepted_per_position) == done.accepted
    assert done.source == "vllm /metrics"


def test_without_speculation_counts_are_absent_not_zero():
    text = 'vllm:generation_tokens_total{engine="0"} 5.0\nvllm:num_requests_running{engine="0"} 0.0\n'
    counters = vllm.read_counters(text)
    assert (counters.steps, counters.drafted, counters.accepted_per_position) == (None, None, None)
    assert (counters.output_tokens, counters.running, counters.queued) == (5, 0.0, None)
