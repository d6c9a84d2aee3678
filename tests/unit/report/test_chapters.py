"""Chapters on made-up runs, and on none: what pages of the book quote is there, and text from outside is escaped."""

import dataclasses
import functools
import importlib
from pathlib import Path

import pytest
import synthetic_runs

from runners.analyse import reported, results
from runners.claims.reproduction import sides
from runners.core import paths
from runners.core.format import NOT_MEASURED
from runners.measure.campaign_record import Campaign, Visit
from runners.measure.ledger import Ledger
from runners.profiles.load import load
from runners.report import book, examples
from runners.report.chapters import (
    acceptance,
    alignment,
    claims,
    comparison,
    reproduction,
    run_campaign,
    run_configuration,
)
from runners.report.chapters.verdict import case as reported_case
from runners.report.chapters.verdict import load as verdict

PROFILE, KIMI = synthetic_runs.PROFILE, "kimi-k2.5-8x-rtx-pro-6000"
# chapter -> its figures for prose, from runs and a profile. The others are quoted by no page.
QUOTED = {
    "acceptance": lambda *run: acceptance.glue_values(acceptance.load(*run)),
    "alignment": lambda *run: alignment.glue_values(alignment.load(*run).drift),
    "claims": lambda *run: claims.glue_values(claims.load(*run).counts),
    "comparison": lambda *run: comparison.glue_values(comparison.load(*run)),
    "reproduction": lambda *run: reproduction.glue_values(sides(*run, elsewhere=Path("no-other-machine"))),
    "verdict": lambda *run: verdict.glue_values(verdict.load(*run)),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return synthetic_runs.write(tmp_path_factory.mktemp("runs"), repeats=3, prompts=8)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """No published runs for the chapter on reproduction to compare with: seconds, not minutes."""
    monkeypatch.setattr(paths, "PUBLISHED_RUNS", Path("nowhere"))


@functools.cache
def quoted(name, runs, profile):
    return QUOTED[name](runs, profile)


@pytest.mark.parametrize("name", [*book.ANALYSES, "run_campaign", "run_configuration"])
def test_a_notebooks_chapter_has_its_name(name):
    importlib.import_module(f"runners.report.chapters.{name}")


def test_the_chapters_that_pages_quote_are_the_ones_tested_here():
    assert {name for name in book.ANALYSES if book.asked_names(name)} == set(QUOTED)


@pytest.mark.slow
@pytest.mark.parametrize("name", QUOTED)
def test_a_chapter_makes_the_figures_that_pages_ask_for_and_no_others(name, runs, tmp_path):
    for run in ((runs, PROFILE), (tmp_path, PROFILE), (tmp_path, KIMI)):
        values = quoted(name, *run)
        assert set(values) == book.asked_names(name)
        assert all(isinstance(v, str) and v and "nan" not in v for v in values.values()), values


def test_figures_of_made_up_runs(runs):
    values = quoted("verdict", runs, PROFILE)
    assert values["gains_most_configuration"] == "vllm-ngram" and values["gains_most_workload"] == "edit"
    assert quoted("acceptance", runs, PROFILE)["control_accept_length"] == "1.00"
    values = quoted("comparison", runs, PROFILE)
    assert values["repeats"] == "2 to 3" and "cells count and 1 are void" in values["measured_sentence"]


def test_nothing_measured_is_said_in_every_figure_of_the_verdict(tmp_path):
    values = dict(quoted("verdict", tmp_path, PROFILE))
    assert all(NOT_MEASURED in value for value in values.values())


def test_the_cases_figures():
    case = reported.case()
    sentence = comparison.reported_engines_sentence(case)
    assert "54% ahead of vLLM" in sentence and "30% ahead of SGLang" in sentence
    assert "prints 25% for it and the new one 0%" in acceptance.floor_sentence(case)
    third_party = acceptance.reported_table(case).set_index("configuration (reported)").loc["sglang-eagle3-aq-medai"]
    assert third_party["(AL - 1) / K"] == "22%"
    assert "needed 1.56" in reported_case.break_even_sentence(case)
    costs = reported_case.step_costs_table(case).set_index(["configuration (reported)", "C"])
    assert costs.loc[("sglang-eagle3-aq-medai", 128), "step-cost ratio r = break-even length"] == "4.6"


def test_a_cell_stands_beside_its_base_and_the_best_drafter_first(runs):
    pairs = examples.beside_base(results.cells(runs, PROFILE))
    assert set(pairs.method_base) == {"none"} and pairs.method.iloc[0] == "eagle3" and pairs.method.iloc[-1] == "ngram"
    assert all(own.tokens_per_step.is_monotonic_decreasing for _, own in pairs.groupby(pairs.method == "ngram"))
    assert (pairs.engine == pairs.configuration_base.str.split("-").str[0]).all()
    assert "llamacpp-eagle3-untrained" in set(pairs.configuration)


def test_without_a_cell_there_is_no_pair(tmp_path):
    assert examples.beside_base(results.cells(tmp_path, PROFILE)).empty


def test_reasons_and_logs_from_outside_are_escaped(tmp_path):
    bad = "<script>alert(1)</script>"
    statuses = results.statuses(tmp_path, PROFILE).assign(reason=bad)
    folder = tmp_path / PROFILE / "vllm-base"
    folder.mkdir(parents=True)
    Ledger(folder).write_json("status.json", {"status": "not measured here", "reason": bad})
    status = run_configuration.status_sentence(tmp_path, load(PROFILE), "vllm-base")
    sentences = [comparison.not_measured_sentence(statuses), status]
    (folder / "server.log").write_text(bad)
    sentences.append(run_configuration.log_html(tmp_path, load(PROFILE), "vllm-base"))
    assert all("&lt;script&gt;" in text and "<script>" not in text for text in sentences)
    assert "<script>" not in statuses.to_html()  # tables are pandas' own HTML


def test_a_run_page_without_a_run_says_so(tmp_path):
    profile = load(PROFILE)
    assert run_configuration.own_cells(tmp_path, profile, "vllm-base").empty
    assert run_configuration.starts_table(tmp_path, profile, "vllm-base").empty
    assert run_configuration.log_html(tmp_path, profile, "vllm-base") is None
    assert run_configuration.command_text(profile, "vllm-base").startswith("```bash\n")


def test_a_campaigns_page_says_what_is_compared_and_how_it_ended():
    table = run_campaign.comparisons_table(load(PROFILE), "quick", ["vllm-base", "vllm-ngram", "llamacpp-base"])
    assert list(zip(table["base"], table["compared with it"], strict=True)) == [
        ("vllm-base", "vllm-ngram"),
        ("vllm-base", "llamacpp-base"),
    ]
    done = Campaign("20261201-120000", 7, "quick", "2026-12-01T12:00:00Z", 3, seconds=1200.0, spent_s=600.0)
    assert "0 starts, 0 blocks" in run_campaign.campaign_sentence(done) and run_campaign.starts_table(done).empty
    done.visits.append(Visit(0, ["vllm-base", "vllm-ngram"], [["chat", 1], ["chat", 1], ["edit", 4]], 41.6))
    done.finished = True
    sentence = run_campaign.campaign_sentence(done)
    assert "1 starts, 3 blocks, 10 min of 20 min allowed; finished" in sentence, sentence
    (row,) = run_campaign.starts_table(done).to_dict("records")
    assert (row["blocks"], row["points"], row["s"]) == (3, "chat C=1, edit C=4", 42)
    assert "without a limit; finished" in run_campaign.campaign_sentence(dataclasses.replace(done, seconds=None))


def test_a_run_page_shows_its_own_cells(runs):
    cells = run_configuration.own_cells(runs, load(PROFILE), "llamacpp-ngram")
    table = run_configuration.cells_table(cells)
    assert len(table) == len(cells) == 18 and "machine busy" in " ".join(table["why void"])
    assert len(run_configuration.gates_table(cells)) == 18
    assert run_configuration.cells_table(cells.head(0)).empty
