"""Intervals: what is resampled, what stays out, and whether they hold what they say."""

import numpy as np
import pandas as pd
import pytest
import synthetic_runs

from runners.analyse import intervals, results, step_cost, summarise
from runners.analyse.metrics import METRICS
from runners.core import format, machine_speed
from runners.report.chapters import comparison as comparison_chapter

PROFILE = synthetic_runs.PROFILE


@pytest.fixture(scope="module")
def five(tmp_path_factory):
    runs = synthetic_runs.write(tmp_path_factory.mktemp("runs"), repeats=5, prompts=16)
    return results.cells(runs, PROFILE), results.requests(runs, PROFILE)


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    runs = synthetic_runs.write(tmp_path_factory.mktemp("runs"), repeats=1, prompts=16)
    return results.cells(runs, PROFILE), results.requests(runs, PROFILE)


def test_interval_is_deterministic_and_holds_the_mean():
    values = [10.0, 11.0, 9.5, 10.2, 10.8]
    a, b = intervals.interval(values, seed=1), intervals.interval(values, seed=1)
    assert a == b and a.lo < np.mean(values) == a.point < a.hi and a.n == 5


@pytest.mark.parametrize(("values", "bounds"), [([3.0], None), ([3.0, 3.0, 3.0], (3.0, 3.0))])
def test_degenerate_values(values, bounds):
    found = intervals.interval(values)
    assert found.point == 3.0
    assert (found.lo, found.hi) == bounds if bounds else np.isnan(found.lo)


def test_no_values():
    found = intervals.interval([])
    assert np.isnan(found.point) and found.text() == format.NOT_MEASURED


def test_small_samples_are_widened():
    assert intervals.expanded(0.95, 5) > intervals.expanded(0.95, 50) > 0.95
    found = intervals.interval([1.0, 2.0, 4.0])
    assert (found.lo, found.hi) == (1.0, 4.0)  # three repeats: the whole range


def test_coverage_is_near_the_level_at_five_repeats_and_lower_at_three():
    assert 0.88 <= intervals.coverage(5, trials=150) <= 1.0
    assert intervals.coverage(3, trials=150) < intervals.coverage(5, trials=150)


def test_side_and_map():
    found = intervals.Interval(2.0, 1.5, 3.0, 5)
    assert found.side == 1 and found.map(lambda x: 1 / x).side == -1
    assert found.map(lambda x: 1 / x).lo == pytest.approx(1 / 3)
    assert intervals.nothing().side == 0


@pytest.mark.slow
def test_summary_counts_voids_and_leaves_them_out(five):
    cells, requests = five
    summary = summarise.summarise(cells, requests)
    point = summary.query("configuration == 'llamacpp-ngram' and workload == 'edit' and concurrency == 16").iloc[0]
    assert (point.n_repeats, point.n_void) == (4, 1)
    good = results.ok(cells).query("configuration == 'llamacpp-ngram' and workload == 'edit' and concurrency == 16")
    assert point.throughput == pytest.approx(good.output_tokens_per_second.mean())
    assert set(summary.unit) == {intervals.REPEATS}
    assert (summary.throughput_lo <= summary.throughput).all() and (summary.throughput <= summary.throughput_hi).all()


@pytest.mark.slow
def test_few_repeats_resample_requests_and_say_so(one):
    summary = summarise.summarise(*one)
    measured = summary[summary.n_repeats > 0]
    assert set(measured.unit) == {intervals.WITHIN_RUN}
    for metric in set(METRICS) - {"goodput"}:
        assert (measured[f"{metric}_lo"] <= measured[metric]).all()
        assert (measured[metric] <= measured[f"{metric}_hi"]).all()


@pytest.mark.slow
def test_the_pool_within_a_run_resamples_each_workload_for_itself(one):
    cells, requests = one
    summary = summarise.summarise(cells, requests, with_pooled=True)
    at = summary[(summary.configuration == "vllm-ngram") & (summary.concurrency == 1)].set_index("workload")
    width = (at.stream_hi - at.stream_lo) / at.stream
    # The workloads differ by a third; that difference is the plan's and must not widen the pool's interval.
    assert width["all"] < 1.5 * max(width["chat"], width["edit"])
    assert at.stream_lo["all"] <= at.stream["all"] <= at.stream_hi["all"]


def test_without_requests_few_repeats_have_no_bounds(one):
    cells, requests = one
    summary = summarise.summarise(cells, requests.iloc[0:0])
    measured = summary[summary.n_repeats > 0]
    assert measured.throughput_lo.isna().all() and measured.throughput.notna().all()
    assert set(measured.unit) == {intervals.NOTHING}


def test_pooled_is_all_tokens_over_all_seconds(five):
    cells, _ = five
    pooled = summarise.pooled(cells)
    row = pooled.query("configuration == 'vllm-base' and concurrency == 4 and repeat == 2").iloc[0]
    own = cells.query("configuration == 'vllm-base' and concurrency == 4 and repeat == 2")
    assert row.output_tokens_per_second == pytest.approx(own.output_tokens.sum() / own.seconds.sum())
    assert sorted(row["keys"]) == sorted(own.key)
    # A repeat with a void cell has no pooled row: it would compare different work.
    assert pooled.query("configuration == 'llamacpp-ngram' and concurrency == 16").repeat.tolist() == [
        0,
        2,
        3,
        4,
    ]


def over_base(cells, requests, configuration, workload, concurrency):
    """Throughput of a configuration over its engine's base at one point."""
    at = cells[(cells.workload == workload) & (cells.concurrency == concurrency)]
    own = at[at.configuration == configuration]
    base = results.base_of(cells, own.engine.iloc[0]) if len(own) else None
    return summarise.ratio_of(own, at[at.configuration == base], requests)


def test_ratio_is_paired_by_repeat(five):
    found = over_base(*five, "vllm-ngram", "edit", 4)
    assert found.paired and found.unit == intervals.REPEATS and found.n == 5
    assert found.lo < found.point < found.hi and found.side == 1


def test_ratio_within_the_run_is_paired_by_prompt(one):
    found = over_base(*one, "vllm-ngram", "edit", 4)
    assert found.paired and found.within_run and found.lo < found.point < found.hi
    cells = one[0].set_index("key").output_tokens_per_second
    assert found.point == pytest.approx(cells["vllm-ngram-edit-c4-r0"] / cells["vllm-base-edit-c4-r0"])


def test_ratio_on_other_prompts_is_not_paired(five):
    cells, requests = five
    renamed = requests.assign(
        prompt_id=np.where(requests.configuration == "vllm-base", "x" + requests.prompt_id, requests.prompt_id)
    )
    found = over_base(cells, renamed, "vllm-ngram", "edit", 4)
    assert not found.paired and found.unit == intervals.REPEATS and found.lo < found.point < found.hi


@pytest.mark.slow
def test_a_ratio_holds_what_the_machine_itself_moved(five):
    cells, requests = five
    as_measured = over_base(cells, requests, "vllm-ngram", "edit", 4)
    slow = (cells.configuration == "vllm-ngram").map({True: 6.0, False: 8.0})
    found = over_base(cells.assign(machine_gflops=slow), requests, "vllm-ngram", "edit", 4)
    assert found.point == as_measured.point and found.lo == as_measured.lo
    assert found.hi == pytest.approx(as_measured.hi * 8 / 6)  # as fast a machine would have shown up to so much
    assert over_base(cells.assign(machine_gflops=8.0), requests, "vllm-ngram", "edit", 4) == as_measured

    own, base = (cells[cells.configuration == n] for n in ("vllm-ngram", "vllm-base"))
    own, base = own.assign(machine_gflops=6.0), base.assign(machine_gflops=8.0)
    before = summarise.ratio_of(own.drop(columns="machine_gflops"), base, requests, "tpot_ms")
    after = summarise.ratio_of(own, base, requests, "tpot_ms")
    assert after.lo == pytest.approx(before.lo * 6 / 8) and after.hi == before.hi  # its time was too long
    assert step_cost.step_costs(pd.concat([own, base]), requests).step_cost_lo.notna().any()


@pytest.mark.slow
def test_the_machines_speed_is_a_number_of_this_machine():
    assert 0 < machine_speed.gflops() < float("inf")


def test_ratio_pairing_removes_a_common_drift():
    drift = np.array([1.0, 1.3, 0.8, 1.1, 0.9])
    base = dict(status="ok", workload="w", concurrency=1, method="none", engine="e", configuration="b")
    rows = [base | dict(repeat=i, key=f"b{i}", output_tokens_per_second=100 * d) for i, d in enumerate(drift)]
    own = base | dict(method="ngram", configuration="s")
    rows += [own | dict(repeat=i, key=f"s{i}", output_tokens_per_second=110 * d) for i, d in enumerate(drift)]
    requests = pd.DataFrame([{"key": r["key"], "prompt_id": "p"} for r in rows])
    columns = ("sent_s", "first_token_s", "last_token_s")
    requests = requests.assign(error=None, output_tokens=2, **{c: float(i) for i, c in enumerate(columns)})
    found = over_base(pd.DataFrame(rows), requests, "s", "w", 1)
    assert found.paired and found.point == pytest.approx(1.1) and found.hi - found.lo < 1e-6


def test_ratio_without_base_or_cells(five):
    cells, requests = five
    no_base = cells[cells.configuration != "vllm-base"]
    assert np.isnan(over_base(no_base, requests, "vllm-ngram", "edit", 4).point)
    assert np.isnan(over_base(cells, requests, "nobody", "edit", 4).point)


def test_empty_ledger(tmp_path):
    empty = results.cells(tmp_path, PROFILE), results.requests(tmp_path, PROFILE)
    assert summarise.summarise(*empty, with_pooled=True).empty
    assert comparison_chapter.gates_table(empty[0]).empty
