"""Whose text a log or an excerpt of one is, by the lines that only one engine writes, and how sure that is."""

from collections.abc import Iterable
from typing import NamedTuple

from runners.readers.marks import OF_ENGINE, OF_PYTORCH, PYTORCH, Marks
from runners.readers.registry import all_readers

# How sure it is: an engine's own lines; words that are typical of it; nothing decides; a person said so.
CERTAIN, LIKELY, UNSURE, NAMED = "certain", "likely", "unsure", "named"
_SURE, _TYPICAL, _SHARED = 10, 3, 1  # what a line of each kind weighs
_ENOUGH = 50 * _SURE  # with so much more than any other engine, the rest of the sample changes nothing


class Recognition(NamedTuple):
    """engines: more than one where nothing decides between them."""

    engines: tuple[str, ...]
    certainty: str


def recognise(sample: Iterable[str]) -> Recognition | None:
    """Whose lines these are; None when no line is of a form that an engine writes."""
    sample = list(sample)
    marks = _marks()
    scores = {name: 0 for name in all_readers()}
    sure = set()
    for line in sample:
        for name, (own, typical) in marks.items():
            if own.search(line):
                scores[name] += _SURE
                sure.add(name)
            elif typical.search(line):
                scores[name] += _TYPICAL
        if OF_PYTORCH.search(line):
            for name in PYTORCH:
                scores[name] += _SHARED
        first, second = _two_best(scores)
        if first - second >= _ENOUGH:
            break
    for name in scores.keys() - marks.keys():  # a plug-in without marks: what its reader understands
        reading = all_readers()[name].read_log(sample)
        scores[name] = _SURE * (len(reading.phases) + len(reading.acceptance))
        sure.add(name)
    first, second = _two_best(scores)
    if not first:
        return None
    best = tuple(sorted(name for name in scores if scores[name] == first))
    if len(best) > 1:
        return Recognition(best, UNSURE)
    return Recognition(best, CERTAIN if best[0] in sure and first >= 3 * second else LIKELY)


def _marks() -> dict[str, Marks]:
    """Engine -> its marks: its reader's own, or those known here."""
    own = {name: getattr(module, "MARKS", OF_ENGINE.get(name)) for name, module in all_readers().items()}
    return {name: marks for name, marks in own.items() if marks is not None}


def _two_best(scores: dict[str, int]) -> tuple[int, int]:
    first, second = sorted([0, 0, *scores.values()], reverse=True)[:2]
    return first, second
