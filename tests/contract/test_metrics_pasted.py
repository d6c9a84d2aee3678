"""Metrics as people paste them: time stamps, exemplars, odd labels, table bars, rows by position alone."""

import pytest

from runners.core.errors import UserError
from runners.readers import prometheus
from runners.readers.registry import reader
from runners.readers.texts import metrics_engine


@pytest.mark.parametrize(
    ("row", "labels", "value"),
    [
        ('vllm:num_requests_running{engine="0"} 22.0 1700000000123', {"engine": "0"}, 22),
        ('vllm:num_requests_running{engine="0"} 22.0 # {trace_id="a"} 1 1700000000.5', {"engine": "0"}, 22),
        ('vllm:num_requests_running{model_name="a}b{c"} 22', {"model_name": "a}b{c"}, 22),
        ('vllm:num_requests_running{model_name="say \\"hi\\", you"} 22', {"model_name": 'say "hi", you'}, 22),
        ('vllm:num_requests_running{engine="0"} | 22', {"engine": "0"}, 22),
        ('| vllm:num_requests_running{engine="0"} | 22 |', {"engine": "0"}, 22),
        ('vllm:num_requests_running{engine="0"}\t22', {"engine": "0"}, 22),
        ("vllm:num_requests_running 2.2e+01", {}, 22),
        ("vllm:num_requests_running | 22", {}, 22),
        ('vllm:num_requests_running {engine="0"} 22', {"engine": "0"}, 22),
    ],
)
def test_a_row_is_read_however_it_was_pasted(row, labels, value):
    (sample,) = prometheus.samples(row + "\n", ["vllm:"])
    assert (sample.name, sample.labels, sample.value) == ("vllm:num_requests_running", labels, value)
    assert prometheus.namespace(row) == "vllm" and metrics_engine([row]) == "vllm"


@pytest.mark.parametrize("row", ["vllm:num_requests_running 1,234", "vllm:num_requests_running soon", "vllm:x{a=1"])
def test_a_line_that_is_no_row_is_refused_alone_and_passed_over_among_rows(row):
    with pytest.raises(UserError, match="metrics text cannot be read"):
        prometheus.samples(row, ["vllm:"])
    found = prometheus.samples(f"{row}\nvllm:y 1\n", ["vllm:"])
    assert [s.name for s in found] == ["vllm:y"]


def test_what_is_not_finite_is_no_value():
    assert prometheus.samples('a{le="+Inf"} 3\na +Inf\na NaN\na -Inf\n') == [prometheus.Sample("a", {"le": "+Inf"}, 3)]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("a 1 1700000000123\na 2 1700000000500\n", 1700000000.5),
        ('a{x="1"} 1 1700000000.25\n', 1700000000.25),
        ('a 1 # {trace_id="b"} 2 1700000000.25\n', None),  # the exemplar's own time
        ("# a 1 1700000000123\na 1\n", None),
    ],
)
def test_rows_may_tell_when_they_were_taken(text, seconds):
    assert prometheus.stamp(text) == seconds


def test_the_start_of_the_process_is_known_where_it_is_exported():
    assert prometheus.started("process_start_time_seconds 1.7e+09\nvllm:x 1\n") == 1.7e9
    assert prometheus.started("vllm:x 1\n") is None


@pytest.mark.parametrize("line", ["INFO 03-11 06:16:52 metrics.py:100] x", "srv  main: 5", "time: 5", "", "vllm: 5"])
def test_a_log_line_is_no_row_of_an_engine(line):
    assert metrics_engine([line]) is None


ROWS = """\
{e}:spec_decode_num_drafts_total{{engine="0"}} 100
{e}:spec_decode_num_drafts_total{{engine="1"}} 50
{e}:spec_decode_num_draft_tokens_total{{engine="0"}} 300
{e}:spec_decode_num_draft_tokens_total{{engine="1"}} 150
{e}:spec_decode_num_accepted_tokens_per_pos_total{{engine="0",position="0"}} 60
{e}:spec_decode_num_accepted_tokens_per_pos_total{{engine="1",position="0"}} 20
{e}:spec_decode_num_accepted_tokens_per_pos_total{{engine="0",position="1"}} 30
"""


@pytest.mark.parametrize("engine", ["vllm", "llamacpp"])
def test_accepted_tokens_follow_from_the_rows_by_position_over_all_engines(engine):
    counters = reader(engine).read_counters(ROWS.format(e=engine))
    assert (counters.steps, counters.drafted, counters.accepted) == (150, 450, 110)
    assert counters.accepted_per_position == [80, 30]


def test_running_requests_of_data_parallel_engines_are_added():
    text = 'vllm:num_requests_running{engine="0"} 51\nvllm:num_requests_running{engine="1"} 31\n'
    assert reader("vllm").read_counters(text).running == 82


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_requests_are_counted_by_their_first_tokens(engine):
    text = f'{engine}:time_to_first_token_seconds_count{{a="1"}} 12\n{engine}:time_to_first_token_seconds_sum 3.5\n'
    assert reader(engine).read_counters(text).requests == 12


def test_scrapes_that_were_appended_to_one_file_are_told_apart():
    one, two = "# TYPE a counter\na 1\nb 2\n", "# TYPE a counter\na 3\nb 4\n"
    assert prometheus.snapshots(one) == [one]
    first, second = prometheus.snapshots(one + two)
    assert prometheus.samples(first)[0].value == 1 and prometheus.samples(second)[1].value == 4
    series = "a 1 1700000000000\na 3 1700000060000\nb 2 1700000000000\nb 4 1700000060000\n"  # one after another
    first, second = prometheus.snapshots(series)
    assert [s.value for s in prometheus.samples(second)] == [3, 4] and prometheus.stamp(first) == 1.7e9
