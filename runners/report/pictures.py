"""Pictures of the first page and the README: files, so that they are drawn without a script."""

from pathlib import Path

import altair as alt

from runners.analyse import results
from runners.analyse.verdict import decide, store
from runners.report.charts import pays, style

GRID = "verdict.svg"  # in book/images


def grid(runs: Path, profile: str, file: Path) -> None:
    """Does speculation pay, at every point, as an SVG file. The verdict is decided here where none is stored."""
    alt.theme.enable(style.THEME)
    cells = results.cells(runs, profile)
    verdict = decide.stored(runs, profile) if store.path_of(runs, profile).is_file() else decide.of(runs, profile)
    pays.grid(pays.answered(verdict), pays.lost(cells)).save(str(file))
