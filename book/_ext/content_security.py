"""Sphinx extension: each page says which scripts may run on it, so that no text of a server or a file becomes one.

The policy stands in a <meta> element (Content Security Policy Level 3), which works from file:// too. It names inline
The policy stands in a <meta> element (Content Security Policy Level 3), which works from file:// too. It names inline
altair's fixed code around two values in JSON; any other script there is a warning, which ends the build.
"""

import base64
import hashlib
import json
import re
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import altair
from altair.utils.html import spec_to_html
from sphinx.application import Sphinx
from sphinx.util import logging

ID = re.compile(r"altair-viz-[0-9a-f]{32}")
RUNNABLE = ("text/javascript", "application/javascript", "module")
KERNEL = re.compile(r"\s*kernelName = '[\w.-]*'\s*")  # sphinx-thebe writes it under each page, for what we do not use
PLACE = re.compile(r"<head[^>]*>(?:\s*<meta charset=[^>]*>)?")  # a browser looks for the charset in the first kilobyte
# file: is what 'self' is for a page that is opened as a file. Vega compiles a chart's expressions ('unsafe-eval'), and
# the theme's buttons are handlers in attributes, named by hash as well ('unsafe-hashes').
POLICY = (
    "default-src 'self' file: data: blob:; script-src 'self' file: 'unsafe-eval' 'unsafe-hashes' {hashes}; "
    "style-src 'self' file: 'unsafe-inline'; object-src 'none'; frame-src 'none'; base-uri 'none'; "
    "form-action 'self' file:"
)
log = logging.getLogger(__name__)


class Inline(HTMLParser):
    """The inline scripts of a document, and the handlers in its attributes (`onclick`), as a browser runs them."""

    def __init__(self, document: str):
        super().__init__()
        self.scripts: list[str] = []
        self.handlers: list[str] = []
        self._inside = False
        self.feed(document)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handlers += [value or "" for name, value in attrs if name.startswith("on")]
        given = dict(attrs)
        # A script of another type is data, which nobody runs.
        if tag == "script" and "src" not in given and (given.get("type") or "text/javascript") in RUNNABLE:
            self._inside = True
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.scripts[-1] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self._inside = False


def chart_code() -> str:
    """Altair's code before the two values of a chart, its specification and its options."""
    versions = (altair.VEGA_VERSION, altair.VEGAEMBED_VERSION, altair.VEGALITE_VERSION)
    page = spec_to_html({}, "vega-lite", *versions, output_div="altair-viz-ID", template="universal")
    (script,) = Inline(page).scripts
    return script.rpartition("{}, ")[0]


def is_chart(script: str, code: str) -> bool:
    """Whether a script is altair's code with two values in JSON, and nothing else."""
    text = ID.sub("altair-viz-ID", script)
    if not text.startswith(code):
        return False
    read, rest = json.JSONDecoder().raw_decode, text[len(code) :]
    try:
        _, end = read(rest)
        _, last = read(rest, end + 2)
    except ValueError:
        return False
    return rest[end : end + 2] == ", " and rest[last:].strip() == ");"


def is_ours(script: str, code: str) -> bool:
    """Whether a script in a page's text comes from this report."""
    return KERNEL.fullmatch(script) is not None or is_chart(script, code)


def hash_of(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def with_policy(document: str, body: str, code: str) -> str:
    """The document with its policy. body: the part of it that is the page's own text, as HTML."""
    page, own = Inline(document), Inline(body)
    scripts = [s for s in page.scripts if s not in own.scripts or is_ours(s, code)]
    handlers = [h for h in page.handlers if h not in own.handlers]
    hashes = " ".join(dict.fromkeys(map(hash_of, [*scripts, *handlers])))
    policy = escape(POLICY.format(hashes=hashes), quote=False)
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}" />'
    # At the beginning: it holds for what follows it.
    return PLACE.sub(lambda found: f"{found[0]}\n{meta}", document, count=1)


def note_body(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Keep a page's own text, and warn of a script in it that is no chart."""
    body = context.get("body") or ""
    app.page_bodies[pagename] = body
    own = Inline(body)
    foreign = [s for s in own.scripts if not is_ours(s, app.chart_code)]
    for script in [*foreign, *own.handlers]:
        log.warning("page %s: a script in its text is no chart of this report: %.80s", pagename, script.strip())


def write_policies(app: Sphinx, failure: Exception | None) -> None:
    """Give every page that was written its policy."""
    if failure is not None or app.builder.format != "html":
        return
    for name, body in app.page_bodies.items():
        path = Path(app.builder.get_outfilename(name))
        if path.is_file():
            path.write_text(with_policy(path.read_text(encoding="utf-8"), body, app.chart_code), encoding="utf-8")


def prepare(app: Sphinx) -> None:
    app.page_bodies = {}
    app.chart_code = chart_code()


def setup(app: Sphinx) -> dict:
    app.connect("builder-inited", prepare)
    app.connect("html-page-context", note_body, priority=950)
    app.connect("build-finished", write_policies, priority=950)
    # Not in parallel: what is kept of a page stays in the process that wrote it.
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": False}
