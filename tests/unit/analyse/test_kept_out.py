"""Forecasts of cells that no model has seen: the baseline by hand, the comparison, and intervals that cover."""

import math

import numpy as np
import pandas as pd
import pytest

from runners.analyse import forecast_models, kept_out, log_linear, step_points
from runners.analyse.forecast_models import LOG_LINEAR, MEAN, STEP_MODEL
from runners.report.chapters.payoff import forecasts as chapter

LEVEL, SLOPE = {"chat": 1.2, "edit": 1.4}, 0.1


def points(drafters=("d",), ks=(1, 3), levels=(1, 4, 16)):
    """Points of an engine whose r is the baseline: r = level x C^SLOPE for each draft above one plain step."""
    rows = []
    for workload, level in LEVEL.items():
        for c in levels:
            base = ["base", "vllm", "none", 0, workload, c, ""]
            rows.append([*base, 10, c, 60.0, 64, 92.0, float(c), 0.0, 40.0, 40.0, 1.0, 0.02])
            for drafter in drafters:
                for k in ks:
                    r = 1 + k * (level * c**SLOPE - 1)
                    names = [f"{drafter}-k{k}", "vllm", "eagle3", k, workload, c, drafter]
                    rows.append([*names, 10, c, 60.0, 64, 92.0, float(c), 0.0, 40 * r, 40.0, 1 + 0.4 * k, 0.02])
    return pd.DataFrame(rows, columns=step_points.COLUMNS)


def test_the_baseline_is_a_straight_line_of_the_logarithms():
    rows = forecast_models.measured(points(ks=(1,)))
    assert (rows.speed_up * rows.r).tolist() == pytest.approx(rows.tokens_per_step.tolist())
    lines = log_linear.fit(rows)
    assert lines["d"][1.0].slope == pytest.approx(SLOPE)
    assert log_linear.step_cost(lines, "d", 1, "edit", 64) == pytest.approx(1.4 * 64**SLOPE)
    # A longer context costs what its workload does; another workload the mean of what is known.
    assert log_linear.step_cost(lines, "d", 1, "edit@640", 4) == pytest.approx(1.4 * 4**SLOPE)
    assert log_linear.step_cost(lines, "d", 1, "code", 1) == pytest.approx(math.sqrt(1.2 * 1.4))
    assert math.isnan(log_linear.step_cost(lines, "another", 1, "edit", 4))
    assert log_linear.fit(rows[rows.concurrency == 1]) == {}  # one concurrency makes no line


def test_another_k_lies_between_those_that_were_measured():
    line = {k: log_linear.Line({"chat": math.log(r)}, 0.0) for k, r in ((1.0, 1.2), (3.0, 1.8))}
    for known, k, r in [({1.0}, 3, 1.6), ({3.0}, 1, 1 + 0.8 / 3), ({1.0, 3.0}, 2, 1.5), ({1.0, 3.0}, 5, 2.4)]:
        lines = {"d": {at: own for at, own in line.items() if at in known}}
        assert log_linear.step_cost(lines, "d", k, "chat", 4) == pytest.approx(r)


def test_each_cell_is_kept_out_twice_and_the_forecast_is_the_geometric_mean():
    kept = kept_out.costs(points())
    assert len(kept) == 24 and set(kept.kept) == set(kept_out.WAYS)
    assert set(kept[kept.kept == kept_out.CONCURRENCY].of) == {"1", "4", "16"}
    assert kept[MEAN].tolist() == pytest.approx(np.sqrt(kept[STEP_MODEL] * kept[LOG_LINEAR]).tolist())
    by_concurrency = kept[(kept.kept == kept_out.CONCURRENCY) & (kept.k == 1)]
    assert by_concurrency[LOG_LINEAR].tolist() == pytest.approx(by_concurrency.r.tolist())
    scores = kept_out.scored(kept)
    assert set(scores.model) == {MEAN}
    assert scores.error.tolist() == pytest.approx((kept.r / kept[MEAN] - 1).tolist())


def test_a_drafter_that_only_one_model_knows_is_forecast_by_that_one_and_compared_with_none():
    models = forecast_models.fit(points(ks=(1,)))
    assert models.know("d") and not models.know("another")
    alone = forecast_models.Models(None, models.lines)
    out = points(ks=(1,))
    assert set(forecast_models.forecasts(alone, out).model) == {LOG_LINEAR}
    assert kept_out.compared(kept_out.beside(alone, out, "", ""), ["engine"]).empty
    assert forecast_models.forecasts(models, points(drafters=("another",))).empty


def test_the_models_stand_side_by_side_on_the_same_points():
    kept = kept_out.costs(points()).assign(runs="here")
    row = kept_out.compared(kept, ["engine"]).iloc[0]
    assert row.points == 24 and row[LOG_LINEAR] < 0.02 and 0 <= row[f"nearer_{STEP_MODEL}"] <= 1
    table = chapter.models_table(kept)
    assert list(table["kept out"]) == list(kept_out.WAYS) and set(table["points"]) == {12}
    assert "Over all 24 forecasts, in 2 groups" in chapter.choice_sentence(kept)
    assert "Too few cells were kept out for an interval" in chapter.kept_out_sentence(kept)
    assert len(chapter.kept_out_table(kept)) == 24
    assert chapter.models_table(kept.iloc[:0]).empty and "not measured" in chapter.choice_sentence(kept.iloc[:0])


def test_an_interval_takes_nineteen_errors_and_counts_ranks_as_conformal_prediction_does():
    errors = np.linspace(-0.19, -0.01, 19)
    assert kept_out.half_width(errors) == pytest.approx(0.19) and math.isnan(kept_out.half_width(errors[1:]))
    assert kept_out.half_width(np.arange(39)) == 37  # the 38th of 39
    assert math.isnan(kept_out.half_width(np.array([])))


def test_an_interval_of_few_errors_covers_a_new_one():
    rng = np.random.default_rng(1)
    for n in (19, 25, 60):
        inside = [abs(x[0]) <= kept_out.half_width(x[1:]) for x in rng.standard_t(4, (2000, n + 1))]
        assert np.mean(inside) > 0.935


def test_what_was_kept_out_together_does_not_vouch_for_itself():
    def errors(name, concurrency, size, count, kept="each C"):
        rows = {"configuration": [f"{name}{n}" for n in range(count)], "workload": "chat", "concurrency": concurrency}
        return pd.DataFrame(rows | {"kept": kept, "of": str(concurrency), "log_error": size})

    far, near = errors("a", 16, 0.5, 5), errors("a", 1, 0.01, 25)
    # The five far ones have 25 errors for their interval, the 25 near ones five: too few to be tried.
    assert kept_out.coverage(pd.concat([far, near], ignore_index=True)) == (0, 5)
    again = errors("a", 16, 0.5, 5, kept="each configuration")
    assert kept_out.coverage(pd.concat([far, near, again], ignore_index=True)) == (0, 10)
