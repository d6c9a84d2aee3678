"""What every notebook does alike: set up, show sentences and tables, take one row as an example, glue figures."""

from collections.abc import Callable, Mapping
from typing import Any

import altair as alt
import pandas as pd
from IPython import get_ipython
from IPython.display import HTML, Markdown, display
from myst_nb import glue

from runners.core import secrets
from runners.core.format import NOT_MEASURED
from runners.report import book, markdown, tables
from runners.report.charts import style

EMPTY = f"{NOT_MEASURED.capitalize()}."


def set_up() -> None:
    """Show tables in full, draw every chart in the report's theme, and let no secret into this notebook."""
    pd.set_option("display.max_colwidth", None, "display.max_rows", None, "display.max_columns", None)
    alt.theme.enable(style.THEME)
    alt.renderers.enable(style.THEME)
    _mask_outputs()


class _Masked:
    """Packs a kernel's messages (outputs, errors) without secrets: whoever executes a notebook writes what they hold.

    pack: content -> JSON as bytes (jupyter_client.session.Session.pack).
    """

    def __init__(self, pack: Callable[[Any], bytes]):
        self._pack = pack

    def __call__(self, content: Any) -> bytes:
        return secrets.masked_bytes(self._pack(content))


def _mask_outputs() -> None:
    """Idempotent: the book's pages share a kernel. Nothing outside of one."""
    kernel = getattr(get_ipython(), "kernel", None)
    if kernel is not None and not isinstance(kernel.session.pack, _Masked):
        kernel.session.pack = _Masked(kernel.session.pack)


def show(text: str) -> None:
    """Show a text as Markdown, without HTML: some of its words may be a server's, or another person's profile's."""
    display(Markdown(markdown.tagless(text)))


def show_mark(mark: str) -> None:
    """Show the box above figures that this report did not measure (`borrowed.mark`); nothing where there is none."""
    if mark:
        display(HTML(mark))


def show_table(frame: pd.DataFrame, *index: str, empty: str = EMPTY) -> None:
    """Show a table (tables.html) with the columns `index` first. An empty one tells a reader nothing: `empty` instead.

    Cells are escaped, so reasons and statements from outside need no more.
    """
    display(HTML(tables.html(frame, index)) if len(frame) else Markdown(empty))


def first(frame: pd.DataFrame) -> Any | None:
    """The first row as a named tuple; for an empty frame print that nothing was measured, and return None.

    For the one visible calculation of a chapter, which must run for a profile without runs, too.
    """
    row = next(frame.itertuples(index=False), None)
    if row is None:
        print(NOT_MEASURED)
    return row


def glue_all(values: Mapping[str, str], chapter: str) -> None:
    """Store those of `values` that the book's pages ask of notebook `chapter`; the notebook shows nothing of it.

    A name that a page asks for and `values` lacks is found when the book is staged (`book.stage`), and by a test.
    """
    for name in sorted(book.asked_names(chapter) & set(values)):
        glue(name, values[name], display=False)
