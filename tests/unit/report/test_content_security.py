"""The policy of a page: its template's scripts and charts may run, whatever else stands in its text may not."""

import importlib.util

import altair as alt
import nbformat
import pandas as pd
import pytest

from runners.core import paths
from runners.report.charts import style

SOURCE = paths.ROOT / "book" / "_ext" / "content_security.py"
PLANTED = "document.title = 'PWNED'"
TEMPLATE = "document.documentElement.dataset.mode = 'light'"
HANDLER = "toggleFullScreen()"


@pytest.fixture(scope="module")
def security():
    spec = importlib.util.spec_from_file_location("content_security", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def chart():
    frame = pd.DataFrame({"x": [1], "why": ["</script> a < b"]})
    return style.RENDERER(alt.Chart(frame).mark_point().encode(x="x", tooltip="why").to_dict())["text/html"]


def page(body):
    head = f'<head>\n<meta charset="utf-8" />\n<script>{TEMPLATE}</script>\n<script src="a.js"></script></head>'
    return f'<html>\n{head}\n<body><button onclick="{HANDLER}">x</button>{body}</body></html>'


def test_the_template_and_charts_are_named_and_nothing_else(security, chart):
    body = f'<p>text</p>{chart}<script>{PLANTED}</script><img src="x" onerror="{PLANTED}">'
    found = security.with_policy(page(body), body, security.chart_code())
    (script,) = security.Inline(chart).scripts
    assert all(security.hash_of(text) in found for text in (TEMPLATE, HANDLER, script))
    assert security.hash_of(PLANTED) not in found and "'unsafe-inline';" in found
    assert found.index("Content-Security-Policy") < found.index("<script")
    assert found.index('charset="utf-8"') < found.index("Content-Security-Policy"), "in the first kilobyte"


def test_scripts_are_not_allowed_in_general(security):
    policy = security.POLICY.format(hashes="")
    (scripts,) = [part for part in policy.split(";") if part.strip().startswith("script-src")]
    assert "'unsafe-inline'" not in scripts and "http" not in policy and "object-src 'none'" in policy


def test_a_chart_is_altairs_code_around_two_values(security, chart):
    code = security.chart_code()
    (script,) = security.Inline(chart).scripts
    assert security.is_chart(script, code)
    for other in (
        PLANTED,
        code,
        script.replace("let outputDiv", f"{PLANTED}; let outputDiv"),
        script.rstrip() + PLANTED,
        script.replace(");\n", f", {PLANTED});\n"),
        f"{code}{PLANTED}, {{}});",
        f"{code}{{}}, {PLANTED});",
    ):
        assert not security.is_chart(other, code), other[-80:]


def test_the_published_charts_are_known(security):
    """A page's charts were drawn by the release of altair that the book is built with."""
    folder = paths.PUBLISHED_RUNS / "lab-cpu" / "notebooks"
    cells = nbformat.read(folder / "verdict.ipynb", 4).cells
    outputs = [o for c in cells for o in c.get("outputs", []) if "altair-viz" in o.get("data", {}).get("text/html", "")]
    assert outputs
    for output in outputs:
        (script,) = security.Inline(output["data"]["text/html"]).scripts
        assert security.is_chart(script, security.chart_code())
