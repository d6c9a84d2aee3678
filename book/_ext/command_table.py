"""Sphinx extension: all commands of `specverdict`, grouped as its `--help` groups them and made from the same table.

Directive `{command-table}`: for each group its name, and a table of command, use and example.
"""

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

from runners.__main__ import COMMANDS, Command

WIDTHS = (12, 44, 44)
HEADER = ("command", "what it does", "for example")


def table(commands: dict[str, Command]) -> nodes.table:
    """One group: a row a command."""
    group = nodes.tgroup("", *(nodes.colspec(colwidth=width) for width in WIDTHS), cols=len(WIDTHS))
    group += nodes.thead("", _row(*(nodes.Text(word) for word in HEADER)))
    body = nodes.tbody()
    for name, one in commands.items():
        example = f"specverdict {name} {one.example}".strip()
        body += _row(nodes.literal("", name), nodes.Text(one.use), nodes.literal("", example))
    group += body
    return nodes.table("", group, classes=["colwidths-given"])


def _row(*cells: nodes.Node) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", cell)) for cell in cells))


class CommandTable(Directive):
    """All groups, one below the other."""

    def run(self) -> list[nodes.Node]:
        found: list[nodes.Node] = []
        for group, commands in COMMANDS.items():
            found += [nodes.rubric(group, group.capitalize()), table(commands)]
        return found


def setup(app: Sphinx) -> dict:
    app.add_directive("command-table", CommandTable)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
