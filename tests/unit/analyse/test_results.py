"""Reading ledgers: attempts, voids, what is missing, and errors that name file and line."""

import json

import pandas as pd
import pytest
import synthetic_runs

from runners.analyse import results
from runners.core import format
from runners.core.errors import UserError
from runners.measure import campaign_record
from runners.profiles import load
from runners.report.chapters import comparison as comparison_chapter

PROFILE = synthetic_runs.PROFILE


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return synthetic_runs.write(tmp_path_factory.mktemp("runs"), repeats=3, prompts=16)


def test_one_row_a_key_and_the_ok_attempt_wins(runs):
    cells = results.cells(runs, PROFILE)
    assert not cells.key.duplicated().any()
    assert len(cells) == 5 * 2 * 3 * 3
    retried = cells[cells.attempts > 1]
    assert retried.configuration.tolist() == ["vllm-base"]
    assert retried.status.tolist() == ["ok"] and retried.attempt.tolist() == [2]


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [(["void", "ok"], 1), (["ok", "void"], 0), (["void", "void"], 1), (["ok", "ok"], 1)],
)
def test_resolve_takes_the_last_ok_else_the_last(statuses, expected):
    rows = [{"key": "a", "status": s, "n": i} for i, s in enumerate(statuses)]
    assert [r["n"] for r in results.resolve(rows)] == [expected]


def test_void_cells_stay_with_their_reason(runs):
    cells = results.cells(runs, PROFILE)
    void = comparison_chapter.void_table(cells)
    assert void.configuration.tolist() == ["llamacpp-ngram"]
    assert void.reason.iloc[0].startswith("machine busy") and void["raw tok/s"].iloc[0] > 0
    assert len(results.ok(cells)) == len(cells) - 1


def test_order_is_engine_then_base_first(runs):
    names = list(dict.fromkeys(results.cells(runs, PROFILE).configuration))
    assert names == [
        "llamacpp-base",
        "llamacpp-ngram",
        "llamacpp-eagle3-untrained",
        "vllm-base",
        "vllm-ngram",
    ]


def test_requests_belong_to_the_chosen_attempt(runs):
    requests = results.requests(runs, PROFILE)
    assert len(requests) == 5 * 2 * 3 * 3 * 16
    assert set(requests[requests.key == "vllm-base-chat-c4-r0"].attempt) == {2}
    assert set(results.requests(runs, PROFILE, "vllm-ngram").configuration) == {"vllm-ngram"}


def test_statuses_tell_what_is_not_measured_here(runs):
    statuses = results.statuses(runs, PROFILE).set_index("configuration")
    assert statuses.status["vllm-base"] == "measured"
    assert statuses.status["vllm-eagle3-untrained"] == format.NOT_MEASURED
    assert statuses.reason["vllm-eagle3-untrained"] == "the engine could not be installed"
    assert statuses["void cells"].sum() == 1


def test_nothing_measured_gives_empty_frames_with_columns(tmp_path):
    cells = results.cells(tmp_path, PROFILE)
    assert cells.empty and {*results.FIXED, "attempts", "reason"} <= set(cells.columns)
    assert results.requests(tmp_path, PROFILE).columns.tolist() == results.REQUEST_COLUMNS
    statuses = results.statuses(tmp_path, PROFILE)
    assert len(statuses) == len(load.load(PROFILE).configurations) and set(statuses.status) == {format.NOT_MEASURED}
    assert results.statuses(tmp_path, "no-such-profile").empty


NAMES = {"configuration": "vllm-base", "engine": "vllm", "method": "none", "workload": "chat"}


def _ledger(tmp_path, *lines):
    folder = tmp_path / PROFILE / "vllm-base"
    folder.mkdir(parents=True)
    (folder / "cells.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{oops", "vllm-base/cells.jsonl, line 2 is not JSON"),
        ("[1]", "line 2 must be a JSON object"),
        (json.dumps({"key": "b", "schema_version": 2}), "line 2 has schema_version 2"),
    ],
)
def test_bad_lines_are_named(tmp_path, line, said):
    good = json.dumps({"key": "a", "schema_version": 1, "concurrency": 1, "repeat": 0, "status": "ok"} | NAMES)
    with pytest.raises(UserError, match=said):
        results.cells(_ledger(tmp_path, good, line), PROFILE)


def test_unknown_fields_are_kept_as_they_are(tmp_path):
    row = {"key": "a", "schema_version": 1, "concurrency": 1, "repeat": 0, "status": "ok", "something_new": {"a": 1}}
    row |= NAMES
    cells = results.cells(_ledger(tmp_path, json.dumps(row)), PROFILE)
    assert cells.something_new.iloc[0] == {"a": 1}
    assert pd.isna(cells.k.iloc[0])


def test_unreadable_parquet_is_a_user_error(tmp_path):
    row = json.dumps({"key": "a", "schema_version": 1, "concurrency": 1, "repeat": 0, "status": "ok"})
    root = _ledger(tmp_path, row)
    (root / PROFILE / "vllm-base" / "requests.parquet").write_bytes(b"no parquet")
    with pytest.raises(UserError, match=r"vllm-base/requests.parquet cannot be read"):
        results.requests(root, PROFILE)


def test_points_come_from_profile_and_ledger(runs):
    points = results.points(PROFILE, results.cells(runs, PROFILE))
    assert ("chat", 1) in points and ("all", 16) in points and len(points) == 9


def test_slug():
    assert format.slug("sglang-eagle3-aq-medai") == "sglang_eagle3_aq_medai"


def test_a_row_knows_how_often_its_campaign_may_look(tmp_path):
    runs = synthetic_runs.write(tmp_path, repeats=1, prompts=2)
    assert results.cells(runs, synthetic_runs.PROFILE).most_starts.isna().all()
    path = runs / synthetic_runs.PROFILE / "vllm-base" / "cells.jsonl"
    rows = [json.loads(line) | {"campaign": "one", "start": 1, "block": 3} for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    one = campaign_record.Campaign("one", 1, "quick", "2026-12-01T00:00:00Z", 6)
    campaign_record.save(runs / synthetic_runs.PROFILE, [one])
    found = results.cells(runs, synthetic_runs.PROFILE)
    assert set(found[found.configuration == "vllm-base"].most_starts) == {6.0}
    assert found[found.configuration == "vllm-ngram"].most_starts.isna().all()
