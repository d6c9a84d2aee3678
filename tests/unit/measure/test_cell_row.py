"""The typed row: what it accepts, what it keeps, and that published rows come back byte for byte."""

import json
import time

import pytest
from pydantic import ValidationError

from runners.core import paths
from runners.measure import cell_row
from runners.measure.cell_row import CellRow

# The least that a row of the first release holds.
OLDEST = {
    **{"schema_version": 1, "key": "a", "status": "ok", "concurrency": 1, "repeat": 0},
    **{"configuration": "vllm-base", "engine": "vllm", "method": "none", "workload": "chat"},
}
PUBLISHED = sorted(paths.DATA.glob("**/cells*.jsonl"))
# The contract with other tools: these names never change.
CONTRACT = set(
    """key profile configuration engine engine_version method k workload concurrency context_tokens repeat
    forced_accept_length status reasons requests output_tokens seconds output_tokens_per_second
    stream_tokens_per_second_p50 ttft_ms_p50 tpot_ms_p50 steps drafted accepted accepted_per_position
    max_running_requests count_source started_at""".split()
)


def test_the_fields_that_other_tools_read_keep_their_names():
    assert set(CellRow.model_fields) >= CONTRACT


def test_old_rows_without_newer_fields_are_cells():
    assert cell_row.fault(OLDEST) is None


def test_unknown_fields_are_kept():
    row = CellRow.model_validate(OLDEST | {"weather": {"mean": 3.5}})
    assert row.as_json()["weather"] == {"mean": 3.5}


def test_published_rows_are_written_as_they_are_read():
    lines = [line for path in PUBLISHED for line in path.read_text().splitlines()]
    assert len(lines) > 700
    for line in lines:
        assert json.dumps(CellRow.model_validate(json.loads(line)).as_json(), allow_nan=False) == line


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"concurrency": 0}, "`concurrency` must be greater than or equal to 1"),
        ({"concurrency": True}, "`concurrency` must be a valid integer"),
        ({"steps": -1}, "`steps` must be greater than or equal to 0"),
        ({"seconds": float("inf")}, "`seconds` must be a finite number"),
        ({"seconds": "1.0"}, "`seconds` must be a valid number"),
        ({"status": "good"}, "`status` must be 'ok' or 'void'"),
        ({"accepted_per_position": 3}, "`accepted_per_position` must be a valid list"),
        ({"drafted": 3, "accepted": 4}, "`accepted` (4) must be <= `drafted` (3)"),
    ],
)
def test_what_is_not_a_cell_is_named(change, words):
    assert words in cell_row.fault(OLDEST | change)


def test_a_field_that_must_be_there_is_named():
    assert "`workload` is missing" in cell_row.fault({k: v for k, v in OLDEST.items() if k != "workload"})


def test_a_whole_number_is_an_amount_too():
    assert cell_row.fault(OLDEST | {"seconds": 3, "context_tokens": 80}) is None


def test_a_row_is_not_changed_after_it_was_judged():
    with pytest.raises(ValidationError):
        CellRow.model_validate(OLDEST).status = "void"


def test_checking_a_row_takes_microseconds():
    row = json.loads(PUBLISHED[0].read_text().splitlines()[0])
    began = time.process_time()
    for _ in range(2000):
        cell_row.fault(row)
    # 25 microseconds a row; ten times that would still read 100,000 rows in half a minute.
    assert time.process_time() - began < 0.5
