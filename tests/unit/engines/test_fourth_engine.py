"""A fourth engine needs no change of ours: one engine file, one pinned list and one reader in a folder of plug-ins."""

import sys
from pathlib import Path

import pytest
import yaml

from runners.core.errors import UserError
from runners.engines import environments, registry
from runners.measure import campaign, gates
from runners.measure.ledger import Ledger
from runners.profiles.load import load
from runners.readers.registry import reader

FAKE = Path(__file__).parents[2] / "support" / "fake_server.py"

ENGINE = f"""
from runners.core.errors import UserError
from runners.engines.engine import Engine, Serving


def arguments(asked: Serving):
    if asked.files.folder is None:
        raise UserError("the toy serves a folder")
    flags = {{"model": asked.files.folder, "host": asked.host, "port": asked.port, "slots": asked.max_running_requests}}
    if asked.method:
        flags["drafting"] = {{"by": asked.method, "tokens": asked.k, "threshold": 0.5}}
    return flags


ENGINE = Engine(
    name="toy",
    title="Toy",
    packages=("toy-engine",),
    program=({str(FAKE)!r},),
    serves="folder",
    arguments=arguments,
    spellings={{"eagle3": "big-bird"}},
    drafting_flags=frozenset({{"drafting"}}),
    merged_flags=frozenset({{"drafting"}}),
)
"""

# It speaks vLLM's metrics and has phases of its own.
READER = """
import re

from runners.readers.records import PhaseTracker, match_phase
from runners.readers.vllm import acceptance_of, first_error, read_counters, read_log

PHASES = [("loading weights", re.compile("^loading weights")), ("warming up", re.compile("^warming up"))]
phase_of = match_phase(PHASES)


def tracker():
    return PhaseTracker(phase_of, first="loading weights")
"""


@pytest.fixture
def plugins(tmp_path, monkeypatch):
    folder = tmp_path / "plugins"
    for room in ("engines", "readers"):
        (folder / room).mkdir(parents=True)
    (folder / "engines" / "toy.py").write_text(ENGINE)
    (folder / "engines" / "toy.txt").write_text("toy-engine==1.2.3\n")
    (folder / "readers" / "toy.py").write_text(READER)
    monkeypatch.setenv("SPECVERDICT_PLUGINS", str(folder))
    monkeypatch.setattr(gates, "HEADROOM", 1)  # a cell of half a second is mostly our own polls
    return folder


def profile(tmp_path):
    cell = {"engine": "toy", "max_running_requests": 4, "flags": {"token-s": 0.03}}
    content = {
        "title": "a fourth engine",
        "hardware": {"description": "any", "servers_at_once": 2},
        "target": {
            **{"name": "toy", "precision": "none", "layers": 1, "hidden_size": 1, "vocab_size": 1},
            **{"context_length": 64, "bytes_on_disk": 1, "path": str(tmp_path)},
        },
        "drafters": {"small": {"path": str(tmp_path)}},
        "engines": {"toy": {"version": "1.2.3", "python": sys.executable}},
        "configurations": {
            "toy-base": cell | {"title": "base"},
            "toy-bird": cell
            | {"title": "drafting", "method": "big-bird", "k": 3, "drafter": "small"}
            | {"flags": {"token-s": 0.03, "drafting": {"threshold": 0.9}}},
        },
        "workload": {
            **{"prompt_sets": ["chat"], "output_tokens": 24, "concurrencies": [4], "default_preset": "quick"},
            "presets": {"quick": {"repeats": {4: 1}, "requests": {4: 8}}},
        },
        "budgets": {"toy": {"default": 20, "warming up": 20}},
        "gates": {"check_neighbours": False, "distinct_bigram_floor": 0.1},
    }
    file = tmp_path / "fourth.yaml"
    file.write_text(yaml.safe_dump(content))
    return str(file)


@pytest.mark.slow
def test_a_fourth_engine_is_measured(plugins, tmp_path):
    found = load(profile(tmp_path))
    assert registry.names() == ["llamacpp", "sglang", "toy", "vllm"]
    assert environments.pins("toy") == {"toy-engine": "1.2.3"}
    assert found.configuration("toy-bird").method == "eagle3", "the house's word for what it calls big-bird"
    assert found.base_of("toy-bird") == "toy-base"
    assert campaign.run(found, None, tmp_path, lambda: ([], 1)).finished
    for name in found.configurations:
        (row,) = Ledger(tmp_path / "fourth" / name).rows()
        assert row["status"] == "ok", row["reasons"]
        assert row["engine"] == "toy" and row["engine_version"] == "1.2.3"
    assert row["method"] == "eagle3" and row["steps"] > 0 and row["accepted"] == 0
    (start,) = Ledger(tmp_path / "fourth" / "toy-bird").starts()
    assert "loading weights" in [phase["name"] for phase in start["phases"]], "phases are those of its own reader"


def test_without_the_folder_the_engine_is_not_known(tmp_path):
    with pytest.raises(UserError, match="no engine `toy`; there are llamacpp, sglang, vllm"):
        load(profile(tmp_path))


def test_an_engine_without_a_reader_is_not_known(plugins, tmp_path):
    (plugins / "readers" / "toy.py").unlink()
    with pytest.raises(UserError, match="no engine `toy`"):
        load(profile(tmp_path))
    with pytest.raises(UserError, match="no log reader for engine 'toy'"):
        reader("toy")


def test_a_plugin_that_cannot_be_imported_is_named(plugins, tmp_path):
    (plugins / "engines" / "broken.py").write_text("import nothing_of_that_name")
    with pytest.raises(UserError, match=r"broken.py cannot be imported \(ModuleNotFoundError"):
        registry.names()
