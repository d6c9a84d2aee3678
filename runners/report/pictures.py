"""Pictures of the first page and the README: files, so that they are drawn without a script."""

from pathlib import Path

import altair as alt

from runners.analyse import results
from runners.analyse.verdict import decide, store
from runners.report.charts import pays, style

GRID = "verdict.svg"  # in book/images
MARGIN = {"right": 8, "top": 8, "bottom": 8}  # pixels


def grid(runs: Path, profile: str, file: Path) -> None:
    """Does speculation pay, at every point, as an SVG file. The verdict is decided here where none is stored."""
    alt.theme.enable(style.THEME)
    cells = results.cells(runs, profile)
    verdict = decide.stored(runs, profile) if store.path_of(runs, profile).is_file() else decide.of(runs, profile)
    # A reader's own font may be wider than the one that the picture was laid out with.
    chart = pays.grid(pays.answered(verdict), pays.lost(cells)).properties(padding={"left": 40, **MARGIN})
    chart.save(str(file))
