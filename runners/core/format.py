"""How figures and names are written, in tables, prose and on the terminal alike."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

NOT_MEASURED = "not measured here"
SIMULATED = "Simulated: a rehearsal against stand-in engines. No figure here was measured."


def is_missing(value: Any) -> bool:
    """True for None, NaN and pandas' NA. The rooms below `measure` may not import pandas, hence no `pd.isna`."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def percent(value: Any, decimals: int = 1) -> str:
    """A share as per cent; "-" where it is missing."""
    return "-" if is_missing(value) else f"{value:.{decimals}%}"


def number(value: Any, decimals: int = 2) -> str:
    """A number with thousands separators; "-" where it is missing."""
    return "-" if is_missing(value) else f"{value:,.{decimals}f}"


def interval_text(point: Any, lo: Any, hi: Any, decimals: int = 2) -> str:
    """A figure with its interval: `1.05 [1.02, 1.08]`. The figure alone without bounds; NOT_MEASURED without it."""
    if is_missing(point):
        return NOT_MEASURED
    bounds = "" if is_missing(lo) else f" [{lo:,.{decimals}f}, {hi:,.{decimals}f}]"
    return f"{point:,.{decimals}f}{bounds}"


def triple_text(triple: Sequence[Any] | None, decimals: int = 2) -> str:
    """[point, lo, hi], as stored files hold a figure with its interval, as text; None: not measured."""
    point, lo, hi = triple or (None, None, None)
    return interval_text(point, lo, hi, decimals)


def significant_text(value: float) -> str:
    """Whole numbers without decimals; ratios with about three significant digits."""
    if float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:,.1f}" if abs(value) >= 20 else f"{value:.3g}" if abs(value) < 0.1 else f"{value:.2f}"


def minutes(seconds: float) -> str:
    """A time for a person: in minutes from 90 s on, in seconds below."""
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def listed(names: Iterable[Any]) -> str:
    """Names separated by commas; "none" for no names."""
    return ", ".join(str(n) for n in names) or "none"


def slug(name: str) -> str:
    """A name as part of a glue key: lower-case letters, digits and underscores."""
    return re.sub(r"[^0-9a-z]+", "_", name.lower()).strip("_")
