"""Two sets of runs side by side: which ratios agree, and how fast and steady each machine was."""

import json

import numpy as np
import pandas as pd
import pytest

from runners.analyse import compare_runs, machines
from runners.commands import compare as compare_command
from runners.core.errors import UserError
from runners.report.chapters import reproduction as reproduction_chapter


def costs(**figures):
    point = {"configuration": "a", "workload": "chat", "concurrency": 1}
    whole = {f"{n}{end}": float("nan") for n in compare_runs.RATIOS for end in ("", "_lo", "_hi")}
    return pd.DataFrame([point | whole | {"unit": "requests within the run", "n_repeats": 1} | figures])


@pytest.mark.parametrize(
    "b, outcome",
    [
        ((1.2, 1.1, 1.3), compare_runs.AGREE),
        ((1.5, 1.4, 1.6), compare_runs.DIFFER),
        ((1.2, None, None), compare_runs.UNDECIDED),
    ],
)
def test_ratios_agree_where_their_intervals_overlap(b, outcome):
    def side(v):
        return costs(speed_up=v[0], speed_up_lo=v[1], speed_up_hi=v[2])

    found = compare_runs.pairs(side((1.25, 1.15, 1.35)), side(b))
    assert list(found["outcome"]) == [outcome] and "ratios agree" in reproduction_chapter.agreement_sentence(found)
    assert list(reproduction_chapter.pairs_table(found, "A", "B")["B / A"]) == [f"{b[0] / 1.25:.2f}"]


@pytest.mark.parametrize(
    ("a", "b", "outcome"),
    [
        # A mean of four repeats reaches from 0.9 to 1.1 or so: one repeat more may lie sqrt(5) times as far.
        ((1.0, 0.9, 1.1), (1.2, 1.19, 1.21), compare_runs.AGREE),
        ((1.0, 0.9, 1.1), (1.3, 1.29, 1.31), compare_runs.DIFFER),
        ((1.0, 0.9, 1.1), (0.8, None, None), compare_runs.AGREE),
        ((1.0, 0.9, 1.1), (0.75, None, None), compare_runs.DIFFER),
    ],
)
def test_a_side_of_one_repeat_is_judged_by_the_scatter_of_the_others_repeats(a, b, outcome):
    names = ("speed_up", "speed_up_lo", "speed_up_hi")
    full = costs(unit="repeats", n_repeats=4, **dict(zip(names, a, strict=True)))
    quick = costs(**dict(zip(names, b, strict=True)))
    for pair in ((full, quick), (quick, full)):
        found = compare_runs.pairs(*pair)
        assert list(found["outcome"]) == [outcome] and list(found["judged"]) == [compare_runs.SCATTER]
    assert "1 of them judged by the scatter" in reproduction_chapter.agreement_sentence(found)


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
