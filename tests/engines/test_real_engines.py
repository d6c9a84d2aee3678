"""The real engines of the lab: each is measured beside its base in one tiny block, and leaves no orphan.

Nothing here asserts a speed, or that the machine was quiet.
"""

import psutil
import pytest

from runners.core.errors import EngineUnavailable
from runners.engines import environments
from runners.measure import campaign, settings_check
from runners.measure.ledger import Ledger
from runners.profiles import load, schema

pytestmark = pytest.mark.engine


def tiny(kind):
    """lab-cpu, cut down to one cell of one request at a time, whatever else the machine does."""
    p = load.load("lab-cpu")
    preset = schema.Preset(repeats={1: 1}, requests={1: 2})
    workload = p.workload.model_copy(
        update={"prompt_sets": ["chat"], "output_tokens": 24, "concurrencies": [1], "presets": {"quick": preset}}
    )
    gates = p.gates.model_copy(update={"check_neighbours": False})
    # One thread: two spinning ones collapse when anything else runs on two cores.
    engines = p.engines | {
        "llamacpp": p.engines["llamacpp"].model_copy(update={"flags": {"threads": 1}}),
    }
    try:
        environments.ensure(p.engines[kind].environment)
        environments.ensure("reference")
    except EngineUnavailable as error:
        pytest.fail(str(error))
    return p.model_copy(update={"workload": workload, "gates": gates, "engines": engines})


def engine_processes():
    words = ("llamacpp_server.py", "vllm.entrypoints", "VLLM::", "guardian.py")
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        line = " ".join(process.info["cmdline"] or [])
        if process.info["status"] != psutil.STATUS_ZOMBIE and any(w in line for w in words):
            found.append(process.pid)
    return found


@pytest.mark.parametrize(
    ("kind", "configuration"),
    [("llamacpp", "llamacpp-base"), ("llamacpp", "llamacpp-eagle3-untrained"), ("vllm", "vllm-eagle3-untrained")],
)
def test_a_tiny_cell_on_the_real_engine(tmp_path, kind, configuration):
    p, before = tiny(kind), set(engine_processes())
    done = campaign.run(p, "quick", tmp_path, lambda: ([], 1), names=[configuration], strict=True)
    assert done.finished and [len(v.points) for v in done.visits] == [1]
    (row,) = Ledger(tmp_path / p.name / configuration).rows()
    assert row["status"] == "ok", row["reasons"]
    assert 24 < row["output_tokens"] <= 2 * 24 and row["count_source"] == "usage", "of a window"
    # INT4 kernels may choose another token in the first words, and two answers prove nothing.
    assert kind == "llamacpp" or row["reference_share"] > 0.9
    if row["method"] == "eagle3":
        assert row["accepted"] == 0, "random weights: accept length exactly 1.00"
        assert row["steps"] > 0 and sum(row["accepted_per_position"] or [0]) == 0
        # llama.cpp drafts no further than the answer's last token; vLLM drafts K at every step.
        assert row["drafted"] == 3 * row["steps"] if kind == "vllm" else 0 < row["drafted"] <= 3 * row["steps"]
    phases = [p["name"] for p in Ledger(tmp_path / p.name / configuration).starts()[0]["phases"]]
    assert "loading weights" in phases
    assert set(engine_processes()) <= before, "an orphan"
    assert row["settings"] in settings_check.current(p, configuration)
    if row["method"] != "none":
        (base,) = Ledger(tmp_path / p.name / p.base_of(configuration)).rows()
        assert base["status"] == "ok", base["reasons"]
        assert (base["campaign"], base["start"], base["block"]) == (row["campaign"], row["start"], row["block"])
        assert base["order"] != row["order"]
