"""Comparing two sets of runs, packing them into one file and reading it, and a profile written for this machine."""

import io
import json
import tarfile

import numpy as np
import pandas as pd
import pytest

from runners.analyse import compare_runs, machines, results
from runners.commands import compare as compare_command
from runners.commands import new_profile
from runners.core import gpus, paths
from runners.core.errors import UserError
from runners.profiles.load import load
from runners.report import archive as report_archive
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
        ((1.2, None, None), compare_runs.UNKNOWN),
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
    with pytest.raises(UserError, match="There are no runs of lab-cpu"):
        compare_command.show(str(tmp_path), str(tmp_path), "lab-cpu")


@pytest.mark.slow
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


def test_an_archive_is_read_as_runs_are(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    out = report_archive.share(load("lab-cpu"), paths.PUBLISHED_RUNS, tmp_path / "runs.tar.gz")
    assert not (paths.PUBLISHED_RUNS / "lab-cpu" / "profile.yaml").exists()
    root = paths.runs_root(out)
    assert report_archive.profile_of(root) == "lab-cpu" and (root / "lab-cpu" / "profile.yaml").is_file()
    assert len(results.cells(root, "lab-cpu")) == len(results.cells("published", "lab-cpu"))
    assert paths.runs_root(out) == root


def packed(tmp_path, name, kind=tarfile.REGTYPE):
    place = tmp_path / "odd.tar.gz"
    with tarfile.open(place, "w:gz") as archive:
        info = tarfile.TarInfo(name)
        info.type, info.size, info.linkname = kind, 2 if kind == tarfile.REGTYPE else 0, "/etc/passwd"
        archive.addfile(info, io.BytesIO(b"{}"))
    return place


@pytest.mark.parametrize(
    "name, kind, said",
    [
        ("p/run.sh", tarfile.REGTYPE, "other things than runs"),
        ("p/cells.jsonl", tarfile.SYMTYPE, "other things than runs"),
        ("../../cells.jsonl", tarfile.REGTYPE, "cannot be unpacked"),
    ],
)
def test_an_archive_that_holds_something_else_is_not_unpacked(tmp_path, monkeypatch, name, kind, said):
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    with pytest.raises(UserError, match=said):
        report_archive.unpack(packed(tmp_path, name, kind))
    assert not list((tmp_path / "build").rglob("cells.jsonl"))


def test_a_broken_or_missing_archive_is_one_sentence(tmp_path):
    broken = tmp_path / "broken.tar.gz"
    broken.write_bytes(b"nothing")
    for place, said in ((broken, "cannot be unpacked"), (tmp_path / "none.tar.gz", "No archive")):
        with pytest.raises(UserError, match=said):
            report_archive.unpack(place)
    with pytest.raises(UserError, match="does not end in .tar.gz"):
        report_archive.share(load("lab-cpu"), paths.PUBLISHED_RUNS, tmp_path / "runs.zip")


@pytest.fixture
def profiles(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "PROFILES", tmp_path)
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    return tmp_path


@pytest.mark.parametrize("found", [None, [gpus.Gpu("RTX PRO 6000", 96.0, 95.0, "580.1")] * 2])
def test_a_new_profile_parses_and_says_what_to_check(profiles, monkeypatch, found):
    monkeypatch.setattr(gpus, "found", lambda: found)
    (profiles / "config.json").write_text("{}")
    new_profile.write("my-box", drafter=str(profiles))
    profile, text = load("my-box"), (profiles / "my-box.yaml").read_text()
    assert profile.hardware.gpus == len(found or []) and "# CHECK" in text
    assert {c.method for c in profile.configurations.values()} == {"none", "ngram", "eagle3"}
    with pytest.raises(UserError, match="exists already"):
        new_profile.write("my-box")


@pytest.mark.parametrize("name, target, said", [("../x", None, "must hold"), ("box", "/nowhere", "no config.json")])
def test_a_profile_that_cannot_be_written_leaves_nothing(profiles, name, target, said):
    with pytest.raises(UserError, match=said):
        new_profile.write(name, target)
    assert not list(profiles.glob("*.yaml"))


def test_a_model_folder_fills_the_target_in(profiles):
    folder = profiles / "my-model"
    folder.mkdir()
    (folder / "config.json").write_text(
        '{"num_hidden_layers": 4, "hidden_size": 64, "vocab_size": 99, "dtype": "bf16"}'
    )
    new_profile.write("box", str(folder))
    target = load("box").target
    assert (target.name, target.layers, target.hidden_size, target.vocab_size) == ("my-model", 4, 64, 99)
