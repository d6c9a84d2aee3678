"""The open loops of a campaign, against the small stand-in program: after its closed loops, each rate once."""

import sys
from pathlib import Path

import pytest
import yaml
from slowness import WAIT_S, slowness

from runners.analyse import goodput, results
from runners.measure import campaign, gates
from runners.measure.ledger import Ledger
from runners.profiles import load

pytestmark = pytest.mark.slow  # starts servers

FAKE = Path(__file__).parents[2] / "support" / "fake_server.py"


def on_fake(tmp_path, flags, tpot_ms, **open_loop):
    """A profile of a base and a drafter on the stand-in, with open loops of a second."""
    drafter = {"engine": "vllm", "title": "drafting", "method": "eagle3", "k": 3, "drafter": "toy"}
    content = {
        "name": "fake",
        "title": "a stand-in",
        "hardware": {"description": "any", "servers_at_once": 2},
        "target": {
            **{"name": "toy", "precision": "none", "layers": 1, "hidden_size": 1, "vocab_size": 1},
            **{"context_length": 64, "bytes_on_disk": 1, "path": str(tmp_path)},
        },
        "drafters": {"toy": {"path": str(tmp_path)}},
        "engines": {"vllm": {"version": "0", "command": [sys.executable, str(FAKE)]}},
        "configurations": {
            "base": {"engine": "vllm", "title": "base", "max_running_requests": 4, "flags": flags},
            "drafting": drafter | {"max_running_requests": 4, "flags": flags},
        },
        "workload": {
            **{"prompt_sets": ["chat"], "output_tokens": 16, "concurrencies": [1], "default_preset": "full"},
            "presets": {"full": {"repeats": {1: 1}, "requests": {1: 2}, "rounds": 1, "prompts": 4}},
            "latency_limits": {"ttft_ms": 100, "tpot_ms": tpot_ms},
            "open_loop": {"rates": [6, 9], "seconds": 1} | open_loop,
        },
        **{"budgets": {"vllm": {"default": WAIT_S}}, "request_timeout_seconds": WAIT_S},
        "gates": {"check_neighbours": False, "distinct_bigram_floor": 0.1},
    }
    file = tmp_path / "fake.yaml"
    file.write_text(yaml.safe_dump(content))
    return load.load(str(file))


@pytest.fixture(autouse=True)
def easy(monkeypatch):
    """A window of a second is mostly our own polls, and a test machine may be busy: those gates have tests."""
    monkeypatch.setattr(gates, "HEADROOM", 1)
    monkeypatch.setattr(gates, "LATE_MS", 5000.0)


def run(profile, runs):
    return campaign.run(profile, None, runs, lambda: ([], 1))


def open_rows(runs, name):
    return [row for row in Ledger(runs / "fake" / name).rows() if row.get("load") == "open"]


def test_every_configuration_meets_the_same_arrivals_once(tmp_path):
    profile = on_fake(tmp_path, {"token-s": 0.02}, tpot_ms=60 * slowness())
    run(profile, tmp_path)
    rows = {name: sorted(open_rows(tmp_path, name), key=lambda row: row["rate"]) for name in ("base", "drafting")}
    assert [[row["rate"] for row in mine] for mine in rows.values()] == [[6.0, 9.0]] * 2
    assert all(row["status"] == "ok" for mine in rows.values() for row in mine), rows
    requests = {name: Ledger(tmp_path / "fake" / name).requests() for name in rows}
    for base, drafting in zip(rows["base"], rows["drafting"], strict=True):
        timed = []
        for row, name in ((base, "base"), (drafting, "drafting")):
            own = requests[name][requests[name].key == row["key"]]
            assert set(own.role) <= {"ramp", "timed", "tail"} and (own.intended_s <= own.sent_s).all()
            timed.append(own[own.role == "timed"][["prompt_id", "intended_s"]].values.tolist())
        assert timed[0] == timed[1] and len(timed[0]) == base["requests"]
        assert base["seconds"] == 1.0 and base["tpot_ms_p50"] >= 20 and base["block"] != drafting["block"]
    both = results.cells(tmp_path, "fake", loads=("closed", "open"))
    found = goodput.points(both, results.requests(tmp_path, "fake"), profile.workload.latency_limits)
    assert sorted(found[found.load == "open"].rate) == [6.0, 6.0, 9.0, 9.0]
    assert len(results.cells(tmp_path, "fake")) == 2, "the other chapters see the closed loops alone"
    run(profile, tmp_path)
    assert open_rows(tmp_path, "base") == sorted(rows["base"], key=lambda row: row["started_at"]), "never again"


def test_open_loops_of_the_first_campaign_can_stand_for_the_later_ones(tmp_path):
    profile = on_fake(tmp_path, {"token-s": 0.02}, tpot_ms=60 * slowness(), rates=[6], once=True)
    run(profile, tmp_path)
    campaign.run(profile, None, tmp_path, lambda: ([], 1), more=True)
    closed = [row for row in Ledger(tmp_path / "fake" / "base").rows() if row.get("load") != "open"]
    assert len({row["campaign"] for row in closed}) == 2 and len(open_rows(tmp_path, "base")) == 1


def test_what_is_not_answered_in_time_is_cut_and_what_nobody_serves_is_left_out(tmp_path):
    # A token takes fifty times the limit, so no answer comes before the loop has waited long enough.
    profile = on_fake(tmp_path, {"token-s": 0.1}, tpot_ms=2, rates=[6], leave_out=["drafting"])
    run(profile, tmp_path)
    (row,) = open_rows(tmp_path, "base")
    assert open_rows(tmp_path, "drafting") == []
    requests = Ledger(tmp_path / "fake" / "base").requests()
    judged = requests[(requests.key == row["key"]) & requests.role.isin(["timed", "cut"])]
    assert row["requests"] == len(judged) and (judged.role == "cut").any() and judged.error.isna().all()
    assert not any("failed" in reason for reason in row["reasons"]), "too late is no failure of the measurement"
