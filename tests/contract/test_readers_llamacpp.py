"""llama.cpp: three generations of the acceptance line, its false alarms, its silent loss of speculation."""

from pathlib import Path

import pytest

from runners.readers import llamacpp

FIXTURES = Path(__file__).parent / "fixtures"
SLOT = "0.04.203.423 I slot print_timing: id  1 | task 0 | "
COUNTS = "(  167 accepted /   259 generated)"


def read(name):
    with open(FIXTURES / name, newline="\n") as lines:
        return llamacpp.read_log(lines)


def test_a_served_log_with_an_eagle3_drafter():
    reading = read("llamacpp_new.log")
    # "failed to initialize the context ... (this warning is normal ...)" stands there at error level.
    assert (reading.outcome, reading.cause) == ("stopped", None)
    assert [p.name for p in reading.phases] == [
        "importing",
        "loading weights",
        "loading drafter",
        "making contexts",
        "ready",
    ]
    assert reading.phases[2].at == "0.00.824.615"
    assert reading.running_max == 2  # slots at work together
    assert reading.generation == "draft acceptance"


def test_acceptance_with_the_positions_of_the_next_line():
    first, second = read("llamacpp_new.log").acceptance  # neither of the two echoed prompts
    assert (first.accepted, first.drafted, first.accept_length) == (167, 259, 2.92)
    assert first.per_position == [0.805, 0.632, 0.483]
    assert first.printed_rate == pytest.approx(first.recomputed_rate, abs=1e-5)
    assert (second.accepted, second.drafted, second.accept_length, second.per_position) == (0, 63, 1.0, None)


def test_the_oldest_form_is_read_only_after_its_timing_lines():
    reading = read("llamacpp_old.log")
    old, middle = reading.acceptance  # the echo before the timing lines is not among them
    assert (old.accepted, old.drafted, old.accept_length) == (19, 33, None)
    assert (middle.accept_length, middle.per_position) == (2.92, [0.805, 0.632, 0.483])
    assert reading.generation == "draft acceptance rate"
    assert reading.unknown_lines == 1 and "0.99000" in reading.unknown_examples[0]
    ready = reading.phases[-1]
    assert (ready.name, ready.line) == ("ready", "main: model loaded")  # not "HTTP server is listening"


@pytest.mark.parametrize(
    ("line", "length"),
    [
        (f"{SLOT}draft acceptance = 0.64479 {COUNTS}, mean len =  2.92", 2.92),
        (f"[38957] {SLOT}draft acceptance = 0.64479 {COUNTS}, mean len =  2.92", 2.92),
        (f"slot print_timing: id  1 | task 0 | draft acceptance rate = 0.64479 {COUNTS}", None),
    ],
)
def test_acceptance_line_of_all_builds(line, length):
    record = llamacpp.acceptance_of(line)
    assert (record.accepted, record.drafted, record.accept_length) == (167, 259, length)


@pytest.mark.parametrize(
    "line",
    [
        "draft acceptance rate = 0.64479 " + COUNTS,
        "0.01.600.000 I srv  params_from_: draft acceptance = 0.64479 " + COUNTS,
        "say: slot print_timing: id  1 | task 0 | draft acceptance = 0.64479 " + COUNTS,
        SLOT + "       eval time =    2278.66 ms /    24 tokens",
        "",
    ],
)
def test_other_lines_are_no_acceptance_lines(line):
    assert llamacpp.acceptance_of(line) is None


def test_an_acceptance_line_of_a_new_form_is_counted_as_unknown():
    reading = llamacpp.read_log([SLOT + "draft acceptance: 64%\n"])
    assert reading.unknown_lines == 1 and reading.acceptance == []


def test_a_server_that_lost_its_drafter_lives_and_says_so():
    reading = read("llamacpp_bad_drafter.log")
    assert reading.outcome == "ready" and reading.cause_kind == "draft load"
    assert "draft model is not eagle3" in reading.cause and reading.advice


def test_a_refused_request_is_not_a_failure_of_the_engine():
    lines = [
        "0.01.074.226 I srv          init: model loaded",
        "0.39.752.157 E srv    send_error: task id = 0, error: request (5001 tokens) exceeds the available "
        "context size (1024 tokens), try increasing it",
    ]
    reading = llamacpp.read_log(lines)
    assert (reading.outcome, reading.cause_kind) == ("ready", "context overrun")
    assert reading.cause.startswith("llamacpp refused a request while serving")


def test_a_broken_model_file_gives_the_first_error_not_the_last():
    reading = read("llamacpp_truncated_model.log")
    assert reading.outcome == "dead"
    assert reading.cause.endswith("data is not within the file bounds, model is corrupted or incomplete")
    lines = (FIXTURES / "llamacpp_truncated_model.log").read_text().splitlines()
    assert llamacpp.first_error(lines)[0] == reading.cause


BIND = "0.00.005.989 E srv         start: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 18393"
MALLOC = "ggml_backend_cuda_alloc_buffer: allocating 40 MiB on device 0: cudaMalloc failed: out of memory"


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        ([BIND, "0.00.006.331 E srv          init: exiting due to HTTP server error"], "port in use"),
        (
            ["terminate called after throwing an instance of 'std::bad_alloc'", "  what():  std::bad_alloc"],
            "host out of memory",
        ),
        (["Killed"], "killed"),
        ([MALLOC, "main: exiting due to model loading error"], "gpu out of memory"),
    ],
)
def test_deaths_and_their_kinds(lines, kind):
    reading = llamacpp.read_log(lines)
    assert (reading.outcome, reading.cause_kind) == ("dead", kind)


def test_a_vocabulary_that_does_not_match_is_only_a_warning_there():
    line = (
        "0.00.938.012 W spec         init: draft model vocab must closely match target model to use "
        "speculation but target vocab size 49152 does not match draft vocab size 32000 - difference 17152, "
        "max allowed 128"
    )
    reading = llamacpp.read_log([line])
    assert (reading.outcome, reading.cause_kind) == ("not in this text", "vocabulary mismatch")


def test_counters():
    counters = llamacpp.read_counters((FIXTURES / "llamacpp_metrics.txt").read_text())
    assert (counters.steps, counters.drafted, counters.accepted, counters.output_tokens) == (12, 47, 47, 60)
    assert counters.accepted_per_position == [12, 12, 12, 11]
    assert (counters.running, counters.queued) == (1.0, 2.0)


def test_counters_of_builds_without_speculation_counts():
    counters = llamacpp.read_counters("llamacpp:tokens_predicted_total 60\nllamacpp:requests_processing 0\n")
    assert (counters.steps, counters.accepted, counters.output_tokens, counters.running) == (
        None,
        None,
        60,
        0.0,
    )


def phases(lines):
    return [p.name for p in llamacpp.read_log(lines).phases]


@pytest.mark.parametrize(
    "line",
    [
        "0.04.120.001 I srv  llama_server: model loaded",
        "0.04.120.002 I srv  llama_server: listening on http://127.0.0.1:8080",
        "srv  llama_server: server is listening on http://127.0.0.1:8080",
        "I srv  llama_server: model loaded",
    ],
)
def test_a_server_of_2026_is_ready(line):
    reading = llamacpp.read_log([line])
    assert (reading.outcome, reading.unknown_lines) == ("ready", 0)


def test_an_mtp_context_is_the_drafters_phase():
    line = "0.02.120.001 I srv    load_model: creating MTP draft context against the target model '/m/t.gguf'"
    assert phases([line]) == ["loading drafter"]


STATISTICS = (
    "statistics        draft-mtp: #calls(b,g,a) =    1    345    345, #gen drafts =    345, #acc drafts =   300, "
    "#gen tokens =   1035, #acc tokens =   642, #mean acc len = 2.86, #acc rate/pos = (0.800, 0.600, 0.461), "
    "dur(b,g,a) = 0.001, 20.000, 0.100 ms"
)


HEADS = ["0.09.521.007 I spec common_specu: ", "0.09.521.007 I ", "", "[5123] 0.09.521.007 I "]


@pytest.mark.parametrize("head", HEADS)
def test_statistics_are_counts_since_the_start(head):
    totals = llamacpp.read_log([head + STATISTICS.replace("345", "12").replace("642", "9"), head + STATISTICS]).totals
    assert (totals.steps, totals.drafted, totals.accepted) == (345, 1035, 642)  # the last line, not the sum
    assert totals.accepted_per_position == [276, 207, 159]


def test_statistics_of_several_drafters_and_servers_are_added():
    ngram = "statistics ngram_simple: #calls = 15, #gen drafts = 5, #gen tokens = 187, #acc tokens = 73"
    totals = llamacpp.read_log([STATISTICS, ngram]).totals
    assert (totals.steps, totals.drafted, totals.accepted) == (350, 1222, 715)
    totals = llamacpp.read_log(["[5001] " + ngram, "[5002] " + ngram]).totals
    assert (totals.steps, totals.accepted) == (10, 146)
    alone = llamacpp.read_log([ngram])
    assert alone.unknown_lines == 0 and alone.totals.steps == 5


@pytest.mark.parametrize(
    "line",
    [
        "0.48.339.063 I spec       accept: adaptive n : 2 -> 3 (seq 0, n_draft=3, n_accepted=2)",
        "adaptive draft depth seq 0: 3 -> 4 (n_draft=3, n_accepted=2, n_bucket=1)",
        "0.48.339.063 D spec accept: adaptive draft depth 3 -> 2, cur_drafted=3, cur_accepted=2",
    ],
)
def test_a_change_of_depth_tells_of_one_step(line):
    reading = llamacpp.read_log([line])
    assert (reading.totals.steps, reading.totals.drafted, reading.totals.accepted) == (1, 3, 2)
    assert reading.unknown_lines == 0
    counted = llamacpp.read_log([line, STATISTICS])
    assert counted.totals.steps == 345  # that step is in them


@pytest.mark.parametrize(
    "line",
    [
        "0.01.170.193 W srv    load_model: speculative decoding not supported by this context",
        "0.01.170.193 W common_speculative_init: no implementations specified for speculative decoding",
        "srv    load_model: failed to initialize speculative decoding context: draft model is not eagle3",
    ],
)
def test_a_server_that_serves_without_speculation_says_so(line):
    reading = llamacpp.read_log([line, "0.01.242.203 I srv  llama_server: model loaded"])
    assert reading.outcome == "ready" and "specul" in reading.without_speculation
    drafted = [SLOT + "draft acceptance = 0.64479 " + COUNTS + ", mean len =  2.92"]
    assert llamacpp.read_log([line, *drafted]).without_speculation is None


def test_a_failed_request_is_no_dead_engine():
    lines = [
        "3.28.378.761 E init: the tokens of sequence 0 in the input batch have inconsistent sequence positions:",
        " - the last position stored in the memory module of the context is X = 5",
        "3.28.378.763 E decode: failed to initialize batch",
        "3.28.378.765 E spec flush_deferr: deferred flush failed rc=-1",
        "3.28.378.766 E srv        decode: failed to process speculative batch",
        "3.28.378.807 E srv    send_error: task id = 552, error: decode() failed: failed to process speculative batch",
    ]
    whole = llamacpp.read_log(lines)
    assert whole.outcome != "dead" and "inconsistent sequence positions" in whole.cause
    assert "a request" in whole.cause and whole.unknown_lines == 0
    last = llamacpp.read_log(lines[-1:])
    assert last.outcome != "dead" and "failed at a request" in last.cause
    ready = "0.01.074.226 I srv  llama_server: model loaded"
    assert llamacpp.read_log([ready, *lines]).outcome == "ready"
    # While it loads there is no request: the same words are then why the start failed.
    loading = ["0.00.003.969 I srv    load_model: loading model '/m/t.gguf'", lines[2], "main: exiting due to x"]
    assert "failed to initialize batch" in llamacpp.read_log(loading).cause


def test_answers_tell_how_many_steps_had_no_draft():
    timing = SLOT + "       eval time =    2278.66 ms /   483 tokens (   99.07 ms per token)"
    line = SLOT + "draft acceptance = 0.92000 (  138 accepted /   150 generated), mean len =  6.11"
    totals = llamacpp.read_log([timing, line]).totals
    assert (totals.steps, totals.accepted, totals.output_tokens, totals.requests) == (27, 138, 483, 1)


def test_the_oldest_line_alone_is_an_excerpt():
    reading = llamacpp.read_log(["draft acceptance rate = 0.57576 (   19 accepted /    33 generated)"])
    (record,) = reading.acceptance
    assert (record.accepted, record.drafted, reading.unknown_lines) == (19, 33, 0)


def test_levels_without_times_are_levels():
    line = "I slot print_timing: id  1 | task 0 | draft acceptance = 0.64479 " + COUNTS + ", mean len =  2.92"
    reading = llamacpp.read_log([line, "E srv    load_model: failed to create MTP context"])
    assert reading.acceptance[0].accepted == 167 and "failed to create MTP context" in reading.cause
