"""The simulated load against cases worked out by hand, and what is read from a cell's requests."""

import numpy as np
import pytest

from runners.analyse import acceptance, step_points
from runners.analyse.load_simulation import DecodeLoad, LoadShape, simulate


def flat(batch, prefill):
    return 10.0 + prefill


def test_one_stream_shares_its_steps_with_nobody():
    assert simulate(flat, LoadShape(3, 1, 100, 20), 2.5) == DecodeLoad(1.0, 0.0)


def test_a_burst_reads_its_first_prompt_alone_and_the_others_together():
    # Four at once, 21 tokens each: the first decodes one step while the three others' prompts are read with it, then
    # all go on: 4 x 20 steps of decoding, of which one saw 3 x 100 prompt tokens.
    seen = simulate(flat, LoadShape(4, 4, 100, 21), 1.0)
    assert seen.prefill == pytest.approx(300 / 80)
    assert 3 < seen.batch < 4


def test_prompts_that_do_not_fit_are_read_in_parts():
    # 3 x 100 tokens at 150 a step: two steps, both shared with the first; the second prompt ends in the first of
    # them, so its request decodes beside the third prompt's rest and the fourth's.
    seen = simulate(flat, LoadShape(4, 4, 100, 21), 1.0, budget=150)
    assert seen.prefill == pytest.approx((150 + 150 * 2) / 80)


def test_a_slot_that_falls_free_gets_its_next_prompt_a_step_later():
    # Two at once, four requests. The first pair: the second's prompt is read beside the first. The first ends a step
    # earlier; when its successor has come, the second's last step has begun, so it is read beside nobody, and the
    # second's successor beside it.
    seen = simulate(flat, LoadShape(4, 2, 50, 11), 1.0)
    assert seen.prefill == pytest.approx(2 * 50 / 40)


def test_steps_that_yield_tokens_at_random_part_what_began_together():
    alike, apart = (simulate(flat, LoadShape(8, 4, 180, 64), 1.6, k=k) for k in (0, 3))
    assert apart.prefill > 1.3 * alike.prefill and apart.batch < 4
    assert apart == simulate(flat, LoadShape(8, 4, 180, 64), 1.6, k=3)  # the same dice each time
    assert simulate(flat, LoadShape(8, 4, 180, 64), 1.0, k=3) == simulate(
        flat, LoadShape(8, 4, 180, 64), 1.0
    )  # nothing accepted
    assert simulate(flat, LoadShape(8, 4, 180, 64), 4.0, k=3) == simulate(
        flat, LoadShape(8, 4, 180, 64), 4.0
    )  # all accepted


def test_the_share_accepted_at_each_position_yields_the_length():
    assert acceptance.acceptance_for(1 + 0.5 + 0.25, 2) == pytest.approx(0.5)
    assert acceptance.acceptance_for(1.3, 1) == pytest.approx(0.3)


def test_more_tokens_a_step_mean_more_prompt_a_step():
    slow, fast = (simulate(flat, LoadShape(16, 16, 300, 65), length).prefill for length in (1.0, 4.0))
    assert fast > 3 * slow


def test_a_window_has_no_ramp_and_no_drain():
    shapes = [LoadShape(requests, 4, 180, 64) for requests in (4, None)]
    burst, window = (simulate(lambda batch, prefill: 10.0, shape, 1.6, k=3) for shape in shapes)
    assert burst.batch < window.batch <= 4  # in a burst the slowest answers end alone
    # Each of the four reads its own prompt while the three others decode: three prompts in an answer's steps.
    assert window.prefill == pytest.approx(3 * 180 / (63 / 1.6), rel=0.1)
    assert simulate(flat, LoadShape(None, 1, 100, 20), 2.5) == DecodeLoad(1.0, 0.0)


def test_answers_of_one_token_have_no_decode_step():
    assert simulate(flat, LoadShape(4, 4, 100, 1), 1.0) == DecodeLoad(4.0, 0.0)


def test_what_a_cell_saw_is_read_from_its_requests():
    # The second prompt's first token comes in the middle of the first request's decoding; the third begins with the
    # second, so neither counts for the other.
    first, last = np.array([1.0, 2.0, 2.005]), np.array([3.0, 4.0, 4.0])
    prompts, outputs = np.array([10.0, 20.0, 30.0]), np.array([21.0, 21.0, 21.0])
    seen = step_points.decode_load(first, last, prompts, outputs, accept_length=2.0)
    assert seen.prefill == pytest.approx((20 + 30) / (60 / 2))
    assert seen.batch == pytest.approx((2 + 2 + 1.995 + 2 * (1 + 0.995 + 1.995)) / (2 + 2 + 1.995))


def test_a_prompt_read_in_a_requests_last_step_counts_for_it():
    # That step's two tokens, the one's last and the other's first, reach the client in either order.
    one = np.array([21.0, 21.0])
    for late in (-0.001, 0.001):
        seen = step_points.decode_load(
            np.array([1.0, 3.0 + late]), np.array([3.0, 5.0]), 10 * one, one, accept_length=1.0
        )
        assert seen.prefill == pytest.approx(210 / 40)


def test_requests_without_decode_time_are_counted_as_they_are():
    one = np.array([1.0, 1.0])
    assert step_points.decode_load(one, one, one, one, accept_length=1.0) == DecodeLoad(2.0, 0.0)


def test_only_timed_requests_are_asked_what_they_shared():
    first, last, one = np.array([0.0, 1.0, 2.5]), np.array([3.0, 3.0, 4.0]), np.array([21.0, 21.0, 21.0])
    timed = np.array([False, True, False])  # one keeps the place before the window, one was running when it closed
    seen = step_points.decode_load(first, last, one, one, accept_length=1.0, timed=timed)
    assert seen.batch == pytest.approx((2 + 2 + 0.5) / 2) and seen.prefill == pytest.approx(21 / 20)
