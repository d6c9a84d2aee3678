"""The verdict: choice per use, answers with reasons, the file, and what the prose may quote."""

import json
import math

import pytest
import synthetic_runs

from runners.analyse import inference, results, step_cost
from runners.analyse.verdict import decide, explain, store
from runners.core import format
from runners.core.errors import UserError
from runners.profiles.load import load
from runners.report.chapters import verdict as verdict_chapter

PROFILE = synthetic_runs.PROFILE


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return synthetic_runs.write(tmp_path_factory.mktemp("runs"), repeats=5, prompts=16)


@pytest.fixture(scope="module")
def found(runs):
    return decide.of(runs, PROFILE)


def _row(**changed):
    row = dict(method="eagle3", tokens_per_step=1.4, step_cost=1.7, ceiling=4, drafted=300, accepted=40, pays="no")
    return row | {"capped_at": math.nan, "running": 16, "base_running": 16} | changed


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (_row(), "tokens per step 1.40 below break-even 1.70"),
        (_row(accepted=0, tokens_per_step=1.0), "nothing accepted (0 of 300 drafted)"),
        (_row(accepted=1, tokens_per_step=1.0), "next to nothing accepted (1 of 300 drafted)"),
        (_row(drafted=0, accepted=0), "nothing was drafted"),
        (_row(method="ngram", tokens_per_step=2.0, pays="yes"), "tokens per step 2.00 above break-even 1.70"),
        (_row(tokens_per_step=2.0), "prefill and queueing"),
        (_row(capped_at=48), "capped at 48"),
        (_row(running=9), "9 requests ran at once, 16 without speculation"),
        (_row(step_cost=math.nan), format.NOT_MEASURED),
    ],
)
def test_cause(row, said):
    assert said in explain.cause(row)


@pytest.mark.parametrize(
    ("row", "eager", "kind"),
    [
        (_row(), False, "acceptance"),
        (_row(step_cost=3.6), False, "step cost"),  # no drafter we know has 3.6 of 4
        (_row(step_cost=4.2), False, "step cost"),
        (_row(capped_at=48), False, "cap"),
        (_row(running=9), False, "capacity lost"),
        (_row(), True, "eager fallback"),
        (_row(tokens_per_step=2.0), False, "outside decoding"),
        (_row(pays="undecided"), False, ""),
        (_row(step_cost=math.nan), False, ""),
    ],
)
def test_kind_of_loss(row, eager, kind):
    assert explain.kind(row, eager) == kind
    assert explain.cause(row, eager).startswith(f"{kind}: " if kind else ("tokens", format.NOT_MEASURED))


def test_graphs_lost_to_speculation_are_seen_in_the_load_phases(tmp_path):
    for name, phases in (("vllm-base", ["loading weights", "capturing graphs"]), ("vllm-ngram", ["loading weights"])):
        folder = tmp_path / PROFILE / name
        folder.mkdir(parents=True)
        (folder / "status.json").write_text("{}")
        starts = [{"ready_seconds": 1.0, "phases": [{"name": phase} for phase in phases]}]
        (folder / "timeline.json").write_text(json.dumps(starts))
    assert results.eager(tmp_path, PROFILE) == {"vllm-ngram"}
    assert results.eager("published", "lab-cpu") == set()  # eager on both sides is no fallback


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (_row(), "accept length 1.40 → 1.70"),
        (_row(), "drafting and verifying 43% cheaper"),
        (_row(step_cost=4.2), "even a perfect drafter yields 4 tokens"),
        (_row(method="ngram"), "text that repeats more: tokens per step 1.40 → 1.70"),
        (_row(tokens_per_step=2.0, pays="yes"), "fewer than 1.70 tokens per step"),
        (_row(tokens_per_step=2.0), "less time outside decoding"),
        (_row(tokens_per_step=2.0, pays="undecided"), "more repeats"),
    ],
)
def test_flip(row, said):
    assert said in explain.flip(row)


@pytest.mark.slow
def test_best_per_use(found):
    single, many = found["uses"]["single_stream"], found["uses"]["throughput"]
    assert single["configuration"].startswith("llamacpp") and single["concurrency"] == 1
    assert many["configuration"] == "vllm-ngram" and many["concurrency"] == 16
    assert many["runner_up"]["configuration"] != many["configuration"]
    assert many["ratio"][0] > 1 and many["clear"] is True
    assert found["serve"] == "vllm-ngram"
    assert {(b["use"], b["workload"]) for b in found["by_workload"]} == {
        (u, w) for u in decide.USES for w in ("chat", "edit")
    }


def test_points_answer_and_reason(found):
    points = {(p["configuration"], p["workload"], p["concurrency"]): p for p in found["points"]}
    assert points["llamacpp-eagle3-untrained", "chat", 1]["pays"] == inference.NO
    assert "nothing accepted" in points["llamacpp-eagle3-untrained", "chat", 1]["cause"]
    assert points["vllm-ngram", "edit", 1]["pays"] == inference.YES
    assert points["llamacpp-ngram", "chat", 1]["pays"] == inference.NO


def test_what_is_missing_is_said(found):
    measured = {c["configuration"] for c in found["points"]} | {"llamacpp-base", "vllm-base"}
    assert {r["configuration"] for r in found["not_measured"]} == set(load(PROFILE).configurations) - measured
    assert found["void_cells"] == 1
    assert "`vllm-eagle3-untrained`: not measured here" in verdict_chapter.readme_section(found)


@pytest.mark.slow
def test_a_configuration_without_every_workload_cannot_win_the_pool(runs):
    cells, requests = results.cells(runs, PROFILE), results.requests(runs, PROFILE)
    cells.loc[(cells.configuration == "vllm-ngram") & (cells.workload == "chat"), "status"] = "void"
    found = decide.decide(cells, requests, results.statuses(runs, PROFILE), PROFILE)
    assert found["uses"]["throughput"]["configuration"] != "vllm-ngram"
    edit = [b for b in found["by_workload"] if b["workload"] == "edit" and b["use"] == "throughput"]
    assert edit[0]["configuration"] == "vllm-ngram"


@pytest.mark.slow
def test_write_and_load(runs, found):
    store.write(runs, PROFILE, found)
    assert store.load(runs, PROFILE) == found
    path = runs / PROFILE / "verdict.json"
    text = path.read_text()
    assert "NaN" not in text and json.loads(text)["schema_version"] == 1
    store.write(runs, PROFILE, decide.of(runs, PROFILE))
    assert path.read_text() == text


def test_load_says_what_to_do(tmp_path):
    with pytest.raises(UserError, match=f"make report PROFILE={PROFILE}"):
        store.load(tmp_path, PROFILE)
    folder = tmp_path / PROFILE
    folder.mkdir()
    (folder / "verdict.json").write_text("{")
    with pytest.raises(UserError, match="not JSON"):
        store.load(tmp_path, PROFILE)


def test_tables(found):
    table = verdict_chapter.uses_table(found)
    assert table.serve.notna().all() and set(table.workload) == {"all", "chat", "edit"}
    assert len(verdict_chapter.points_table(found)) == len(found["points"])
    assert verdict_chapter.pays_table(found).drop(columns="configuration").to_numpy().sum() == 18
    assert verdict_chapter.readme_section(found).startswith("| use | serve |")
    assert decide.costs(found).columns.tolist() == step_cost.COLUMNS


def test_nothing_measured(tmp_path):
    found = decide.of(tmp_path, PROFILE)
    assert (
        found["serve"] is None
        and found["points"] == []
        and len(found["not_measured"]) == len(load(PROFILE).configurations)
    )
    assert set(verdict_chapter.uses_table(found).serve) == {format.NOT_MEASURED}
    assert format.NOT_MEASURED in verdict_chapter.verdict_sentence(
        found
    ) and format.NOT_MEASURED in verdict_chapter.pays_sentence(found)
    assert decide.costs(found).empty
