"""Runs set beside other runs of the same profile: which are found, what is compared, and what stands where none are."""

import json

import pandas as pd
import pytest
import synthetic_runs

from runners.analyse import forecasts
from runners.claims import reproduction
from runners.core import paths
from runners.core.errors import UserError
from runners.profiles.load import load
from runners.report import publish
from runners.report.chapters import reproduction as reproduction_chapter
from runners.report.charts import reproduction as reproduction_charts

PROFILE = synthetic_runs.PROFILE


@pytest.fixture
def two(tmp_path, monkeypatch):
    """A report and another machine's runs of it; nothing is published."""
    monkeypatch.setattr(paths, "PUBLISHED_RUNS", tmp_path / "published")
    here = synthetic_runs.write(tmp_path / "here", repeats=3, prompts=8)
    place = tmp_path / "elsewhere"
    synthetic_runs.write(place / "other-box", repeats=3, prompts=8, missing=("vllm-ngram",))
    return here, place


def test_a_report_stands_first_and_every_other_set_beside_it(two, monkeypatch):
    here, place = two
    found = reproduction.sides(here, PROFILE, place)
    assert [side.name for side in found] == [reproduction.HERE, "other-box"]
    # The other machine's own book: its runs are "this report" there, and stand beside themselves nowhere.
    assert [side.runs for side in reproduction.sides(place / "other-box", PROFILE, place)] == [place / "other-box"]
    monkeypatch.setattr(paths, "PUBLISHED_RUNS", here)
    other = reproduction.sides(place / "other-box", PROFILE, place)
    assert [side.name for side in other] == [reproduction.HERE, reproduction.PUBLISHED]


@pytest.mark.slow
def test_the_same_figures_agree_and_what_one_side_lacks_is_left_out(two):
    found = reproduction.sides(two[0], PROFILE, two[1])
    said = reproduction_chapter.machine_paragraphs(found)
    assert "other-box: " in said and ", 0 differ" in said and "times as long in other-box as in this report" in said
    assert reproduction_chapter.front_page_sentence(found).endswith("ratios agree with other-box.")
    ratios = reproduction_chapter.ratios_table(found)
    assert len(ratios) and "vllm-ngram" not in set(ratios.configuration)
    table = reproduction_chapter.machine_table(found)
    assert list(table.runs) == ["this report", "other-box"] and table.iloc[0]["from this report"] == ""
    assert "%" in table.iloc[1]["from this report"] and "%" in table.iloc[1]["own, each C kept out"]
    assert set(table["new points, forecast before"]) == {"not measured here"}
    chart = str(reproduction_charts.agreement(reproduction.drawn(found)).to_dict())
    assert "other-box" in chart and "filled': False" not in chart
    uses = reproduction_chapter.uses_table(found)
    assert list(uses.columns)[:4] == ["use", "workload", "runs", "serve"]
    assert set(uses.runs) == {"this report", "other-box"}
    assert list(uses.agrees) == ["yes" if runs == "other-box" else "" for runs in uses.runs]
    assert list(uses.use) == sorted(uses.use, key=list(dict.fromkeys(uses.use)).index)  # a use's rows stand together


@pytest.mark.slow
def test_ratios_that_differ_come_first_and_are_hollow(two):
    here, place = two
    cells = place / "other-box" / PROFILE / "llamacpp-eagle3-untrained" / "cells.jsonl"
    requests = cells.with_name("requests.parquet")
    frame = pd.read_parquet(requests)
    times = [c for c in ("first_token_s", "last_token_s", "finished_s", "sent_s") if c in frame]
    frame.assign(**{c: 3 * frame[c] for c in times}).to_parquet(requests)
    rows = [json.loads(line) for line in cells.read_text().splitlines()]
    slow = {"output_tokens_per_second": 1 / 3, "stream_tokens_per_second_p50": 1 / 3, "tpot_ms_p50": 3, "seconds": 3}
    for row in rows:
        row |= {name: row[name] * by for name, by in slow.items() if row.get(name)}
    cells.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = reproduction.sides(here, PROFILE, place)
    ratios = reproduction_chapter.ratios_table(found)
    assert ratios.iloc[0].configuration == "llamacpp-eagle3-untrained" and ratios.iloc[0].outcome == "differ"
    assert len(reproduction_chapter.ratios_table(found, differing=True)) == (ratios.outcome == "differ").sum() > 0
    assert list(ratios.outcome == "differ") == sorted(ratios.outcome == "differ", reverse=True)
    assert "'filled': False" in str(reproduction_charts.agreement(reproduction.drawn(found)).to_dict())


def test_without_other_runs_each_part_says_so(tmp_path, two):
    for found in (reproduction.sides(two[0], PROFILE, tmp_path / "none"), reproduction.sides(tmp_path, PROFILE)):
        assert (
            reproduction_chapter.machine_paragraphs(found)
            == reproduction_chapter.front_page_sentence(found)
            == f"{reproduction.NOTHING}."
        )
        for table in (
            reproduction_chapter.ratios_table,
            reproduction_chapter.uses_table,
            reproduction.drawn,
        ):
            assert table(found).empty
        assert "not measured here" in str(reproduction_charts.agreement(reproduction.drawn(found)).to_dict())


def test_another_machines_runs_are_kept_without_logs_and_notebooks(two, tmp_path, monkeypatch):
    monkeypatch.setattr(reproduction, "ELSEWHERE", tmp_path / "data" / "elsewhere")
    profile, here = load(PROFILE), two[0]
    (here / PROFILE / "vllm-base" / "server.log").write_text("long\n")
    pd.DataFrame(columns=forecasts.COLUMNS).to_csv(here / PROFILE / forecasts.FILE, index=False)
    for name in ("", "Ünsere", "a/b", "..", "two cores"):
        with pytest.raises(UserError, match="cannot name a machine"):
            publish.elsewhere(profile, here, name)
    with pytest.raises(UserError, match="There are no runs"):
        publish.elsewhere(profile, tmp_path / "none", "box")
    for _ in range(2):  # a second time takes the first one's place
        publish.elsewhere(profile, here, "box")
    kept = [p.name for p in (reproduction.ELSEWHERE / "box").rglob("*") if p.is_file()]
    assert "cells.jsonl" in kept and set(kept) <= {*publish.MEASURED, "forecasts.csv"}
    assert [s.name for s in reproduction.sides(here, PROFILE, reproduction.ELSEWHERE)] == ["this report", "box"]
