"""The built book in Debian's chromium, from file:// with the network closed: what an offline reader sees."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest
from chromium import CHROMIUM, browser

from runners.core import paths
from runners.core.errors import UserError
from runners.report import book

pytestmark = pytest.mark.browser

# What a browser fetches by itself. An ordinary <a> to a cited page is the reader's own choice.
FETCHED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "embed": "src"}
CHART = re.compile(r'id="(altair-viz-[0-9a-f]{32})"')
# Another runs folder than the published one can be looked at: a fresh measurement, or a stand-in.
RUNS = paths.runs_root(os.environ.get("SPECVERDICT_BOOK_RUNS", "published"))


class Resources(HTMLParser):
    """The addresses a page would fetch over the network."""

    def __init__(self):
        super().__init__()
        self.external: list[str] = []

    def handle_starttag(self, tag, attrs):
        address = dict(attrs).get(FETCHED.get(tag, ""), "") or ""
        if address.startswith(("http:", "https:", "//")):
            self.external.append(f"<{tag}> {address}")


class Drawn(HTMLParser):
    """Ids of the chart containers in which a drawing stands."""

    def __init__(self):
        super().__init__()
        self.inside: list[str | None] = []
        self.charts: set[str] = set()

    def handle_starttag(self, tag, attrs):
        if tag == "div":
            name = dict(attrs).get("id") or ""
            outer = self.inside[-1] if self.inside else None
            self.inside.append(name if name.startswith("altair-viz-") else outer)
        elif tag in ("canvas", "svg") and self.inside and self.inside[-1]:
            attributes = dict(attrs)
            # vega-embed's menu button is an svg too, so a drawing is known by vega's own class.
            if tag == "canvas" or "marks" in (attributes.get("class") or ""):
                self.charts.add(self.inside[-1])

    def handle_endtag(self, tag):
        if tag == "div" and self.inside:
            self.inside.pop()


def published() -> str:
    profile = book.committed_profile()
    if not (RUNS / profile / "notebooks" / "verdict.ipynb").is_file():
        pytest.skip(f"no executed notebooks under {RUNS / profile}: measure first (make report)")
    return profile


@pytest.fixture(scope="module")
def html(tmp_path_factory) -> Path:
    """The folder of the built book, built once."""
    return book.build(RUNS, published(), tmp_path_factory.mktemp("book")).parent


@pytest.fixture(scope="module")
def chromium(tmp_path_factory) -> Path:
    """A fresh browser profile, or a skip where there is no browser."""
    if not Path(CHROMIUM).exists():
        pytest.skip(f"{CHROMIUM} is not installed (Debian's package chromium)")
    return tmp_path_factory.mktemp("chromium")


def pages(html: Path) -> list[Path]:
    return [page for page in sorted(html.rglob("*.html")) if "_static" not in page.parts]


def test_no_page_fetches_anything(html):
    faults = {}
    for page in pages(html):
        found = Resources()
        found.feed(page.read_text(encoding="utf-8"))
        if found.external:
            faults[page.name] = found.external
    assert not faults
    assert len(pages(html)) >= 9


def test_styles_fetch_nothing(html):
    remote = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"])(?:https?:)?//")
    assert not [css for css in html.rglob("*.css") if remote.search(css.read_text(encoding="utf-8"))]


def test_every_chart_is_drawn_offline(html, chromium):
    seen = 0
    for page in pages(html):
        charts = set(CHART.findall(page.read_text(encoding="utf-8")))
        if not charts:
            continue
        document = browser(page, chromium)
        drawn = Drawn()
        drawn.feed(document)
        assert charts <= drawn.charts, f"{page.name}: a chart stayed empty"
        seen += len(charts)
    assert seen, "the book holds no chart at all"


def test_formulae_are_set_offline(html, chromium):
    document = browser(html / "book" / "method.html", chromium)
    assert document.count("<mjx-container") >= 10
    assert "<mjx-merror" not in document


def test_first_page_leads_to_the_book(html):
    assert "book/intro.html" in (html / "index.html").read_text(encoding="utf-8")


def test_plain_build_of_the_checkout(tmp_path):
    """Without our staging, from the committed contents, as jupyter-book's own manual would have it."""
    if RUNS != paths.PUBLISHED_RUNS:
        pytest.skip("the plain command shows published runs only")
    published()
    script = Path(sys.executable).parent / "jupyter-book"
    command = [
        script,
        "build",
        ".",
        "--config",
        "_config.yml",
        "--toc",
        "book/_toc.yml",
        "-W",
        "-n",
        "--keep-going",
    ]
    done = subprocess.run(
        [*command, "--path-output", tmp_path], cwd=paths.ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, book.first_faults(done.stdout + done.stderr, paths.ROOT)
    assert (tmp_path / "_build" / "html" / "book" / "intro.html").is_file()


def test_another_profile_takes_the_place_of_the_published_one(tmp_path):
    profile = published()
    runs = tmp_path / "runs"
    shutil.copytree(RUNS / profile / "notebooks", runs / "other-box" / "notebooks")
    for run in (runs / "other-box" / "notebooks").glob("run_*"):
        run.unlink()
    tree = book.stage(runs, "other-box", tmp_path / "out")
    text = "".join(path.read_text(encoding="utf-8") for path in (tree / "book").rglob("*.[my][dm]*"))
    assert "data/runs/other-box/notebooks/verdict" in text
    assert f"data/runs/{profile}/" not in text
    assert "Appendix" not in (tree / "book" / "_toc.yml").read_text(encoding="utf-8")


def test_a_figure_that_no_notebook_holds_stops_the_build(tmp_path, monkeypatch):
    profile = published()
    source = tmp_path / "book"
    shutil.copytree(book.SOURCE, source)
    line = f"\n{{glue:text}}`../data/runs/{profile}/notebooks/verdict.ipynb::verdict_no_such_figure:s`\n"
    (source / "log.md").write_text((source / "log.md").read_text(encoding="utf-8") + line, encoding="utf-8")
    monkeypatch.setattr(book, "SOURCE", source)
    with pytest.raises(UserError, match="verdict_no_such_figure"):
        book.stage(RUNS, profile, tmp_path / "out")


def test_missing_notebooks_are_one_sentence(tmp_path):
    with pytest.raises(UserError, match="no executed " + ", ".join(book.ANALYSES)):
        book.stage(tmp_path, "empty", tmp_path / "out")


def test_reported_figures_are_computed():
    """The case's arithmetic from the reported table: step-cost ratios, draft acceptance, the floor."""
    source = paths.ROOT / "book" / "_ext" / "reported_figures.py"
    spec = importlib.util.spec_from_file_location("reported_figures", source)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    table = pd.read_csv(paths.DATA / "reported" / "case.csv").set_index("configuration")

    def value(expression: str) -> float:
        return module.evaluate(expression, lambda name: module.figure(name, table))[0]

    third, own = "sglang_eagle3_aq_medai", "sglang_eagle3_own"
    assert round(value(f"sglang_base.c1 / {third}.c1 * {third}.al"), 2) == 1.67
    assert round(value(f"sglang_base.c1 / {own}.c1 * {own}.al"), 2) == 1.56
    assert round(value(f"({third}.al - 1) / ({third}.d - 1)"), 2) == 0.22
    assert value(f"{own}.al / {own}.d") == 0.25
    assert round(value("sglang_base.c128 / vllm_base.c128"), 2) == 1.54
    with pytest.raises(ValueError):
        value("__import__('os').getcwd()")
