"""What every notebook needs: how a table is shown."""

import pandas as pd
from IPython.display import Markdown

from runners.core import format


def shown(
    frame: pd.DataFrame, *index: str, empty: str = f"{format.NOT_MEASURED.capitalize()}."
) -> pd.DataFrame | Markdown:
    """A table under its row names, or a sentence in its place: an empty frame tells a reader nothing."""
    return frame.set_index(list(index)) if len(frame) else Markdown(empty)
