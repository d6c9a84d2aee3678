"""Prometheus text exposition, as far as the three engines use it.

`prometheus_client.parser` parses all three texts (vLLM's and SGLang's come from the same library, llama.cpp writes its
own). Lines are filtered by name first: vLLM answers some 50 kB, which takes the parser 0.2 s. That is too much beside a
measurement on two cores; the few lines that are needed take a millisecond.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from runners.core.errors import UserError


class Sample(NamedTuple):
    """One line: `name{label="value"} value`."""

    name: str
    labels: dict[str, str]
    value: float


def samples(text: str, prefixes: Iterable[str] = ("",)) -> list[Sample]:
    """The samples whose name starts with one of `prefixes`.

    `*_created` samples are left out (they are unix times, not counts), and so is NaN, which means "no value yet".
    UserError when the text is not an exposition (an error page, JSON).
    """
    prefixes = tuple(prefixes)
    wanted = "".join(
        line + "\n" for line in text.splitlines() if line.startswith(prefixes) and not line.startswith("#")
    )
    if text.lstrip()[:1] in ("<", "{"):
        raise UserError(
            f"not a metrics text but {text.strip()[:60]!r}: check the server's address and that its metrics "
            "are switched on."
        )
    try:
        found = [s for family in text_string_to_metric_families(wanted) for s in family.samples]
    except ValueError as error:
        raise UserError(
            f"metrics text cannot be read ({error}): check that the address is the server's /metrics."
        ) from None
    return [
        Sample(s.name, dict(s.labels), float(s.value))
        for s in found
        if not s.name.endswith("_created") and not math.isnan(s.value)
    ]


def total(found: list[Sample], name: str, **labels: str) -> float | None:
    """Sum of a metric over all samples with these labels; None without a sample, which is not the same as 0."""
    values = [s.value for s in found if s.name == name and all(s.labels.get(k) == v for k, v in labels.items())]
    return sum(values) if values else None


def count(found: list[Sample], name: str, **labels: str) -> int | None:
    """`total` of a counter as an integer."""
    value = total(found, name, **labels)
    return None if value is None else round(value)


def by_position(found: list[Sample], name: str) -> list[int] | None:
    """A counter with a `position` label as a list over positions 0, 1, ..., summed over the other labels."""
    sums: dict[int, float] = {}
    for s in found:
        if s.name == name and s.labels.get("position", "").isdigit():
            position = int(s.labels["position"])
            sums[position] = sums.get(position, 0.0) + s.value
    return [round(sums.get(i, 0.0)) for i in range(max(sums) + 1)] if sums else None
