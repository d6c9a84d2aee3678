"""vLLM: lines as the 0.32.0 CPU build wrote them, and the older order of the acceptance line."""

from pathlib import Path

import pytest

from runners.readers import vllm
from runners.readers.read_text import read_text

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
    assert reading.outcome == "stopped" and reading.cause is None  # errors after an orderly stop are none
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
    assert twice.outcome == "stopped"
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


def test_accepted_tokens_are_the_sum_over_positions_where_nothing_else_counts_them():
    rows = "".join(
        f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{engine="{e}",position="{p}"}} {n}\n'
        for e, p, n in ((0, 0, 60), (0, 1, 30), (1, 0, 7))
    )
    counters = vllm.read_counters(rows)
    assert (counters.accepted, counters.accepted_per_position) == (97, [67, 30])


@pytest.mark.parametrize(
    "prefix",
    [
        "(ApiServer_0 pid=1) (Worker_TP3 pid=9) INFO 03-11 06:16:52 [metrics.py:100] ",
        "(RayWorkerWrapper pid=9, ip=10.0.0.2) INFO 03-11 06:16:52 [metrics.py:100] ",
        "INFO 03-11 06:16:52 metrics.py:100] ",
        "INFO 2026-03-11 06:16:52.123 [v1/spec_decode/metrics.py:100] ",
    ],
)
def test_prefixes_of_several_processes_and_of_early_releases(prefix):
    reading = vllm.read_log([prefix + SPEC])
    assert reading.unknown_lines == 0 and reading.acceptance[0].accept_length == 2.6
    assert vllm.acceptance_of(prefix + SPEC).accepted == 64


def test_an_acceptance_line_cut_out_of_its_log_is_read():
    (record,) = vllm.read_log([SPEC]).acceptance
    assert record.accepted == 64
    (record,) = vllm.read_log([SPEC.partition(", Accepted: ")[0]]).acceptance
    assert (record.accept_length, record.accepted, record.recomputed_rate) == (2.6, None, None)
    assert vllm.read_log([PREFIX + SPEC.partition(", Accepted: ")[0]]).unknown_lines == 1


def test_what_a_process_says_in_no_known_form_is_unknown():
    reading = vllm.read_log(["(Worker_TP3 pid=9) hello", "(Worker_TP3 pid=9) INFO 03-11 06:16:52 [x.py:1] hello"])
    assert (reading.unknown_lines, reading.unknown_examples) == (1, ["(Worker_TP3 pid=9) hello"])


def test_the_cause_names_the_process_nearest_to_it():
    both = "(ApiServer_0 pid=1) (Worker_TP3 pid=9) ERROR 03-11 06:16:52 [x.py:1] "
    assert vllm.first_error([both + TRACEBACK, both + "KeyError: 7"])[0] == "Worker_TP3 failed: KeyError: 7"


def test_counts_of_the_v0_engine_are_since_its_start():
    form = (
        "INFO 03-11 06:16:5{} metrics.py:477] Speculative metrics: Draft acceptance rate: 0.750, System efficiency: "
        "0.500, Number of speculative tokens: 3, Number of accepted tokens: {}, Number of draft tokens: {}, Number of "
        "emitted tokens: {}."
    )
    engine = (
        "INFO 03-11 06:16:50 metrics.py:455] Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 9.0 "
        "tokens/s, Running: 2 reqs, Swapped: 0 reqs, Pending: 1 reqs, GPU KV cache usage: 0.1%."
    )
    reading = vllm.read_log([engine, form.format(1, 20, 30, 16), engine, form.format(2, 24, 60, 30)])
    first, second = reading.acceptance
    # 10 steps emitted 16 tokens, the next 10 steps 14.
    assert (first.accepted, first.drafted, first.accept_length) == (6, 30, 1.6)
    assert (second.accepted, second.drafted, second.accept_length) == (4, 30, 1.4)
    assert (first.running, first.queued, first.printed_rate) == (2, 1, 0.75)
    assert first.recomputed_rate == pytest.approx(0.2) and "alone" in first.definition
    assert reading.unknown_lines == 0 and reading.running_max == 2


def test_running_requests_are_summed_over_data_parallel_engines():
    form = (
        "(APIServer pid=1) INFO 03-11 06:16:52 [loggers.py:271] Engine {:03d}: Avg prompt throughput: 1.0 tokens/s, "
        "Avg generation throughput: 9.0 tokens/s, Running: {} reqs, Waiting: 0 reqs, GPU KV cache usage: 0.1%"
    )
    lines = [form.format(*pair) for pair in ((0, 51), (1, 31), (0, 40), (1, 20))]
    assert vllm.read_log(lines).running_max == 82
    slow = [line.replace("loggers.py", "metrics.py") for line in lines]  # no usual line
    assert vllm.read_log(slow).running_max == 82
    assert vllm.read_log([form.replace("Engine {:03d}", "2 Engines Aggregated").format(82)]).running_max == 82


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        ("INFO 03-11 06:16:52 [gpu_model_runner.py:9] Graph capturing finished in 26 secs, took 0.59 GiB", 26),
        ("INFO 03-11 06:16:52 [model_runner.py:9] Graph capturing finished in 26 secs.", 26),
    ],
)
def test_the_capture_of_graphs_is_a_phase_with_its_seconds(line, seconds):
    (phase,) = vllm.read_log([line]).phases
    assert (phase.name, phase.seconds, phase.at) == ("capturing graphs", seconds, "03-11 06:16:52")


def test_loading_has_the_seconds_of_its_slowest_rank():
    begin = "INFO 03-11 06:16:52 [gpu_model_runner.py:9] "
    lines = [
        begin + "Starting to load model m...",
        begin + "Loading weights took 11.50 seconds",
        begin + "Model loading took 15.2 GiB memory and 13.5 seconds",
        begin + "Model loading took 15.2 GiB memory and 12.5 seconds",
    ]
    phases = vllm.read_log(lines).phases
    assert [(p.name, p.seconds) for p in phases] == [("loading weights", 13.5), ("profiling", None)]


ERROR = "(Worker_TP0 pid=9) ERROR 03-11 06:16:52 [multiproc_executor.py:9] "
STOP = "(APIServer pid=1) INFO 03-11 06:16:59 [launcher.py:254] [shutdown] API server: shutdown triggered"
ENGINE_LINE = (
    "(APIServer pid=1) INFO 03-11 06:16:5{} [loggers.py:271] Engine 000: Avg prompt throughput: {} tokens/s, Avg "
    "generation throughput: {} tokens/s, Running: {} reqs, Waiting: 0 reqs, GPU KV cache usage: 0.1%"
)
BUSY = ENGINE_LINE.format(2, "1.0", "9.0", 3)
ANSWER = 'INFO:     127.0.0.1:4 - "POST /v1/completions HTTP/1.1" 200 OK'


@pytest.mark.parametrize(
    ("lines", "outcome"),
    [
        ([PREFIX + SPEC, ERROR + "WorkerProc hit an exception."], "dead"),
        ([PREFIX + SPEC, ERROR + "WorkerProc hit an exception.", ERROR + TRACEBACK, ERROR + "IndexError: 7"], "dead"),
        ([BUSY, ANSWER, BUSY], "served"),
        ([ANSWER, ANSWER], "served"),
        ([ENGINE_LINE.format(1, "0.0", "0.0", 0)] * 2, "not in this text"),
        ([BUSY, ANSWER, STOP, "INFO:     Shutting down"], "stopped"),
        (["INFO:     Application startup complete.", "INFO:     Shutting down"], "stopped"),
    ],
)
def test_the_outcome_of_a_text_without_its_start(lines, outcome):
    reading = vllm.read_log(lines)
    assert reading.outcome == outcome and reading.excerpt


def test_an_exception_without_its_traceback_is_the_cause():
    reading = vllm.read_log(["(APIServer pid=1) NotImplementedError: no such layer"])
    assert (reading.outcome, reading.cause) == ("dead", "APIServer failed: NotImplementedError: no such layer")
    wrapped = ["RuntimeError: shape", "RuntimeError: Engine core initialization failed. See root cause above."]
    assert vllm.first_error(wrapped)[0] == "vllm failed: RuntimeError: shape"
    assert vllm.read_log(wrapped).outcome == "dead"
    whole = [wrapped[0], TRACEBACK, "KeyError: 7"]
    assert vllm.first_error(whole)[0] == "vllm failed: KeyError: 7"  # a traceback tells more


def test_pydantic_says_what_is_wrong_without_a_traceback_too():
    who = "(APIServer pid=1) "
    error = "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig"
    found = vllm.first_error([who + error, who + "  Value error, max_model_len is too large"])
    assert "max_model_len" in found[0] and found[1] == "context overrun"


def test_an_exception_that_somebody_printed_and_went_on_from_is_no_death():
    line = "(APIServer pid=1) ImportError: no fast kernels"
    start = "(APIServer pid=1) INFO 03-11 06:16:52 [core.py:1] Initializing a V1 LLM engine (v0.32.0)"
    assert vllm.read_log([line, start]).outcome == "starting"
    request = "(APIServer pid=1) ERROR 03-11 06:16:59 [serving.py:1] ValueError: the prompt is too long"
    reading = vllm.read_log(["INFO:     Application startup complete.", request])
    assert (reading.outcome, reading.cause) == (
        "ready",
        "APIServer refused a request while serving: ValueError: the prompt is too long",
    )


WAITS = "(EngineCore pid=2) INFO 03-11 06:{:02d}:00 [shm_broadcast.py:501] No available shared memory broadcast block "
WAITS += "found in 60 seconds. This typically happens when some processes are hanging."
LOADS = "(Worker_TP0 pid=9) INFO 03-11 06:00:00 [gpu_model_runner.py:9] Starting to load model m..."


def test_a_stall_is_suspected_where_nothing_moves_while_the_engine_waits():
    reading = vllm.read_log([LOADS, WAITS.format(10), WAITS.format(11)])
    assert (reading.outcome, reading.no_progress_since) == ("starting", "03-11 06:00:00")
    assert reading.waits_for == "a worker's step, for 11 min or more"
    assert reading.advice.startswith("Suspected stall") and reading.cause is None
    alone = vllm.read_log([WAITS.format(10)])
    assert (alone.no_progress_since, alone.waits_for) == ("03-11 06:10:00", "a worker's step, for 60 s or more")


def test_a_stall_that_ended_or_that_is_idleness_is_none():
    later = LOADS.replace("06:00:00", "06:12:00")
    assert vllm.read_log([LOADS, WAITS.format(10), later]).no_progress_since is None
    idle = ENGINE_LINE.format(2, "0.0", "0.0", 0)
    assert vllm.read_log([BUSY, idle, WAITS.format(30)]).no_progress_since is None
    assert vllm.read_log(["INFO:     Application startup complete.", WAITS.format(30)]).no_progress_since is None
    later = BUSY.replace("06:16:52", "06:31:52")
    assert vllm.read_log([BUSY, WAITS.format(30), later]).no_progress_since is None
    assert vllm.read_log([BUSY, WAITS.format(30), STOP]).no_progress_since is None


def test_requests_that_run_without_a_token_are_a_stall():
    nothing = [ENGINE_LINE.replace("06:16:5{}", "06:{}:52").format(m, "0.0", "0.0", 3) for m in (16, 17, 18)]
    reading = vllm.read_log([BUSY, *nothing])
    assert reading.no_progress_since == "03-11 06:16:52" and "2 min" in reading.waits_for
    assert vllm.read_log([BUSY, nothing[0]]).no_progress_since is None
    prompts = [line.replace("prompt throughput: 0.0", "prompt throughput: 8.0") for line in nothing]
    assert vllm.read_log([BUSY, *prompts]).no_progress_since is None


@pytest.mark.parametrize("words", ["send initial message on input socket.", "sendinitial message on input socket."])
def test_a_launcher_that_stopped_waiting_is_told_of_slow_storage(words):
    shards = "(Worker_TP0 pid=9) Loading safetensors checkpoint shards:  25% Completed | 1/4"
    who = "(ApiServer_0 pid=1) "
    lines = [LOADS, shards, who + TRACEBACK, who + f"TimeoutError: Timed out waiting for engines to {words}"]
    reading = vllm.read_log(lines)
    assert (reading.outcome, reading.cause_kind) == ("dead", "ready time-out")
    assert "slow storage" in reading.advice and "time-out" in reading.advice and "all-reduce" not in reading.advice


def test_a_log_of_another_collector_is_read_by_its_engines_process():
    lines = [f"(RolloutEngine pid=7) {line}" for line in (LOADS, ERROR + TRACEBACK, ERROR + "KeyError: 7")]
    assert read_text(lines).cause == "Worker_TP0 failed while loading weights: KeyError: 7"


def test_the_kernel_that_killed_a_process_is_the_cause():
    lines = [
        "Mar 11 06:16:52 box kernel: Out of memory: Killed process 77 (python3) total-vm:1kB",
        "Mar 11 06:16:53 box vllm[1]: (APIServer pid=1) ERROR 03-11 06:16:53 [x.py:1] EngineDeadError",
    ]
    for text in (lines, [LOADS, "Killed"]):
        reading = read_text(text)
        assert (reading.outcome, reading.cause_kind) == ("dead", "killed")


def test_throughput_without_speculation_is_told_once_no_acceptance_line_followed():
    assert vllm.read_log([BUSY]).plain_throughputs == []  # one may still come
    assert vllm.read_log([BUSY, BUSY.replace("9.0", "8.0"), ANSWER, BUSY]).plain_throughputs == [9.0, 8.0]
    assert vllm.read_log([BUSY, PREFIX + SPEC, BUSY, BUSY]).plain_throughputs == []
    other = BUSY.replace("Engine 000", "Engine 001")
    assert vllm.read_log([BUSY, other, BUSY, other]).plain_throughputs == [9.0, 18.0, 18.0]


def test_the_steps_without_a_draft_follow_from_the_engine_line():
    engine = (
        "INFO 03-11 06:16:52 [loggers.py:271] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation "
        "throughput: 48.3 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.1%"
    )
    spec = (
        "INFO 03-11 06:16:52 [metrics.py:120] SpecDecoding metrics: Mean acceptance length: 6.11, Accepted throughput: "
        "13.80 tokens/s, Drafted throughput: 15.00 tokens/s, Accepted: 138 tokens, Drafted: 150 tokens, Per-position "
        "acceptance rate: 0.920, Avg Draft acceptance rate: 92.0%"
    )
    records = vllm.read_log([engine, spec]).acceptance
    totals = vllm.totals_of(records)
    assert (totals.steps, totals.drafted, totals.accepted, totals.output_tokens) == (27, 150, 138, 483)
    assert vllm.totals_of(vllm.read_log([spec]).acceptance) is None  # the throughput is not in this text
