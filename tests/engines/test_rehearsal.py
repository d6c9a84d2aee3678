"""The case's profile against stand-in engines: cells, caps and acceptance as the command lines and the pace ask for."""

import json

import pytest
import yaml

from runners.analyse import results
from runners.claims import check, reproduction
from runners.commands import rehearse as rehearse_command
from runners.core import acceptance_math
from runners.core.errors import UserError
from runners.core.format import NOT_MEASURED
from runners.measure import campaign
from runners.profiles.load import load
from runners.report import book, publish, readme

pytestmark = pytest.mark.slow

KIMI = "kimi-k2.5-8x-rtx-pro-6000"
LEVELS = [1, 64]
MEASURED = ("vllm-base", "sglang-base", "sglang-eagle3-aq-medai", "sglang-eagle3-own", "vllm-eagle3-aq-medai-k25")


@pytest.fixture(scope="module")
def rehearsed(tmp_path_factory):
    """(profile, runs): five configurations and the three faults, at C=1 and C=64, measured once."""
    folder = tmp_path_factory.mktemp("rehearsal")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rehearse_command, "FOLDER", folder)
        patch.setattr(rehearse_command, "LOAD_SECONDS", 0.3)
        place = rehearse_command.write(load(KIMI), faults=True)
    content = yaml.safe_load(place.read_text())
    content["workload"]["concurrencies"] = LEVELS
    content["workload"]["prompt_sets"] = ["chat"]
    content["request_timeout_seconds"] = 12  # 128 requests wait their turn behind a cap of 48
    place.write_text(yaml.safe_dump(content))
    profile = load(str(place))
    faulty = [name for name in profile.configurations if name.rsplit("-", 1)[-1] in rehearse_command.FAULTS]
    done = campaign.run(profile, None, folder / "runs", lambda: ([], 0), names=[*MEASURED, *faulty])
    assert done.finished, "no fault ends a campaign"
    return profile, folder / "runs"


def test_every_cell_counts_and_is_marked_simulated(rehearsed):
    profile, runs = rehearsed
    cells = results.cells(runs, profile.name)
    mine = cells[cells.configuration.isin(MEASURED)]
    assert len(mine) == len(MEASURED) * len(LEVELS)
    assert list(mine[mine.status != "ok"].reason) == []
    assert cells.simulated.all()


def test_the_cap_of_the_command_line_holds(rehearsed):
    profile, runs = rehearsed
    cells = results.cells(runs, profile.name).set_index(["configuration", "concurrency"])
    assert cells.loc[("sglang-eagle3-own", 64), "capped_at"] == 48
    assert cells.loc[("sglang-base", 64), "running_peak"] > 48


@pytest.mark.parametrize(
    "name, wanted, within",
    [("sglang-eagle3-own", 1.0, 0.0), ("sglang-eagle3-aq-medai", 1.65, 0.15), ("vllm-eagle3-aq-medai-k25", 2.5, 0.2)],
)
def test_acceptance_is_read_back_from_lines_or_counters(rehearsed, name, wanted, within):
    profile, runs = rehearsed
    cells = results.cells(runs, profile.name)
    row = cells[(cells.configuration == name) & (cells.concurrency == 64)].iloc[0]
    assert acceptance_math.accept_length(row.steps, row.accepted) == pytest.approx(wanted, abs=within + 1e-9)


@pytest.mark.parametrize("fault, said", [("die", "died"), ("stall", "no answer|no byte"), ("lie", "repeat")])
def test_a_fault_voids_its_cells_with_a_reason(rehearsed, fault, said):
    profile, runs = rehearsed
    cells = results.cells(runs, profile.name)
    mine = cells[cells.configuration.str.endswith(f"-{fault}")]
    assert len(mine) and set(mine.status) == {"void"} and mine.reason.str.contains(said).all(), list(mine.reason)


def test_nothing_simulated_is_published_or_claimed(rehearsed, tmp_path):
    profile, runs = rehearsed
    with pytest.raises(UserError, match="never published"):
        publish.publish(profile, runs)
    with pytest.raises(UserError, match="never published"):
        publish.elsewhere(profile, runs, "a-box")
    assert reproduction.sides(runs, profile.name) == []
    with pytest.raises(UserError, match="never enter the README"):
        readme.write(profile, runs)
    place = tmp_path / "p.yaml"
    place.write_text(yaml.safe_dump(profile.model_dump(mode="json")))
    assert {c.status for c in check.of(runs, str(place)) if c.claim.scope} == {NOT_MEASURED}
    assert book.is_simulated(runs / profile.name) and not book.is_simulated(results.home("published", "lab-cpu"))


def test_the_commands_environment_is_recorded_as_told(rehearsed):
    profile, runs = rehearsed
    told = json.loads((runs / profile.name / "sglang-eagle3-own" / "environment.json").read_text())
    assert "EAGLE3" in told["argv"] and told["engine_version_reported"] == "stand-in"
