"""The window of the steady state: what is sent, what counts, what is cut."""

import numpy as np
import pytest

from runners.measure import speeds, token_times, window
from runners.measure.client import CUT, RAMP, TIMED, Loop, Result


def test_ramp_lengths_are_the_ages_of_a_steady_state():
    assert window.ramp_lengths(1, 64) == [8]
    assert window.ramp_lengths(4, 64) == [8, 16, 32, 48]
    lengths = window.ramp_lengths(16, 64)
    assert len(lengths) == 16 and min(lengths) == 8 and max(lengths) == 60 and lengths == sorted(lengths)
    assert window.ramp_lengths(2, 4) == [4, 4], "never longer than an answer"


def test_a_window_ends_behind_the_burst_of_a_step():
    steps = np.array([1.0, 1.001, 1.002, 2.0, 2.001, 2.002, 3.0])
    assert window.burst_end(steps, 1.0, 1.0) == pytest.approx(1.002)
    assert window.burst_end(steps, 1.5, 1.0) == pytest.approx(1.5), "no token follows at once"
    flood = np.arange(0, 10, 0.01)
    assert window.burst_end(flood, 5.0, 0.5) <= 5.5, "where tokens come all the time, no further than a step"


def request(role, sent, token_s, counts=None, **more):
    counts = counts or [1] * len(token_s)
    return Result(
        "p", sent, sent, token_s[0], token_s[-1], output_tokens=sum(counts), role=role, token_s=token_s,
        token_counts=counts, **more,
    )  # fmt: skip


def test_tokens_count_by_their_own_time_and_only_inside_the_window():
    results = [
        request(RAMP, 0.0, [1.0, 2.0, 3.0]),
        request(TIMED, 3.0, [4.0, 5.0, 6.0], count_source="usage"),
        request(CUT, 0.0, [1.5, 2.5, 3.5, 4.5, 5.5, 6.5]),
    ]
    found = speeds.speeds(Loop(results, 7.0, 0.1, (3.0, 6.0)))
    assert found["output_tokens"] == 0 + 3 + 3 and found["seconds"] == 3.0
    assert found["output_tokens_per_second"] == 2.0
    assert found["ttft_ms_p50"] == 1000.0 and found["tpot_ms_p99"] == 1000.0, "of what was answered in the window"
    assert found["e2e_ms_p50"] == 3000.0
    # 4 to 6 of the timed one (two tokens after its first), 3 to 6 of the cut one (three tokens).
    assert (found["decode_seconds"], found["decode_tokens"]) == (5.0, 5)


def test_occupancy_is_a_mean_and_not_a_peak():
    full = [request(TIMED, 0.0, [0.1, 10.0]), request(CUT, 0.0, [0.1, 9.0])]
    assert speeds.occupancy(Loop(full, 10.0, 0, (0.0, 10.0)), 2) == pytest.approx(1.0)
    half = [request(TIMED, 0.0, [0.1, 10.0]), request(TIMED, 0.0, [0.1, 5.0])]
    assert speeds.occupancy(Loop(half, 10.0, 0, (0.0, 10.0)), 2) == pytest.approx(0.75)


def stream(*events):
    return [(at, b"data: " + text.encode() + b"\n\n") for at, text in events]


def delta(text, used=None):
    usage = f', "usage": {{"prompt_tokens": 3, "completion_tokens": {used}}}' if used is not None else ""
    return f'{{"choices": [{{"delta": {{"content": "{text}"}}}}]{usage}}}'


def test_an_engines_running_count_says_how_many_tokens_a_chunk_holds():
    answer = token_times.read(
        stream((0.1, delta("a", 1)), (0.2, delta("bcd", 4)), (0.3, delta("e", 5)), (0.4, "[DONE]"))
    )
    assert answer.token_counts == [1, 3, 1] and answer.token_s == [0.1, 0.2, 0.3] and answer.done
    assert answer.text == "abcde" and answer.output_tokens == 5


def test_without_a_running_count_a_chunk_is_a_token_or_its_share_of_the_text():
    last = '{"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": %d}}'
    one_each = token_times.read(stream((0.1, delta("a")), (0.2, delta("b")), (0.3, last % 2)))
    assert one_each.token_counts == [1, 1]
    shared = token_times.read(stream((0.1, delta("aa")), (0.2, delta("bbbbbb")), (0.3, last % 8)))
    assert shared.token_counts == [2, 6]


def test_an_answer_that_was_cut_gets_the_tokens_a_character_of_the_others():
    whole = token_times.read(
        stream((0.1, delta("aabb")), (0.2, delta("ccdd")), (0.3, '{"choices": [], "usage": {"completion_tokens": 8}}'))
    )
    cut = token_times.read(stream((0.1, delta("aabb")), (0.2, delta("cc"))))
    assert cut.token_counts == [1, 1]
    token_times.fill_in_cut([whole, cut])
    assert cut.token_counts == [4, 2] and whole.token_counts == [4, 4]


def test_a_stream_that_was_cut_in_an_event_keeps_what_was_whole():
    whole = stream((0.1, delta("a")), (0.2, delta("b")))
    answer = token_times.read([*whole, (0.3, b'data: {"choices": [{"del')])
    assert answer.text == "ab" and answer.token_counts == [1, 1] and not answer.done


def test_an_event_in_two_pieces_has_the_time_of_the_second():
    raw = b"data: " + delta("a").encode() + b"\n\n"
    answer = token_times.read([(0.1, raw[:10]), (0.2, raw[10:])])
    assert answer.token_s == [0.2]
