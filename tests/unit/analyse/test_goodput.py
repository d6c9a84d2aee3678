"""Goodput: which load its users are still served at, and how much the limits decide that."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest

from runners.analyse import goodput, results
from runners.measure.client import Result
from runners.measure.ledger import Ledger
from runners.profiles.latency import LatencyLimits

LIMITS = LatencyLimits(ttft_ms=1000, tpot_ms=50)


def cell(key, concurrency=1, speed=20.0, **changes):
    whole = {"key": key, "status": "ok", "configuration": "x", "engine": "e", "method": "none", "workload": "chat"}
    whole |= {"concurrency": concurrency, "output_tokens_per_second": speed, "load": "closed", "rate": np.nan}
    return whole | changes


def answers(key, *tpot_ms, ttft_ms=100.0, **changes):
    """Requests of 101 tokens, sent at 1 s, one for each time per token; None: not answered."""
    first = 1 + ttft_ms / 1000
    return [
        {"key": key, "prompt_id": f"p{i}", "intended_s": 1.0, "sent_s": 1.0, "output_tokens": 101, "error": None,
         "first_token_s": first, "last_token_s": None if t is None else first + t / 10, "role": "timed"} | changes
        for i, t in enumerate(tpot_ms)
    ]  # fmt: skip


def frames(*pairs):
    return pd.DataFrame([c for c, _ in pairs]), pd.DataFrame([r for _, rows in pairs for r in rows])


def test_a_load_counts_where_nine_of_ten_keep_the_limits():
    nine, eight = [40.0] * 9 + [60.0], [40.0] * 8 + [60.0] * 2
    cells, requests = frames((cell("a", 1), answers("a", *nine)), (cell("b", 4, 50.0), answers("b", *eight)))
    one, four = goodput.points(cells, requests, LIMITS).itertuples()
    assert (one.attainment, one.attained_blocks, one.requests) == (0.9, 1, 10) and one.needs == pytest.approx(0.8)
    assert (four.attainment, four.attained_blocks) == (0.8, 0) and four.needs == pytest.approx(1.2)
    assert one.requests_per_second == pytest.approx(20 / 101)
    best = goodput.best(goodput.points(cells, requests, LIMITS))
    assert list(best.concurrency) == [1] and best.tokens_per_second[0] == 20.0
    assert list(goodput.attach(cells, requests, LIMITS)[goodput.COLUMN]) == [20.0, 0.0]


def test_the_floor_is_the_points_and_not_each_cells():
    cells, requests = frames(
        (cell("a", 4, 50.0), answers("a", *[40.0] * 10)), (cell("b", 4, 52.0), answers("b", *[40.0] * 8, 60, 60)),
        (cell("v", 4, 90.0, status="void"), answers("v", 99.0)),
    )  # fmt: skip
    (point,) = goodput.points(cells, requests, LIMITS).itertuples()
    assert (point.blocks, point.attained_blocks, point.attainment, point.tokens_per_second) == (2, 1, 0.9, 51.0)
    found = goodput.attach(cells, requests, LIMITS)[goodput.COLUMN]
    assert list(found[:2]) == [50.0, 52.0] and np.isnan(found[2]), "a void cell has no goodput, not even 0"


def test_each_limit_is_one():
    def needed(limits=LIMITS, **changes):
        cells, requests = frames((cell("a"), answers("a", 40.0, **changes)))
        return goodput.needed(cells, requests, limits).needed[0]

    assert needed() == pytest.approx(0.8)
    assert needed(ttft_ms=1500.0) == pytest.approx(1.5)
    assert needed(intended_s=0.5, ttft_ms=1500.0) == pytest.approx(2.0), "waiting in the client is waiting"
    ends = LatencyLimits(ttft_ms=1000, tpot_ms=50, e2e_ms=2000)
    assert needed(ends) == pytest.approx(4.1 / 2)
    assert needed(error="broke") == np.inf
    assert needed(output_tokens=1) == pytest.approx(0.1), "one token has no later one"


def test_what_a_window_cuts_is_no_request_too_late_but_what_an_open_loop_cuts_is():
    for load, kept in (("closed", 1), ("open", 2)):
        rows = answers("a", 40.0) + answers("a", None, role="cut") + answers("a", 99.0, role="ramp")
        cells, requests = frames((cell("a", load=load, rate=1.0), rows))
        found = goodput.needed(cells, requests, LIMITS)
        assert len(found) == kept and (found.needed == np.inf).sum() == kept - 1


def rates(*attained):
    """An open loop at 1, 2, ... requests per second; each entry: does it reach the floor?"""
    return frames(
        *(
            (cell(f"k{i}", 16, 100.0 * i, load="open", rate=float(i)), answers(f"k{i}", *[40.0 if good else 60.0] * 5))
            for i, good in enumerate(attained, 1)
        )
    )


def test_goodput_of_an_open_loop_is_the_highest_rate_up_to_which_all_reach_the_floor():
    found = goodput.points(*rates(True, True, False, True), LIMITS)
    best = goodput.best(found).iloc[0]
    assert (best.rate, best.requests_per_second, best.tokens_per_second) == (2.0, 2.0, 200.0)
    assert goodput.best(goodput.points(*rates(False, True), LIMITS)).empty
    assert goodput.best(found, scale=1.2).rate.tolist() == [4.0]


def test_goodput_against_the_limits():
    cells, requests = frames(
        (cell("a", 1, 20.0), answers("a", 30.0)), (cell("b", 4, 50.0), answers("b", 55.0)),
        (cell("c", 1, 25.0, configuration="y"), answers("c", 45.0)),
    )  # fmt: skip
    found = goodput.points(cells, requests, LIMITS)
    curve = goodput.by_limit(found, (0.5, 0.7, 1.0, 1.2)).pivot_table(
        index="scale", columns="configuration", values="tokens_per_second"
    )
    assert curve.x.tolist() == [0.0, 20.0, 20.0, 50.0] and curve.y.tolist() == [0.0, 0.0, 25.0, 25.0]
    assert goodput.winners(found).configuration.tolist() == ["y"]
    assert goodput.winners(found, 1.2).configuration.tolist() == ["x"]
    shares = goodput.attainment_by_limit(cells, requests, LIMITS, (0.7, 1.0))
    assert shares[shares.concurrency == 4].attainment.tolist() == [0.0, 0.0]
    assert shares[shares.configuration == "y"].attainment.tolist() == [0.0, 1.0]


def test_of_nothing_there_is_nothing():
    cells, requests = frames((cell("v", status="void"), answers("v", 40.0)))
    found = goodput.points(cells, requests, LIMITS)
    assert found.empty and list(found) == goodput.POINTS
    assert goodput.best(found).empty and goodput.winners(found).empty and goodput.by_limit(found).empty
    assert goodput.attach(cells, requests, None) is cells


def test_open_cells_are_read_by_name_and_older_rows_are_closed(tmp_path):
    ledger = Ledger(tmp_path / "lab" / "x")
    ledger.folder.mkdir(parents=True)
    old = cell("a", schema_version=1, repeat=0)
    del old["load"], old["rate"]
    rows = [old, cell("b", schema_version=1, repeat=0, load="open", rate=2.0)]
    ledger.cells_path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert list(results.cells(tmp_path, "lab").key) == ["a"]
    both = results.cells(tmp_path, "lab", loads=("closed", "open"))
    requests = pd.DataFrame([{"key": k} | dataclasses.asdict(Result("p", 0, 0, 0.1, 3.1, 7, 101)) for k in "ab"])
    found = goodput.points(both, requests, LIMITS).sort_values("load")
    assert found.load.tolist() == ["closed", "open"] and found.requests_per_second.tolist() == [20 / 101, 2.0]
