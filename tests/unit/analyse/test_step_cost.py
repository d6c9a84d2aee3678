"""The step-cost ratio: its identity with the speed-up, its intervals, and the reported table."""

import numpy as np
import pytest
import synthetic_runs

from runners.analyse import inference, metrics, reported, results, step_cost
from runners.core import format, paths
from runners.core.errors import UserError
from runners.report.chapters.comparison import ratio_table
from runners.report.chapters.verdict.pays import step_cost_table

PROFILE = synthetic_runs.PROFILE


@pytest.fixture(scope="module")
def frames(tmp_path_factory):
    runs = synthetic_runs.write(tmp_path_factory.mktemp("runs"), repeats=5, prompts=16)
    return results.cells(runs, PROFILE), results.requests(runs, PROFILE)


@pytest.fixture(scope="module")
def costs(frames):
    return step_cost.step_costs(*frames)


def _at(costs, configuration, workload, concurrency):
    rows = costs[(costs.configuration == configuration) & (costs.workload == workload)]
    return rows[rows.concurrency == concurrency].iloc[0]


def test_step_cost_by_hand():
    assert step_cost.step_cost_ratio(1.65, 1 / 62.9, 1 / 63.6) == pytest.approx(1.668, abs=1e-3)


@pytest.mark.parametrize(
    ("configuration", "cost"),
    [("llamacpp-eagle3-untrained", 3.4), ("llamacpp-ngram", 1.25), ("vllm-ngram", 1.05)],
)
@pytest.mark.parametrize("workload", ["chat", "edit", "all"])
def test_recovers_the_cost_the_ledger_was_made_with(costs, configuration, cost, workload):
    row = _at(costs, configuration, workload, 4)
    assert row.step_cost == pytest.approx(cost, rel=0.05)
    assert row.step_cost_lo < row.step_cost < row.step_cost_hi and row.unit == inference.STARTS


def test_length_over_cost_is_exactly_the_decode_speed_up(costs):
    """Every method, n-gram included, and the pool: all three are means of logarithms over the same blocks."""
    known = costs[costs.step_cost.notna()]
    assert set(known.method) == {"ngram", "eagle3"} and "all" in set(known.workload)
    assert np.allclose(known.tokens_per_step / known.step_cost, known.decode_speed_up, rtol=1e-12)


def test_what_is_modelled_is_marked(costs):
    """One engine neither counts n-gram's plain steps nor leaves out tokens that were cut off."""
    assert set(costs[costs.modelled].configuration) == {"vllm-ngram"}


def test_untrained_pays_its_whole_overhead(costs):
    row = _at(costs, "llamacpp-eagle3-untrained", "chat", 1)
    assert row.tokens_per_step == 1.0 and row.accepted == 0 and row.ceiling == 4
    assert row.decode_speed_up == pytest.approx(1 / row.step_cost)


def test_void_repeat_is_left_out(costs):
    row = _at(costs, "llamacpp-ngram", "edit", 16)
    assert (row.n_repeats, row.n_void) == (4, 1)
    assert row.step_cost == pytest.approx(1.25, rel=0.05)


def test_one_start_and_no_earlier_campaign_is_undecided(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "PUBLISHED_RUNS", tmp_path / "none")
    runs = synthetic_runs.write(tmp_path, repeats=1, prompts=16)
    costs = step_cost.step_costs(results.cells(runs, PROFILE), results.requests(runs, PROFILE))
    row = _at(costs, "llamacpp-ngram", "edit", 4)
    assert row.unit == inference.NOTHING and np.isnan(row.step_cost_lo) and np.isnan(row.speed_up_lo)
    assert row.tokens_per_step / row.step_cost == pytest.approx(row.decode_speed_up)
    assert set(costs.pays) == {inference.UNDECIDED} and costs.p.isna().all()


def test_an_answer_needs_its_table_too(costs):
    """yes and no hold with the false discovery rate kept over all points; p and pays are of one model."""
    clear = costs[costs.pays.isin((inference.YES, inference.NO))]
    assert len(clear) and (clear.q <= 0.05).all() and (clear.p <= clear.q).all()
    yes = costs[costs.pays == inference.YES]
    assert (yes.speed_up_lo > 1 + step_cost.MARGIN).all()


@pytest.mark.slow
def test_without_a_base_there_is_no_ratio(frames):
    cells, requests = frames
    costs = step_cost.step_costs(cells[cells.configuration != "vllm-base"], requests)
    row = _at(costs, "vllm-ngram", "edit", 4)
    assert np.isnan(row.step_cost) and np.isnan(row.speed_up) and row.base == "vllm-base", "the profile names it"
    assert format.NOT_MEASURED in step_cost_table(costs).to_string()


def test_ledger_medians_stand_in_for_missing_requests(frames):
    cells, requests = frames
    tpot = metrics.decode_tpot(cells, requests.iloc[0:0])
    assert tpot.tolist() == cells.tpot_ms_p50.tolist()


def test_empty_ledger(tmp_path):
    costs = step_cost.step_costs(results.cells(tmp_path, PROFILE), results.requests(tmp_path, PROFILE))
    assert costs.empty and costs.columns.tolist() == step_cost.COLUMNS
    assert step_cost_table(costs).empty and ratio_table(costs).empty


def test_reported_ratios():
    found = reported.step_costs(reported.case()).set_index(["configuration", "concurrency"])
    assert found.step_cost.loc["sglang-eagle3-aq-medai", 1] == pytest.approx(1.67, abs=0.005)
    assert found.step_cost.loc["sglang-eagle3-own", 1] == pytest.approx(1.56, abs=0.005)
    assert found.step_cost.loc["sglang-eagle3-aq-medai", 128] == pytest.approx(4.6, abs=0.05)
    assert found.step_cost.loc["sglang-eagle3-own", 128] == pytest.approx(4.0, abs=0.05)
    assert found.like_for_like.tolist() == [True, False, True, False]
    assert "48" in found.note.loc["sglang-eagle3-own", 128]


def test_reported_file_is_checked(tmp_path):
    with pytest.raises(UserError, match="is missing"):
        reported.case(tmp_path / "case.csv")
    (tmp_path / "case.csv").write_text("configuration,engine\na,b\n")
    with pytest.raises(UserError, match="lacks single_stream_tok_s"):
        reported.case(tmp_path / "case.csv")


@pytest.mark.parametrize(("written", "share"), [("about 42%", 0.42), ("25%", 0.25), ("0.42", 0.42), ("42", 0.42)])
def test_printed_rates_are_read_in_any_form(tmp_path, written, share):
    head = ",".join(reported.COLUMNS)
    (tmp_path / "case.csv").write_text(f"{head}\na,sglang,1,2,{written},1.65,4,note\n")
    assert reported.case(tmp_path / "case.csv").accept_rate_as_printed.tolist() == pytest.approx([share])
