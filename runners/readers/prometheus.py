"""Prometheus text exposition, as far as the three engines use it, and as people paste it.

`prometheus_client.parser` parses all three texts (vLLM's and SGLang's come from the same library, llama.cpp writes its
own). Lines are filtered by name first: vLLM answers some 50 kB, which takes the parser 0.2 s. That is too much beside a
measurement on two cores; the few lines that are needed take a millisecond.

A pasted row may also have a time stamp, an exemplar (` # {trace_id="a"} 1`), or the bars of a table (`name{...} | 22`).
"""

import math
import re
from collections.abc import Iterable
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from runners.core.errors import UserError

MOST = 2**53  # a count beyond it is no exact number any more
MOST_POSITIONS = 1024  # of a draft; engines draft some tens of tokens
# A label's value may hold any character: braces too, and quotes behind a backslash.
_ROW = re.compile(
    r'[|\s]*+(?P<name>[A-Za-z_:][A-Za-z0-9_:]*+)(?:[ \t]*+(?P<labels>\{(?:[^"{}]|"(?:[^"\\]|\\.)*+")*+\}))?'
    r"(?:\s*+\|\s*+|\s++|(?<=\}))(?P<value>[-+]?(?:\d++(?:\.\d*+)?(?:[eE][-+]?\d++)?|[Nn]a[Nn]|[Ii]nf))"
    r"(?=[\s|]|$)(?P<rest>.*)$"
)
# Milliseconds since 1970 as Prometheus writes them, or seconds as OpenMetrics does.
_STAMP = re.compile(r"\s+(\d{13}|\d{10}(?:\.\d+)?)(?=\s|$)")


class Sample(NamedTuple):
    """One line: `name{label="value"} value`."""

    name: str
    labels: dict[str, str]
    value: float


def samples(text: str, prefixes: Iterable[str] = ("",)) -> list[Sample]:
    """The samples whose name starts with one of `prefixes`.

    `*_created` samples are left out (they are unix times, not counts), and so is what is not finite (NaN means "no
    value yet"). A line that is no row is passed over where others are rows. UserError when none is, and when the text
    is not an exposition (an error page, JSON).
    """
    prefixes = tuple(prefixes)
    if text.lstrip()[:1] in ("<", "{"):
        raise UserError(
            f"not a metrics text but {text.strip()[:60]!r}: check the server's address and that its metrics "
            "are switched on."
        )
    lines = (line for line in text.splitlines() if line.strip() and line[:1] != "#")
    wanted = [line for line in lines if line.lstrip("| \t").startswith(prefixes)]
    rows = [row for line in wanted if (row := _ROW.match(line))]
    if wanted and not rows:
        raise _unreadable(f"no value in {wanted[0].strip()[:60]!r}")
    try:
        found = [s for family in text_string_to_metric_families(_plain(rows)) for s in family.samples]
    except ValueError as error:
        raise _unreadable(str(error)) from None
    return [
        Sample(s.name, dict(s.labels), float(s.value))
        for s in found
        if not s.name.endswith("_created") and math.isfinite(s.value)
    ]


def _plain(rows: list[re.Match[str]]) -> str:
    """The rows as the format's definition has them, without what may follow a value."""
    return "".join(f"{row['name']}{row['labels'] or ''} {row['value']}\n" for row in rows)


def _unreadable(why: str) -> UserError:
    return UserError(f"metrics text cannot be read ({why}): check that the address is the server's /metrics.")


def namespace(line: str) -> str | None:
    """The part before the colon of a row's name, by which engines mark their own metrics; None for another line."""
    row = _ROW.match(line)
    before, _, name = row["name"].partition(":") if row else ("", "", "")
    return before if name else None


def stamp(text: str) -> float | None:
    """The latest time stamp of a row, in seconds since 1970; None where no row has one."""
    found = []
    for line in text.splitlines():
        if line[:1] != "#" and (row := _ROW.match(line)) and (at := _STAMP.match(row["rest"])):
            found.append(float(at[1]) / 1000 if float(at[1]) > 1e11 else float(at[1]))
    return max(found, default=None)


def snapshots(text: str) -> list[str]:
    """The texts of several scrapes that were appended to one file; the text alone where it is of one.

    No series comes twice in one scrape. Rows that tell their time belong together by it.
    """
    parts: list[list[str]] = [[]]
    stamps: dict[str, list[str]] = {}
    seen: set[str] = set()
    for line in text.splitlines(keepends=True):
        row = _ROW.match(line) if line[:1] != "#" else None
        if row is not None:
            if at := _STAMP.match(row["rest"]):
                stamps.setdefault(at[1], []).append(line)
            series = row["name"] + (row["labels"] or "")
            if series in seen:
                parts.append([])
                seen.clear()
            seen.add(series)
        parts[-1].append(line)
    if len(stamps) > 1 and len(parts) > 1:
        return ["".join(stamps[at]) for at in sorted(stamps, key=float)]
    return ["".join(part) for part in parts]


def started(text: str) -> float | None:
    """When the server's process started, in seconds since 1970; None where it does not export that."""
    rows = (_ROW.match(line) for line in text.splitlines() if line.startswith("process_start_time_seconds"))
    return next((float(row["value"]) for row in rows if row), None)


def total(found: list[Sample], name: str, **labels: str) -> float | None:
    """Sum of a metric over all samples with these labels; None without a sample, which is not the same as 0. UserError
    for what no number of tokens or requests can be.
    """
    values = [_possible(s) for s in found if s.name == name and all(s.labels.get(k) == v for k, v in labels.items())]
    return sum(values) if values else None


def count(found: list[Sample], name: str, **labels: str) -> int | None:
    """`total` of a counter as an integer."""
    value = total(found, name, **labels)
    return None if value is None else round(value)


def by_position(found: list[Sample], name: str) -> list[int] | None:
    """A counter with a `position` label as a list over positions 0, 1, ..., summed over the other labels. UserError for
    a position that no draft has.
    """
    sums: dict[int, float] = {}
    for s in found:
        if s.name == name and s.labels.get("position"):
            position = _position(s.labels["position"])
            sums[position] = sums.get(position, 0.0) + _possible(s)
    return [round(sums.get(i, 0.0)) for i in range(max(sums) + 1)] if sums else None


def _position(label: str) -> int:
    # Before it is made a number and a list as long: a server may write anything there.
    if not (label.isascii() and label.isdigit()) or len(label) > 6 or int(label) >= MOST_POSITIONS:
        raise _unreadable(f"position {label[:20]!r} is none of the first {MOST_POSITIONS} of a draft")
    return int(label)


def _possible(s: Sample) -> float:
    if not 0 <= s.value <= MOST:
        raise _unreadable(f"{s.name} is {s.value:g}, which nothing can count")
    return s.value


def accepted_tokens(found: list[Sample], spec: str) -> tuple[int | None, list[int] | None]:
    """(accepted draft tokens, the same by position) of the counters whose names begin with `spec`.

    A pasted text may have only the rows by position: their sum is the number of accepted tokens.
    """
    positions = by_position(found, spec + "accepted_tokens_per_pos_total")
    accepted = count(found, spec + "accepted_tokens_total")
    return sum(positions) if accepted is None and positions is not None else accepted, positions
