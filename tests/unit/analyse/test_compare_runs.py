"""Two sets of runs side by side: which ratios agree, and how fast and steady each machine was."""

import json

import numpy as np
import pandas as pd
import pytest

from runners.analyse import compare_runs, inference, machines, step_cost
from runners.commands import compare as compare_command
from runners.core.errors import UserError
from runners.report.chapters import reproduction as reproduction_chapter


def costs(ratio=float("nan"), error=float("nan"), df=0.0, campaigns=1, pays="undecided", campaign_error=float("nan")):
    """One point of step_cost.step_costs; only its throughput ratio is known."""
    point = {"configuration": "a", "workload": "chat", "concurrency": 1, "n_campaigns": campaigns, "pays": pays}
    row = {f"{n}{end}": float("nan") for n in compare_runs.RATIOS for end in step_cost.ENDS}
    low, high = inference.Estimate(np.log(ratio), error, df).interval()
    own = (ratio, low, high, error, df, campaign_error, 4.0)
    return pd.DataFrame([point | row | dict(zip((f"speed_up{e}" for e in step_cost.ENDS), own, strict=True))])


@pytest.mark.parametrize(
    ("ratio", "error", "df", "outcome"),
    [
        (1.20, 0.03, 20, compare_runs.AGREE),
        (1.40, 0.03, 20, compare_runs.DIFFER),
        (1.40, 0.03, 1, compare_runs.AGREE),  # as far apart, but hardly anything is known of the noise
        (1.20, float("nan"), 0, compare_runs.UNDECIDED),
    ],
)
def test_ratios_are_tested_for_a_difference(ratio, error, df, outcome):
    found = compare_runs.pairs(costs(1.25, 0.03, 20), costs(ratio, error, df))
    assert list(found["outcome"]) == [outcome] and "ratios agree" in reproduction_chapter.agreement_sentence(found)
    assert list(reproduction_chapter.pairs_table(found, "A", "B")["B / A"]) == [f"{ratio / 1.25:.2f}"]


def test_the_variance_of_campaigns_is_used_where_a_side_knows_it():
    one, several = costs(1.25, 0.02, 20), costs(1.45, 0.02, 20, campaigns=3, campaign_error=0.15)
    found = compare_runs.pairs(one, several)
    assert list(found["outcome"]) == [compare_runs.AGREE]
    assert list(found["judged"]) == [compare_runs.WITH_CAMPAIGNS]
    without = compare_runs.pairs(one, costs(1.45, 0.02, 20))
    assert list(without["outcome"]) == [compare_runs.DIFFER] and list(without["judged"]) == [compare_runs.WITHOUT]
    assert compare_runs.WITHOUT in reproduction_chapter.agreement_sentence(without)


def test_yes_against_no_is_counted_and_chance_is_said():
    found = compare_runs.pairs(costs(1.3, 0.02, 20, pays="yes"), costs(0.8, 0.02, 20, pays="no"))
    said = reproduction_chapter.agreement_sentence(found)
    assert "1 answers contradict" in said and "about 0.1 would by chance" in said
    assert compare_runs.by_chance(found) == pytest.approx(0.05)


def test_runs_without_a_point_in_common_say_so(tmp_path):
    assert "no measured point" in reproduction_chapter.agreement_sentence(compare_runs.pairs(costs(), costs()))
    with pytest.raises(UserError, match="no runs of profile lab-cpu"):
        compare_command.show(str(tmp_path), str(tmp_path), "lab-cpu")


@pytest.mark.slow  # the step costs of all published cells, twice
def test_published_runs_agree_with_themselves(capsys):
    assert compare_command.show("published", "published", "lab-cpu") == 0
    assert ", 0 differ" in capsys.readouterr().out


def plain(tpots, engine="vllm", status="ok"):
    rows = [
        {"configuration": f"{engine}-base", "engine": engine, "method": "none", "workload": "chat", "concurrency": c}
        | {"tpot_ms_p50": t, "status": status}
        for c, repeats in tpots.items()
        for t in repeats
    ]
    return pd.DataFrame(rows)


def test_a_comparison_says_how_fast_and_how_steady_each_machine_was(tmp_path):
    steady, slow = {1: [40.0, 40.0], 4: [50.0, 50.0]}, {1: [60.0, 60 * np.exp(0.2)], 4: [75.0, 75 * np.exp(0.2)]}
    both = plain(steady), pd.concat([plain(slow), plain(slow, "llamacpp"), plain({1: [9e9]}, status="void")])
    found = machines.speeds(*both)
    assert list(found.engine) == ["vllm"] and list(found.points) == [2]
    assert found.tpot[0] == pytest.approx(1.5 * np.exp(0.1))
    assert found.scatter_a[0] == 0 and found.scatter_b[0] == pytest.approx(0.2 / np.sqrt(2))
    for side, seconds in (("a", [20.0, 20.0, 90.0]), ("b", [30.0])):
        folder = tmp_path / side / "vllm-base"
        folder.mkdir(parents=True)
        (folder / "timeline.json").write_text(json.dumps([{"ready_seconds": s, "phases": []} for s in seconds]))
    start = machines.startup_ratio(tmp_path / "a", tmp_path / "b")
    assert start == pytest.approx(1.5)  # the median of A's: a first start reads its files from the disk
    told = reproduction_chapter.machines_sentence(found, start)
    assert (
        "takes 1.66 times as long in B as in A (2 points)" in told
        and "0.0% in A, 14.1% in B" in told
        and "took 1.50 times as long to start" in told
    )


def test_a_machine_seen_once_has_no_scatter():
    once = machines.speeds(plain({1: [40.0]}), plain({1: [50.0]}))
    assert (
        "scatter of repeats: not measured here in A, not measured here in B"
        in reproduction_chapter.machines_sentence(once, float("nan"))
    )
    assert reproduction_chapter.machines_sentence(machines.speeds(plain({1: [40.0]}), plain({4: [50.0]})), 1.0) == ""


@pytest.mark.filterwarnings("error")
def test_servers_that_ran_already_have_no_start_up_to_compare(tmp_path):
    for side, seconds in (("a", (0.0, 4.0)), ("b", (0.0, 8.0))):
        for name, ready in zip(("attached", "started"), seconds, strict=True):
            folder = tmp_path / side / name
            folder.mkdir(parents=True)
            (folder / "timeline.json").write_text(json.dumps([{"ready_seconds": ready, "phases": []}]))
    assert machines.startup_ratio(tmp_path / "a", tmp_path / "b") == pytest.approx(2.0)
