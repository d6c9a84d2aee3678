"""Tables on a page: ten rows to read, the whole to take away, and text from outside is never markup."""

import base64
import io
import re

import pandas as pd

from runners.report import tables

LONG = pd.DataFrame({"configuration": ["a"] * 8 + ["b"] * 4, "C": list(range(12)), "ratio": [0.5] * 12})


def saved(html, end):
    """The content of the file that a link saves."""
    found = re.search(rf'download="([^"]+)\.{end}" href="data:[^;]+;base64,([^"]+)"', html)
    return found[1], base64.b64decode(found[2])


def test_a_page_shows_ten_rows_and_folds_the_rest():
    html = tables.html(LONG, ("configuration", "C"))
    shown, folded = html.split("<details>")
    assert shown.count("<tr") == 11 and "2 more rows" in folded
    assert "<details>" not in tables.html(LONG.head(10))


def test_the_whole_table_is_saved_by_a_click():
    html = tables.html(LONG)
    name, content = saved(html, "csv")
    assert name == "configuration-c" and pd.read_csv(io.BytesIO(content)).equals(LONG)
    _, content = saved(html, "parquet")
    assert pd.read_parquet(io.BytesIO(content)).equals(LONG)


def test_mixed_columns_are_saved_as_text():
    _, content = saved(tables.html(pd.DataFrame({"a": [1, "two"]})), "parquet")
    assert pd.read_parquet(io.BytesIO(content)).a.tolist() == ["1", "two"]


def test_a_name_that_is_the_same_as_above_is_written_once():
    assert tables.html(LONG.head(3), ("configuration", "C")).count(">a<") == 1


def test_text_from_outside_is_escaped():
    html = tables.html(pd.DataFrame({"reason": ["<script>alert(1)</script>"]}))
    assert "<script>" not in html and "&lt;script&gt;" in html


def test_an_interval_never_breaks_into_two_lines():
    html = tables.html(pd.DataFrame({"ratio": ["1.05 [1.02, 1.08]"], "why": ["see [a, b]"]}))
    assert "1.05\u00a0[1.02,\u00a01.08]" in html and "see [a, b]" in html
