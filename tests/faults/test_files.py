"""Damaged files of every room: one sentence and exit code 2; a ledger that lost its requests is measured again."""

import json
import shutil

import matrix
import pandas as pd
import pytest
import synthetic_runs

from runners.analyse import request_checks, results
from runners.analyse.verdict import decide, store
from runners.core import checkpoint, files
from runners.core.errors import UserError
from runners.measure import settings_check
from runners.measure.campaign_record import Campaign, Visit
from runners.measure.ledger import Ledger
from runners.profiles import prompt_files
from runners.profiles.load import load

PROFILE, BASE = synthetic_runs.PROFILE, "llamacpp-base"
DEEP, DIGITS = "[" * 20_000 + "]" * 20_000, "1" * 5_000


def faults(found):
    return pytest.mark.parametrize("fault", found, ids=lambda f: f.name)


@pytest.fixture(scope="module")
def whole_runs(tmp_path_factory):
    return synthetic_runs.write(tmp_path_factory.mktemp("whole") / "runs", repeats=1, prompts=4)


@pytest.fixture
def runs(whole_runs, tmp_path):
    return shutil.copytree(whole_runs, tmp_path / "runs")


def damage(path, name):
    """Do to a requests.parquet what its row of the matrix says."""
    whole = path.read_bytes()
    frame = pd.read_parquet(path)
    if name == "torn":
        path.write_bytes(whole[: len(whole) // 2])
    elif name == "empty":
        path.write_bytes(b"")
    elif name == "lacks a column":
        frame.drop(columns="text").to_parquet(path)
    elif name == "a folder":
        path.unlink()
        path.mkdir()
    elif name == "gone":
        path.unlink()
    else:
        frame[frame.key != frame.key.iloc[0]].to_parquet(path)


@faults(matrix.REQUESTS)
def test_requests_that_are_damaged_are_measured_again_and_those_that_are_lost_are_said(runs, fault, capsys):
    ledger = Ledger(runs / PROFILE / BASE)
    rows = ledger.rows()
    damage(ledger.requests_path, fault.name)
    request_checks._say_once.cache_clear()
    if fault.end == matrix.SAID:
        assert ledger.requests_fault() is None
        assert len(results.requests(runs, PROFILE)) and BASE in set(results.cells(runs, PROFILE).configuration)
        assert f"{BASE}/{fault.said}" in capsys.readouterr().err
        return
    for read in (lambda: results.requests(runs, PROFILE), ledger.requests):
        with pytest.raises(UserError) as error:
            read()
        assert f"{BASE}/{fault.said}" in str(error.value) and "measured again" in str(error.value)
    profile = load(PROFILE)
    assert settings_check.damaged(profile, runs, profile.configurations) == [BASE]
    settings_check.set_aside_damaged(profile, runs, [BASE])
    assert fault.said in capsys.readouterr().err
    assert ledger.rows() == [] and len(ledger.requests()) == 0 and ledger.requests_fault() is None
    aside = [json.loads(line) for line in (ledger.folder / "cells.old.jsonl").read_text().splitlines()]
    assert aside == rows, "nothing is thrown away"
    assert BASE not in set(results.requests(runs, PROFILE).configuration)


def test_a_finished_campaign_goes_on_with_what_was_set_aside():
    visits = [Visit(0, ["a", "b"], [["chat", 1]], 60.0), Visit(1, ["a", "c"], [["chat", 1]], 30.0)]
    done = Campaign("id", 1, "quick", "2026", 2, seconds=100.0, spent_s=95.0, finished=True, visits=visits)
    done.forget([])
    assert done.finished and done.spent_s == 95.0
    done.forget(["b"])
    assert not done.finished and done.spent_s == 35.0
    assert [v.points for v in done.visits] == [[], [["chat", 1]]] and len(done.visits) == 2


def changed(found, name):
    """A verdict with one thing wrong, as text."""
    answer = next(i for i, a in enumerate(found["answers"]) if a["serve"])
    found["answers"].insert(0, found["answers"].pop(answer))
    if name == "an earlier form":
        return json.dumps({"uses": {"throughput": [1]}, "points": []})
    if name == "nested":
        return json.dumps(found)[:-1] + f', "x": {DEEP}}}'
    if name == "number of 5,000 digits":
        return json.dumps(found)[:-1] + f', "x": {DIGITS}}}'
    if name == "serve is a list":
        found["answers"][0]["serve"] = [1]
    elif name == "unknown use":
        found["answers"][0]["use"] = "sport"
    elif name == "answer without its choice":
        del found["answers"][0]["reason"]
    elif name == "points of texts":
        found["points"][0] = "x"
    elif name == "no text":
        del found["text"]
    else:
        found["points"][0]["step_cost"] = 0
    return json.dumps(found)


@pytest.fixture(scope="module")
def verdict(whole_runs):
    return json.dumps(decide.of(whole_runs, PROFILE))


@pytest.mark.slow
@faults(matrix.VERDICTS)
def test_an_odd_verdict_is_one_sentence(tmp_path, verdict, fault):
    path = store.path_of(tmp_path, PROFILE)
    files.write_atomic(path, verdict.encode())
    assert decide.stored(tmp_path, PROFILE) == json.loads(verdict), "what is written is read"
    path.write_text(changed(json.loads(verdict), fault.name))
    with pytest.raises(UserError) as error:
        decide.stored(tmp_path, PROFILE)
    assert fault.said in one_sentence(error) and f"make report PROFILE={PROFILE}" in str(error.value)


def one_sentence(error):
    text = str(error.value)
    assert text.isprintable() and len(text) < 700
    return text


def text_with(name):
    """The damaged text, as YAML, JSON, or a line of JSON."""
    if name.startswith("nesting"):
        return f'{{"key": {DEEP}}}'
    if name.startswith("digits"):
        return f'{{"key": {DIGITS}}}'
    if name.startswith("an alias"):
        return "key: &a\n  inner: *a\n"
    levels = [f"k{i}: &k{i} [{', '.join([f'*k{i - 1}'] * 10)}]" for i in range(1, 9)]
    return "\n".join(["k0: &k0 [x]", *levels])


READERS = {
    "profile": ("mine.yaml", lambda folder: load(str(folder / "mine.yaml"))),
    "ledger": ("cells.jsonl", lambda folder: Ledger(folder).rows()),
    "timeline": ("timeline.json", lambda folder: Ledger(folder).starts()),
    "config": ("config.json", checkpoint.read_config),
    "prompts": ("own.jsonl", lambda folder: prompt_files.load("own", {"own": str(folder / "own.jsonl")})),
}


@faults(matrix.NESTED)
def test_deep_nesting_and_long_numbers_are_one_sentence(tmp_path, fault):
    name, read = READERS[fault.name.split()[-1]]
    (tmp_path / name).write_text(text_with(fault.name))
    with pytest.raises(UserError) as error:
        read(tmp_path)
    assert fault.said in one_sentence(error)
