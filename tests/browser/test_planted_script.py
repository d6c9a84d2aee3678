"""A script that a server, a log or another person's archive brings into the book runs nowhere."""

import html as html_text
import json
import re
import tarfile
from pathlib import Path

import nbformat
import pandas as pd
import pytest
import synthetic_runs
import yaml
from chromium import CHROMIUM, browser

from runners.commands import build_book
from runners.core import paths
from runners.profiles.load import load
from runners.report import archive, book

pytestmark = [pytest.mark.browser, pytest.mark.slow]

RUNS = "document.title = 'PWNED'"
PLANTED = f'</pre></script><script>{RUNS}</script><img src="x" onerror="{RUNS}"><svg onload="{RUNS}">'
TITLE = re.compile(r"<title>(.*?)</title>", re.DOTALL)
PROFILE = synthetic_runs.PROFILE


def planted_runs(root: Path) -> Path:
    """Made-up runs whose every text from outside is hostile: reasons, logs, versions, the machine, answers, titles."""
    runs = synthetic_runs.write(root, repeats=2, prompts=4) / PROFILE
    for folder in (f for f in runs.iterdir() if f.is_dir()):
        (folder / "server.log").write_text(f"{PLANTED}\nERROR {PLANTED}\n")
        (folder / "status.json").write_text(json.dumps({"status": "not measured here", "reason": PLANTED}))
        (folder / "environment.json").write_text(
            json.dumps({"recorded_at": "2026-01-01T00:00:00+00:00", "hardware": {"cpu": PLANTED, "gpus": [PLANTED]}})
        )
        cells = folder / "cells.jsonl"
        if not cells.is_file():
            continue
        rows = [json.loads(line) for line in cells.read_text().splitlines()]
        rows[0] |= {"status": "void"}
        for row in rows:
            row |= {"engine_version": PLANTED, "profile": PLANTED}
            row["reasons"] = [f"HTTP 500: {PLANTED}"] if row["status"] == "void" else []
        cells.write_text("".join(json.dumps(row) + "\n" for row in rows))
        requests = pd.read_parquet(folder / "requests.parquet").assign(error=PLANTED, text=PLANTED)
        requests.to_parquet(folder / "requests.parquet")
    content = load(PROFILE).model_dump(mode="json")
    content["title"] = content["hardware"]["description"] = PLANTED
    for chosen in content["configurations"].values():
        chosen |= {"title": PLANTED, "note": PLANTED}
        chosen["env"] |= {"PLANTED": f"```\n{PLANTED}"}
    (runs / "profile.yaml").write_text(yaml.safe_dump(content))
    (runs / "notebooks").mkdir()
    output = nbformat.v4.new_output("display_data", {"text/html": PLANTED})
    cell = nbformat.v4.new_code_cell("1", outputs=[output])
    for name in (*book.ANALYSES, "run_vllm-base", "run_planted"):
        nbformat.write(nbformat.v4.new_notebook(cells=[cell]), runs / "notebooks" / f"{name}.ipynb")
    return runs


@pytest.fixture(scope="module")
def html(tmp_path_factory) -> Path:
    """The folder of a book built from such an archive."""
    place = tmp_path_factory.mktemp("planted")
    with tarfile.open(place / "shared.tar.gz", "w:gz") as packed:
        packed.add(planted_runs(place / "runs"), PROFILE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "BUILD", place / "build")
        root = archive.runs_root(place / "shared.tar.gz")
        build_book.shared(root)
    return book.build(root, PROFILE, place / "book").parent


@pytest.fixture(scope="module")
def chromium(tmp_path_factory) -> Path:
    if not Path(CHROMIUM).exists():
        pytest.skip(f"{CHROMIUM} is not installed (Debian's package chromium)")
    return tmp_path_factory.mktemp("chromium")


def pages(html: Path) -> list[Path]:
    return [page for page in sorted(html.rglob("*.html")) if "_static" not in page.parts]


def title(document: str) -> str:
    return TITLE.search(document)[1]


def test_what_was_planted_is_shown_as_text(html):
    texts = {page.name: page.read_text(encoding="utf-8") for page in pages(html)}
    seen = {name for name, text in texts.items() if html_text.escape(f"<script>{RUNS}", quote=False) in text}
    # The comparison, a run page and its log among them.
    assert {"comparison.html", "run_vllm-base.html"} <= seen, seen
    tags = (f"<script>{RUNS}", '<img src="x"', "<svg onload")
    assert not [name for name, text in texts.items() if any(tag in text for tag in tags)]
    assert "run_planted.html" not in texts, "another person's notebook is not shown"


def test_a_planted_script_runs_on_no_page(html, chromium):
    for page in pages(html):
        document = browser(page, chromium)
        if "<title>" in document:
            assert "PWNED" not in title(document), page.name


def test_the_policy_stops_what_would_reach_a_page(html, chromium):
    page = html / "data" / "runs" / PROFILE / "notebooks" / "comparison.html"
    text = page.read_text(encoding="utf-8")
    policy = re.search(r'<meta http-equiv="Content-Security-Policy"[^>]*>', text)[0]
    broken = page.with_name("broken.html")
    for harm in (f"<script>{RUNS}</script>", f'<img src="none.png" onerror="{RUNS}">', f'<svg onload="{RUNS}"></svg>'):
        harmed = text.replace("<article", f"{harm}<article", 1)
        assert harmed != text
        broken.write_text(harmed, encoding="utf-8")
        assert "PWNED" not in title(browser(broken, chromium)), harm
        broken.write_text(harmed.replace(policy, ""), encoding="utf-8")
        assert "PWNED" in title(browser(broken, chromium)), f"without the policy it runs: {harm}"
    broken.unlink()
