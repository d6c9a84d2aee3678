"""Whole campaigns against a good server and a faulty one: void rows with their reasons, all finished cells kept."""

import matrix
import pytest
import yaml
from slowness import WAIT_S

from runners.analyse import results
from runners.core.errors import UserError
from runners.measure import campaign, gates
from runners.measure.ledger import Ledger
from runners.profiles import load

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def no_headroom_needed(monkeypatch):
    monkeypatch.setattr(gates, "HEADROOM", 0.5)  # the server's work is this process's too


def made(tmp_path, server, fault):
    """A base on the good server, and another configuration on the faulty one."""
    engine = {"engine": "vllm", "max_running_requests": 4}
    content = {
        **{"name": "faults", "title": "faults", "target": {"name": "m"}},
        "configurations": {
            "base": engine | {"title": "base", "attach": {"url": f"{server}/good"}},
            "other": engine | {"title": "other", "method": "ngram", "k": 3, "attach": {"url": f"{server}/{fault}"}},
        },
        "workload": {
            **{"prompt_sets": ["chat"], "output_tokens": 16, "concurrencies": [1], "default_preset": "quick"},
            "presets": {"quick": {"repeats": {1: 1}, "requests": {1: 2}, "rounds": 1}},
        },
        "request_timeout_seconds": WAIT_S,
    }
    file = tmp_path / "faults.yaml"
    file.write_text(yaml.safe_dump(content))
    return load.load(str(file))


def run(profile, runs):
    return campaign.run(profile, None, runs, lambda: ([], 1))


def statuses(runs, name):
    return [row["status"] for row in Ledger(runs / "faults" / name).rows()]


TRIED = ("usage-negative", "choices-of-texts", "lone-surrogate", "brackets", "usage-infinite", "error-500", "empty")


@pytest.mark.parametrize("fault", [f for f in matrix.ODD if f.name in TRIED], ids=lambda f: f.name)
def test_a_campaign_goes_on_past_an_odd_server(server, tmp_path, fault):
    profile = made(tmp_path, server, fault.name)
    assert run(profile, tmp_path).finished
    # The base was measured first, or in between; a block whose other side was given up is void on both.
    assert "ok" in statuses(tmp_path, "base") and set(statuses(tmp_path, "other")) == {"void"}
    reasons = " ".join(r for row in Ledger(tmp_path / "faults" / "other").rows() for r in row["reasons"])
    assert fault.said in reasons
    cells = results.cells(tmp_path, "faults")
    assert "ok" in set(cells[cells.configuration == "base"].status)
    assert len(results.requests(tmp_path, "faults")) > 0


@pytest.mark.parametrize("name", ["position-bomb", "position-raised", "counter-negative"])
def test_a_campaign_goes_on_without_counters_that_cannot_be_read(server, tmp_path, name):
    assert run(made(tmp_path, server, name), tmp_path).finished
    assert set(statuses(tmp_path, "base")) == {"ok"}
    (row,) = Ledger(tmp_path / "faults" / "other").rows()
    assert row["accepted_per_position"] is None and (row["status"] == "void" or row["not_seen"])


def test_a_torn_ledger_is_measured_again_by_the_next_run_although_the_campaign_was_finished(server, tmp_path):
    profile = made(tmp_path, server, "crlf")
    assert run(profile, tmp_path).finished
    before = {name: Ledger(tmp_path / "faults" / name).rows() for name in ("base", "other")}
    assert {row["status"] for rows in before.values() for row in rows} == {"ok"}
    path = Ledger(tmp_path / "faults" / "other").requests_path
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(UserError, match="cannot be read"):
        results.requests(tmp_path, "faults")
    assert run(profile, tmp_path).finished
    assert set(statuses(tmp_path, "other")) == {"ok"} and len(statuses(tmp_path, "base")) == 2, "both sides of a block"
    assert Ledger(tmp_path / "faults" / "base").rows()[0] == before["base"][0], "what was whole stays"
    results.requests(tmp_path, "faults")
    again = run(profile, tmp_path)
    assert again.finished and len(statuses(tmp_path, "base")) == 2
