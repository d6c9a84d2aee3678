"""One place for the definitions: each against numbers done by hand."""

import math
import random

import pytest
import synthetic_runs

from runners.analyse import acceptance, results
from runners.core import acceptance_math
from runners.report.chapters import acceptance as acceptance_chapter

PROFILE = synthetic_runs.PROFILE


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    return results.cells(synthetic_runs.write(tmp_path_factory.mktemp("runs"), repeats=2, prompts=8), PROFILE)


def test_the_floor_reads_a_quarter_under_the_old_definition_and_zero_under_the_new():
    al = acceptance_math.accept_length(1000, 0)
    assert (al, acceptance_math.sglang_rate_old(al, 4), acceptance_math.sglang_rate_new(al, 4)) == (1.0, 0.25, 0.0)
    first = acceptance_chapter.floor_table(4).iloc[0]
    assert first["accepted A"] == "0" and "25.0%" in first.tolist() and "0.0%" in first.tolist()


def _counts(**changed):
    row = {"engine": "llamacpp", "method": "ngram", "steps": 40, "accepted": 52, "output_tokens": 256, "requests": 4}
    return row | {"accepted_per_position": [30, 22]} | changed


def test_tokens_per_step_counts_undrafted_steps():
    # 4 requests of 64 tokens: 252 decode tokens; 52 accepted leaves 200 steps, 40 of them with a draft.
    assert acceptance.decode_steps(_counts()) == 200
    assert acceptance.tokens_per_step(_counts()) == pytest.approx(1.26)
    assert acceptance_math.accept_length(40, 52) == pytest.approx(2.3)


def test_a_drafter_model_is_counted_by_the_engine_when_it_counts_cut_off_tokens():
    # 252 decode tokens, 160 accepted, of which the limit cut 8: the engine ran 100 steps and not 92.
    row = _counts(engine="vllm", method="eagle3", steps=100, accepted=160)
    assert acceptance.decode_steps(row) == 100
    assert acceptance.tokens_per_step(row) == pytest.approx(2.52)


def test_a_window_holds_fewer_tokens_than_the_servers_counters():
    """The counters run from the ramp to the cut: tokens and requests are taken over the same span."""
    window = dict(occupancy=0.98, output_tokens=128, requests=1, server_output_tokens=256, output_tokens_per_request=64)
    assert acceptance.decode_steps(_counts(**window)) == 200  # as without a window: 252 decode tokens, 52 accepted
    row = _counts(method="eagle3", steps=100, accepted=160, **window)
    assert acceptance.decode_steps(row) == 100 and acceptance.tokens_per_step(row) == pytest.approx(2.6)


def test_the_requests_of_a_window_are_those_that_began_where_the_row_says_how_many():
    """Answers of a ramp are shorter, and cut ones too: 256 tokens of 12 requests are 244 decode tokens, 52 accepted."""
    window = dict(occupancy=0.98, output_tokens=128, requests=1, server_output_tokens=256, output_tokens_per_request=64)
    row = _counts(**window, requests_begun=12)
    assert acceptance.decode_steps(row) == 192 and acceptance.tokens_per_step(row) == pytest.approx(244 / 192)
    modelled = _counts(engine="vllm", **window)
    assert acceptance.decode_steps(modelled | {"requests_begun": 12}) == acceptance.decode_steps(modelled)


@pytest.mark.parametrize(("drafted_share", "chance"), [(0.3, 0.5), (0.8, 0.9), (1.0, 0.95), (0.5, 0.0)])
def test_cut_off_tokens_of_ngram_are_estimated(drafted_share, chance):
    # Requests of 63 decode tokens whose last step overshoots, counted as vLLM counts them.
    rng, k, requests = random.Random(5), 5, 400
    steps = drafted = accepted = 0
    positions = [0] * k
    for _ in range(requests):
        tokens = 0
        while tokens < 63:
            steps, tokens = steps + 1, tokens + 1
            if rng.random() < drafted_share:
                drafted += 1
                for i in range(k):
                    if rng.random() >= chance:
                        break
                    positions[i], accepted, tokens = positions[i] + 1, accepted + 1, tokens + 1
    row = _counts(engine="vllm", steps=drafted, accepted=accepted, accepted_per_position=positions)
    row |= {"requests": requests, "output_tokens": 64 * requests}
    assert acceptance.decode_steps(row) == pytest.approx(steps, rel=0.02)


def test_cells_without_counts_stay_out_of_the_sums(cells):
    own = cells[cells.configuration == "vllm-ngram"].reset_index(drop=True)
    some = own.assign(steps=own.steps.where(own.index > 0), accepted=own.accepted.where(own.index > 0))
    assert acceptance.sums(some)["output_tokens"] == own.output_tokens[1:].sum()
    assert math.isnan(acceptance.pooled(own.assign(steps=float("nan")), by=()).tokens_per_step.iloc[0])


@pytest.mark.parametrize(("a", "k"), [(0.0, 3), (1.0, 3), (0.5, 3), (0.8, 1)])
def test_the_chance_for_an_accept_length_is_the_inverse_of_the_expectation(a, k):
    assert acceptance.acceptance_for(acceptance_math.expected_accept_length(a, k), k) == pytest.approx(a)


def test_overshoot_by_hand():
    # Steps of 1 and of 3 tokens, equally many: E[L] = 2, E[L^2] = 5, so (5/2 - 1) / 2 tokens beyond the limit.
    assert acceptance.expected_overshoot(10, [5, 5], 10) == pytest.approx(0.75)
    assert acceptance.expected_overshoot(10, [0, 0], 30) == 0 == acceptance.expected_overshoot(0, [], 0)


def test_inverse_outside_what_a_chain_can_reach():
    assert math.isnan(acceptance.acceptance_for(4.5, 3)) and math.isnan(acceptance.acceptance_for(0.9, 3))


def test_pooling_is_a_ratio_of_sums():
    assert acceptance.add_positions([[3, 1], None, [2, 1, 1]]) == [5, 2, 1]
    assert acceptance.add_positions([None, float("nan")]) is None


def test_pooled_counts_and_rates(cells):
    pool = acceptance.pooled(cells)
    assert set(pool.method) == {"ngram", "eagle3"}
    row = pool[(pool.configuration == "vllm-ngram") & (pool.workload == "edit")].iloc[0]
    own = cells[(cells.configuration == "vllm-ngram") & (cells.workload == "edit")]
    assert row.accept_length == pytest.approx(1 + own.accepted.sum() / own.steps.sum())
    assert row.survival[0] == pytest.approx(sum(p[0] for p in own.accepted_per_position) / own.steps.sum())
    assert 1 < row.tokens_per_step < row.accept_length and row.drafted_share < 1


def test_void_cells_are_in_no_sum(cells):
    void = cells.assign(status="void")
    assert acceptance.pooled(void).empty


def test_untrained_control_stands_at_the_floor(cells):
    floor = acceptance.control(cells)
    assert floor.configuration.tolist() == ["llamacpp-eagle3-untrained"]
    assert floor.accept_length.tolist() == [1.0] and floor.sglang_old.tolist() == [0.25]
    assert floor.sglang_new.tolist() == [0.0]


def test_ngram_that_never_drafted(cells):
    own = cells[cells.configuration == "vllm-ngram"].assign(steps=0, drafted=0, accepted=0, accepted_per_position=None)
    row = acceptance.pooled(own, by=()).iloc[0]
    assert math.isnan(row.accept_length) and row.tokens_per_step == 1.0 and row.survival == []


def test_reading_tables(cells):
    pool = acceptance.pooled(cells)
    assert len(acceptance_chapter.counts_table(pool)) == len(acceptance_chapter.definitions_table(pool)) == len(pool)
    assert set(acceptance_chapter.positions_table(pool).figure) == {"survival", "conditional"}
    assert len(acceptance_chapter.chance_table(pool)) == len(pool)
    assert acceptance_chapter.positions_table(pool.iloc[0:0]).columns.tolist() == [
        "configuration",
        "workload",
        "figure",
    ]
