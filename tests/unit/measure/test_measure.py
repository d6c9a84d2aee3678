"""Measuring a configuration end to end, against the small stand-in program: gates, voids, deaths, resuming."""

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml
from slowness import WAIT_S, slowness

from runners.core import locks
from runners.core.errors import UserError
from runners.measure import cell_key, gates, measure_configuration
from runners.measure.ledger import Ledger
from runners.profiles import load
from runners.serve import from_profile

pytestmark = pytest.mark.slow  # starts servers

FAKE = Path(__file__).parents[2] / "support" / "fake_server.py"


def made(tmp_path, flags=None, **changes):
    """A profile of one base and one speculative configuration on the stand-in."""
    content = {
        "name": "fake",
        "title": "a stand-in",
        "hardware": {"description": "any"},
        "target": {
            **{"name": "toy", "precision": "none", "layers": 1, "hidden_size": 1, "vocab_size": 1},
            **{"context_length": 64, "bytes_on_disk": 1, "path": str(tmp_path)},
        },
        "drafters": {"toy": {"path": str(tmp_path)}},
        "engines": {"vllm": {"version": "0", "command": [sys.executable, str(FAKE)]}},
        "configurations": {
            "base": {"engine": "vllm", "title": "base", "max_running_requests": 4, "flags": flags or {}},
            "drafting": {
                **{"engine": "vllm", "title": "drafting", "method": "eagle3", "k": 3, "drafter": "toy"},
                **{"max_running_requests": 4, "flags": flags or {}},
            },
        },
        "workload": {
            **{"prompt_sets": ["chat"], "output_tokens": 24, "concurrencies": [1, 4], "default_preset": "quick"},
            "presets": {"quick": {"repeats": {1: 1, 4: 2}, "requests": {1: 2, 4: 8}, "rounds": 1}},
        },
        "budgets": {"vllm": {"default": WAIT_S}},
        "request_timeout_seconds": WAIT_S,
        # The stand-in's words repeat and a test machine is never quiet: those gates have their own tests.
        "gates": {"check_neighbours": False, "distinct_bigram_floor": 0.1},
    }
    for path, value in changes.items():
        section = content
        *parts, last = path.split("__")
        for part in parts:
            section = section[part]
        section[last] = value
    file = tmp_path / "fake.yaml"
    file.write_text(yaml.safe_dump(content))
    return load.load(str(file))


SLOW = {"token-s": 0.03}  # slow enough for the gauge to be polled while requests run


@pytest.fixture(autouse=True)
def no_headroom_needed(monkeypatch):
    """A cell of half a second is mostly our own polls: the client's gate has a test of its own (test_gates.py)."""
    monkeypatch.setattr(gates, "HEADROOM", 1)


def test_cells_are_measured_and_never_again(tmp_path):
    p = made(tmp_path, SLOW)
    assert measure_configuration.configuration(p, "base", None, tmp_path).status == "measured"
    ledger = Ledger(tmp_path / "fake" / "base")
    rows = ledger.rows()
    assert [r["status"] for r in rows] == ["ok"] * 3, [r["reasons"] for r in rows]
    assert {(r["concurrency"], r["repeat"]) for r in rows} == {(1, 0), (4, 0), (4, 1)}
    first = rows[0]
    assert first["output_tokens"] == 2 * 24 and first["count_source"] == "usage"
    assert first["machine_gflops"] > 0  # this machine's; an attached server's may be another
    assert first["running_peak"] == 1 and rows[1]["running_peak"] == 4
    assert 20 / slowness() < first["stream_tokens_per_second_p50"] < 34, "a token every 0.03 s, never sooner"
    requests = pd.read_parquet(ledger.folder / "requests.parquet")
    assert len(requests) == 2 + 8 + 8
    assert (requests.first_token_s > requests.sent_s).all() and (requests.last_token_s > requests.first_token_s).all()
    environment = json.loads((ledger.folder / "environment.json").read_text())
    assert str(tmp_path.home()) not in json.dumps(environment["argv"])
    starts = len(ledger.starts())
    measure_configuration.configuration(p, "base", None, tmp_path)
    assert ledger.rows() == rows and len(ledger.starts()) == starts, "no second start for nothing"


def test_only_what_is_missing_is_measured(tmp_path):
    p = made(tmp_path, SLOW)
    measure_configuration.configuration(p, "base", None, tmp_path)
    ledger = Ledger(tmp_path / "fake" / "base")
    kept = ledger.cells_path.read_text().splitlines()
    ledger.cells_path.write_text("\n".join(kept[:2]) + "\n")
    assert len(cell_key.missing(p, "base", None, tmp_path)) == 1
    measure_configuration.configuration(p, "base", None, tmp_path)
    again = ledger.cells_path.read_text().splitlines()
    assert again[:2] == kept[:2] and len(again) == 3
    assert len(ledger.requests()) == 18, "the half-finished cell's requests were replaced, not doubled"


def test_speculation_counts_are_kept_raw(tmp_path):
    p = made(tmp_path, SLOW)
    measure_configuration.configuration(p, "base", None, tmp_path)
    measure_configuration.configuration(p, "drafting", None, tmp_path)
    for row in Ledger(tmp_path / "fake" / "drafting").rows():
        assert row["status"] == "ok", row["reasons"]
        assert row["steps"] == row["output_tokens"] and row["drafted"] == 3 * row["steps"] and row["accepted"] == 0
        assert row["equal_prefix_share"] == 1.0


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        ({"stop-at": 20}, "not 24 tokens long"),
        ({"no-usage": True}, "no token count"),
        ({"loop": True}, "repeat themselves"),
    ],
)
def test_a_failed_gate_voids_the_cell_and_keeps_it(tmp_path, flags, reason):
    changes = {
        "workload__concurrencies": [1],
        "request_timeout_seconds": 1,
        "workload__presets__quick__requests": {1: 1},
    }
    p = made(tmp_path, SLOW | flags, **changes)
    measure_configuration.configuration(p, "base", None, tmp_path)
    (row,) = Ledger(tmp_path / "fake" / "base").rows()
    assert row["status"] == "void" and reason in " ".join(row["reasons"])


def test_a_server_capped_below_the_concurrency_is_marked(tmp_path):
    p = made(tmp_path, SLOW, configurations__base__max_running_requests=2)
    measure_configuration.configuration(p, "base", None, tmp_path)
    rows = Ledger(tmp_path / "fake" / "base").rows()
    assert [r["capped_at"] for r in rows] == [None, 2, 2]


def test_a_server_that_dies_voids_its_cells_and_never_the_campaign(tmp_path):
    p = made(tmp_path, SLOW | {"die-after-requests": 4})
    outcome = measure_configuration.configuration(p, "base", None, tmp_path)
    assert outcome.status == "partly measured" and "the engine core broke" in outcome.reason
    rows = Ledger(tmp_path / "fake" / "base").rows()
    by_status = [r["status"] for r in rows]
    assert by_status.count("ok") == 1 and by_status.count("void") >= 2
    assert any("the engine core broke" in " ".join(r["reasons"]) for r in rows if r["status"] == "void")


def test_a_server_that_does_not_come_up_is_not_measured_here(tmp_path):
    p = made(tmp_path, {"die": "traceback"})
    outcome = measure_configuration.configuration(p, "base", None, tmp_path)
    assert outcome.status == "not measured here" and "the drafter has no lm_head" in outcome.reason
    with pytest.raises(UserError, match="the drafter has no lm_head"):
        measure_configuration.configuration(p, "base", None, tmp_path, strict=True)


def test_attached_servers_are_measured_the_same_way(tmp_path):
    with from_profile.running(made(tmp_path, SLOW), "base", tmp_path / "log") as server:
        p = made(tmp_path, configurations__base__attach={"url": server.base_url})
        measure_configuration.configuration(p, "base", None, tmp_path)
        assert server.alive()
    rows = Ledger(tmp_path / "fake" / "base").rows()
    assert [r["status"] for r in rows] == ["ok"] * 3 and {r["machine_gflops"] for r in rows} == {None}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["measure", "--configuration", "nothing"], "has no configuration 'nothing'; it has: llamacpp-base"),
        (["plan", "--profile", "nothing"], "No profile 'nothing'; give one of kimi"),
        (["plan", "--preset", "deep"], "has no preset 'deep'; it has: quick, full"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(words, sentence):
    done = subprocess.run([sys.executable, "-m", "runners", *words], capture_output=True, text=True)
    assert done.returncode == 2 and sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1 and "Traceback" not in done.stderr


def test_a_port_in_use_is_an_error_before_anything_starts(tmp_path):
    with from_profile.running(made(tmp_path), "base", tmp_path / "log") as server:
        port = int(server.base_url.rsplit(":", 1)[1])
        p = made(tmp_path, engines__vllm__port=port)
        with pytest.raises(UserError, match=f"Port {port} on 127.0.0.1 is in use"):
            measure_configuration.configuration(p, "base", None, tmp_path, strict=True)


def test_a_second_run_into_the_same_folder_is_refused(tmp_path):
    p = made(tmp_path)
    with locks.alone(tmp_path / "fake"), pytest.raises(UserError, match="Another run is measuring into"):
        measure_configuration.configuration(p, "base", None, tmp_path)


def test_a_configuration_that_cannot_start_never_ends_a_report(tmp_path):
    p = made(tmp_path, engines__vllm__command=["/nowhere/python"])
    outcome = measure_configuration.configuration(p, "base", None, tmp_path)
    assert outcome.status == "not measured here" and "/nowhere/python: No such file" in outcome.reason


def test_speculation_without_anything_to_compare_with_is_void(tmp_path):
    p = made(tmp_path, SLOW, workload__concurrencies=[1])
    measure_configuration.configuration(p, "drafting", None, tmp_path)
    (row,) = Ledger(tmp_path / "fake" / "drafting").rows()
    assert row["status"] == "void" and "measure the base first" in " ".join(row["reasons"])


def test_a_server_without_answers_is_given_up_in_its_warm_up(tmp_path):
    p = made(tmp_path, {"hang": True}, request_timeout_seconds=1)
    outcome = measure_configuration.configuration(p, "base", None, tmp_path)
    assert outcome.status == "partly measured" and "no answer in the warm-up at C=1: no byte for 1 s" in outcome.reason
    assert all(r["status"] == "void" for r in Ledger(tmp_path / "fake" / "base").rows())
