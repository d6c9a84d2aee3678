"""The sweeps' tables: which drafters are compared with which, and what is said of the step cost's spread."""

import pandas as pd
import pytest

from runners.analyse import crossover, sweeps
from runners.report.chapters.payoff import crossover as crossover_chapter
from runners.report.charts import crossover as crossover_charts

ROWS = [  # configuration, engine, method, k, tokens per step, r
    ("vllm-eagle3-k1", "vllm", "eagle3", 1, 1.4, 1.1),
    ("vllm-eagle3-k3", "vllm", "eagle3", 3, 1.7, 1.25),
    ("vllm-eagle3-degraded-0.4", "vllm", "eagle3", 3, 1.3, 1.30),
    ("vllm-draft-self", "vllm", "draft_model", 3, 4.0, 4.2),
    ("llamacpp-eagle3-k5", "llamacpp", "eagle3", 5, 1.8, 3.0),
    ("llamacpp-forced-2.0", "llamacpp", "eagle3", 3, 2.0, 2.4),
    ("llamacpp-forced-4.0", "llamacpp", "eagle3", 3, 4.0, 2.0),
]


@pytest.fixture
def swept():
    found = sweeps.Sweeps("nowhere", "lab-cpu")
    frame = pd.DataFrame(ROWS, columns=["configuration", "engine", "method", "k", "tokens_per_step", "step_cost"])
    frame = frame.assign(workload="chat", concurrency=1, step_cost_lo=1.0, step_cost_hi=5.0)
    found.costs = frame.assign(speed_up=1.0, speed_up_lo=0.9, speed_up_hi=1.1)
    found.synthetic = pd.Series({"llamacpp-forced-2.0": 2.0, "llamacpp-forced-4.0": 4.0})
    found.drafter_of = crossover.drafters("lab-cpu-sweeps")
    return found


def test_one_drafters_cost_is_set_beside_its_acceptance(swept):
    rows = swept.graded()
    assert set(rows.configuration) == {n for n, *_ in ROWS} - {"vllm-eagle3-k1", "llamacpp-eagle3-k5"}
    assert set(rows.drafter[rows.configuration == "vllm-draft-self"]) == {sweeps.ITSELF}
    assert set(rows.drafter[rows.configuration == "vllm-eagle3-degraded-0.4"]) == {"aligned"}
    said = crossover_chapter.graded_sentence(rows)
    assert "vllm: accept lengths from 1.30 to 1.70; at C=1 *r* differs by 4%" in said  # the target itself is not in it
    assert "llamacpp: accept lengths from 2.00 to 4.00; at C=1 *r* differs by 20%" in said
    assert len(crossover_chapter.graded_table(rows)) == 5 and "vllm-draft-self" in str(
        crossover_charts.graded(rows).to_dict()
    )


def test_the_chart_over_k_holds_no_drafter_made_worse_on_purpose(swept):
    own = swept.at_their_best()
    assert set(own.configuration) == {"vllm-eagle3-k1", "vllm-eagle3-k3", "llamacpp-eagle3-k5"}
    assert set(swept.drafted().configuration) > set(own.configuration)


def test_without_sweeps_all_is_empty():
    empty = sweeps.Sweeps("nowhere", "lab-cpu")
    assert empty.graded().empty and empty.at_their_best().empty
    assert "not measured here" in crossover_chapter.graded_sentence(empty.graded())
    assert "not measured here" in str(crossover_charts.graded(empty.graded()).to_dict())
