"""p50, p95 and p99 of what users wait: from requests made here, so that each figure is known."""

import math

import pandas as pd
import pytest

from runners.analyse.latencies import latencies


def cell(key="a", status="ok", forced=math.nan):
    return dict(key=key, configuration="b", workload="chat", concurrency=4, status=status, forced_accept_length=forced)


def request(key="a", ttft=0.1, tpot=0.01, role="timed", error=None, intended=1.0, tokens=11):
    first = intended + ttft
    last = first + tpot * (tokens - 1)
    row = dict(key=key, configuration="b", intended_s=intended, sent_s=intended + 0.02, first_token_s=first)
    return row | dict(last_token_s=last, output_tokens=tokens, role=role, error=error)


def found(requests, cells=None):
    return latencies(pd.DataFrame(cells or [cell()]), pd.DataFrame(requests))


def test_the_percentiles_of_a_point_are_over_its_requests():
    (row,) = found([request(ttft=0.001 * n) for n in range(1, 102)]).to_dict("records")
    assert (row["configuration"], row["workload"], row["concurrency"], row["requests"]) == ("b", "chat", 4, 101)
    assert [row[f"ttft_ms_p{q}"] for q in (50, 95, 99)] == pytest.approx([51, 96, 100])
    assert row["tpot_ms_p50"] == pytest.approx(10) and row["e2e_ms_p50"] == pytest.approx(151)


def test_blocks_of_a_point_count_together():
    (row,) = found([request("a"), request("b")], [cell("a"), cell("b")]).to_dict("records")
    assert row["requests"] == 2


@pytest.mark.parametrize(
    "left_out",
    [
        request(ttft=9, error="no answer"),
        request(ttft=9, role="ramp", intended=0.0),
        request("void", ttft=9),
        request("forced", ttft=9),
        request("of an open loop", ttft=9),
    ],
)
def test_what_is_not_of_the_point_is_left_out(left_out):
    (row,) = found([request(), left_out], [cell(), cell("void", "void"), cell("forced", forced=2.0)]).to_dict("records")
    assert row["requests"] == 1 and row["ttft_ms_p99"] == pytest.approx(100)


def test_a_request_that_was_cut_has_a_first_token_and_no_end():
    (row,) = found([request(), request(ttft=0.3, tpot=9, role="cut")]).to_dict("records")
    assert row["ttft_ms_p50"] == pytest.approx(200)
    assert row["requests"] == 1 and row["tpot_ms_p99"] == pytest.approx(10) and row["e2e_ms_p99"] == pytest.approx(200)


def test_one_token_has_no_time_per_token_and_no_good_cell_no_row():
    (row,) = found([request(tokens=1)]).to_dict("records")
    assert math.isnan(row["tpot_ms_p50"]) and row["ttft_ms_p50"] == pytest.approx(100)
    nothing = found([request()], [cell(status="void")])
    assert nothing.empty and "e2e_ms_p99" in nothing and nothing.concurrency.dtype == "int64"
