"""A folder with campaigns of shorter and of longer answers: each point is answered by the longer ones."""

import block_rows
import pandas as pd
import pytest

from runners.analyse import answer_lengths, comparisons, results

BASES = {"b": "b", "x": "b", "y": "b"}


def cells(*parts):
    """parts: (configuration, campaign, answer tokens, status)."""
    rows = []
    for name, campaign, tokens, status in parts:
        own = block_rows.rows(name, block_rows.series(1.0 if name == "b" else tokens / 64), campaign)
        rows += [row | {"output_tokens_per_request": tokens, "status": status} for row in own]
    return pd.DataFrame(rows)


def kept(frame):
    dropped = answer_lengths.superseded(frame, BASES)
    left = frame[~dropped]
    return set(zip(left["configuration"], left["campaign"], strict=True))


def test_the_longer_answers_count_where_both_were_measured():
    frame = cells(("b", "1", 64, "ok"), ("x", "1", 64, "ok"), ("b", "2", 128, "ok"), ("x", "2", 128, "ok"))
    assert kept(frame) == {("b", "2"), ("x", "2")}


def test_what_was_measured_with_short_answers_alone_keeps_its_base():
    frame = cells(
        *(("b", "1", 64, "ok"), ("x", "1", 64, "ok"), ("y", "1", 64, "ok")),
        *(("b", "2", 128, "ok"), ("x", "2", 128, "ok")),
    )
    assert kept(frame) == {("b", "1"), ("b", "2"), ("x", "2"), ("y", "1")}


def test_a_long_cell_whose_base_is_void_supersedes_nothing():
    frame = cells(("b", "1", 64, "ok"), ("x", "1", 64, "ok"), ("b", "2", 128, "void"), ("x", "2", 128, "ok"))
    assert {("b", "1"), ("x", "1"), ("b", "2")} <= kept(frame)


@pytest.mark.parametrize("tokens", [64, None])
def test_answers_of_one_length_all_count(tokens):
    frame = cells(("b", "1", 64, "ok"), ("x", "1", 64, "ok")).assign(output_tokens_per_request=tokens)
    assert not answer_lengths.superseded(frame, BASES).any()


def test_no_average_and_no_ratio_mixes_the_two():
    frame = cells(("b", "1", 64, "ok"), ("x", "1", 64, "ok"), ("b", "2", 128, "ok"), ("x", "2", 128, "ok"))
    frame["superseded"] = answer_lengths.superseded(frame, BASES)
    assert set(results.ok(frame)["campaign"]) == {"2"}
    found = comparisons.over_base(comparisons.Data(frame), ("x", "chat", 1))
    assert found.ratio == pytest.approx(2.0), "the short campaign alone says 1"
