"""Absolute speeds: what counts, and that a speed has an interval over campaigns only."""

import numpy as np
import pandas as pd
import pytest
import synthetic_runs
from scipy import stats

from runners.analyse import inference, results, summarise
from runners.analyse.metrics import METRICS
from runners.core import machine_speed
from runners.report.chapters import comparison as comparison_chapter

PROFILE = synthetic_runs.PROFILE


@pytest.fixture(scope="module")
def five(tmp_path_factory):
    runs = synthetic_runs.write(tmp_path_factory.mktemp("runs"), repeats=5, prompts=16)
    return results.cells(runs, PROFILE), results.requests(runs, PROFILE)


def test_summary_counts_voids_and_leaves_them_out(five):
    cells, _ = five
    summary = summarise.summarise(cells)
    point = summary.query("configuration == 'llamacpp-ngram' and workload == 'edit' and concurrency == 16").iloc[0]
    assert (point.n_repeats, point.n_void) == (4, 1)
    good = results.ok(cells).query("configuration == 'llamacpp-ngram' and workload == 'edit' and concurrency == 16")
    assert point.throughput == pytest.approx(good.output_tokens_per_second.mean())


def test_a_speed_of_one_campaign_has_no_interval(five):
    summary = summarise.summarise(five[0], with_pooled=True)
    assert set(summary.unit) == {inference.NOTHING} and summary.throughput.notna().all()
    assert summary[[f"{m}{end}" for m in METRICS for end in ("_lo", "_hi")]].isna().all().all()


def test_a_speed_of_several_campaigns_has_students_t_over_them(five):
    slower = {"one": 1.0, "two": 0.8, "three": 0.9}
    cells = pd.concat(
        [five[0].assign(campaign=c, output_tokens_per_second=100.0 * f) for c, f in slower.items()], ignore_index=True
    )
    row = summarise.summarise(cells).iloc[0]
    logs = np.log(list(slower.values()))
    reach = np.exp(stats.t.ppf(0.975, 2) * logs.std(ddof=1) / np.sqrt(3))
    assert row.unit == inference.CAMPAIGNS and row.n_campaigns == 3 and row.throughput == pytest.approx(90.0)
    assert row.throughput_hi / row.throughput == pytest.approx(reach)


def test_pooled_is_all_tokens_over_all_seconds(five):
    cells, _ = five
    pooled = summarise.pooled(cells)
    row = pooled.query("configuration == 'vllm-base' and concurrency == 4 and repeat == 2").iloc[0]
    own = cells.query("configuration == 'vllm-base' and concurrency == 4 and repeat == 2")
    assert row.output_tokens_per_second == pytest.approx(own.output_tokens.sum() / own.seconds.sum())
    # A repeat with a void cell has no pooled row: it would compare different work.
    assert pooled.query("configuration == 'llamacpp-ngram' and concurrency == 16").repeat.tolist() == [
        0,
        2,
        3,
        4,
    ]


@pytest.mark.slow
def test_the_machines_speed_is_a_number_of_this_machine():
    assert 0 < machine_speed.gflops() < float("inf")


def test_empty_ledger(tmp_path):
    empty = results.cells(tmp_path, PROFILE)
    assert summarise.summarise(empty, with_pooled=True).empty
    assert comparison_chapter.gates_table(empty).empty
