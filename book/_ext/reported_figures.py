"""Sphinx extension: figures from data/reported/ in prose and tables, computed when the book is built.

Role `{reported}` takes an expression over the case's table and prints its value; `{reported-eq}` prints the
working as well. A name is `<configuration>.<column>` with `_` for `-`, for example

    {reported-eq}`sglang_base.c1 / sglang_eagle3_own.c1 * sglang_eagle3_own.al :.2f`

Directive `{reported-table}` renders a file of data/reported/. So no reported figure is typed twice.
"""

from pathlib import Path

import pandas as pd
from docutils import nodes
from docutils.parsers.rst import Directive, directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxRole

from runners.claims.expressions import evaluate

FOLDER = Path("data") / "reported"
SHORT = {"c1": "single_stream_tok_s", "c128": "c128_tok_s", "al": "accept_length", "d": "num_draft_tokens"}


def figure(name: str, table: pd.DataFrame) -> tuple[float, str]:
    """Value and text of `<configuration>.<column>`; KeyError for an unknown row or column."""
    row, _, column = name.partition(".")
    column = SHORT.get(column, column)
    value = float(table.loc[row.replace("_", "-"), column])
    return value, f"{value:,.2f}" if column == "accept_length" else f"{value:,.10g}"


class Reported(SphinxRole):
    """`expression :format`; with `working` the numbers that went in are printed before the result."""

    def __init__(self, working: bool):
        super().__init__()
        self.working = working

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        expression, _, form = self.text.partition(" :")
        path = Path(self.env.srcdir) / FOLDER / "case.csv"
        self.env.note_dependency(str(path))
        try:
            table = pd.read_csv(path).set_index("configuration")
            value, text = evaluate(expression, lambda name: figure(name, table))
        except (KeyError, ValueError) as error:
            message = self.inliner.reporter.warning(f"reported figure {self.text!r}: {error!r}", line=self.lineno)
            return [], [message]
        shown = format(value, form.strip() or ".10g")
        if self.working:
            return [nodes.inline(text=f"{text} = {shown}", classes=["reported-working"])], []
        return [nodes.abbreviation(shown, shown, classes=["reported"], explanation=text)], []


class ReportedTable(Directive):
    """A file of data/reported/ as a table.

    Options: `columns` ("column = Heading; ..." in order), `widths`, `caption`; for a matrix `rows`, `across`,
    `value` (an expression over the columns of the file, e.g. `a / b`) and `format`.
    """

    required_arguments = 1
    option_spec = dict.fromkeys(
        ("columns", "widths", "caption", "rows", "across", "value", "format"), directives.unchanged
    )

    def run(self) -> list[nodes.Node]:
        env = self.state.document.settings.env
        path = Path(env.srcdir) / FOLDER / self.arguments[0]
        env.note_dependency(str(path))
        form = self.options.get("format", ".10g")
        frame = pd.read_csv(path, dtype=None if "value" in self.options else str, keep_default_na=False, na_values=[""])
        if "value" in self.options:
            header, body = self._matrix(frame, form)
        else:
            header, body = self._plain(frame)
        widths = [int(width) for width in self.options.get("widths", "1 " * len(header)).split()]
        table = table_node(header, body, widths)
        if "caption" in self.options:
            # Parsed, not plain: a caption cites its source.
            children, _ = self.state.inline_text(self.options["caption"], self.lineno)
            table.insert(0, nodes.title("", "", *children))
        return [table]

    def _plain(self, frame: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
        pairs = [part.split("=", 1) for part in self.options["columns"].split(";") if part.strip()]
        names = [name.strip() for name, _ in pairs]
        rows = [[_number(cell) for cell in row] for row in frame[names].itertuples(index=False)]
        return [heading.strip() for _, heading in pairs], rows

    def _matrix(self, frame: pd.DataFrame, form: str) -> tuple[list[str], list[list[str]]]:
        rows, across = self.options["rows"], self.options["across"]
        frame = frame.assign(_value=frame.eval(self.options["value"]))
        columns, order = frame[across].unique(), frame[rows].unique()
        grid = frame.pivot(index=rows, columns=across, values="_value").loc[order, columns]
        body = [
            [str(name), *("–" if pd.isna(cell) else format(cell, form) for cell in row)]
            for name, row in zip(grid.index, grid.to_numpy(), strict=True)
        ]
        return [f"{rows} \\ {across}", *map(str, columns)], body


def _number(cell) -> str:
    """Figures keep the decimals they were reported with; thousands get a comma; an empty cell is a dash."""
    if pd.isna(cell):
        return "–"
    text = str(cell)
    return f"{int(text):,}" if text.isdigit() else text


def table_node(header: list[str], body: list[list[str]], widths: list[int]) -> nodes.table:
    """A docutils table; columns whose cells are all figures are aligned right by the class `figures`."""
    table = nodes.table(classes=["reported-table", "colwidths-given"])
    group = nodes.tgroup(cols=len(header))
    table += group
    group.extend(nodes.colspec(colwidth=width) for width in widths)
    figures = [all(row[i][:1].isdigit() or row[i] == "–" for row in body) for i in range(len(header))]

    def line(cells: list[str]) -> nodes.row:
        row = nodes.row()
        for cell, figure in zip(cells, figures, strict=True):
            row += nodes.entry("", nodes.paragraph(text=cell), classes=["figures"] if figure else [])
        return row

    group += nodes.thead("", line(header))
    group += nodes.tbody("", *(line(row) for row in body))
    return table


def setup(app: Sphinx) -> dict:
    app.add_role("reported", Reported(working=False))
    app.add_role("reported-eq", Reported(working=True))
    app.add_directive("reported-table", ReportedTable)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
