"""Pictures of the first page and the README: files, so that they are drawn without a script."""

from pathlib import Path

import altair as alt

from runners.analyse import results
from runners.analyse.verdict import decide
from runners.report.charts import pays, style

GRID = "verdict.svg"  # in book/images


def grid(runs: Path, profile: str, file: Path) -> None:
    """Does speculation pay, at every point, as an SVG file; from the stored verdict of a profile's runs."""
    alt.theme.enable(style.THEME)
    cells = results.cells(runs, profile)
    pays.grid(pays.answered(decide.stored(runs, profile)), pays.lost(cells)).save(str(file))
