"""A block: each side has its row, whatever became of the other."""

from types import SimpleNamespace

import pytest

from runners.measure import block
from runners.measure.block import NoAnswer
from runners.profiles.points import Point


class Rows(list):
    """A ledger that keeps what it is given."""

    def append(self, row, requests):
        super().append(row)


def side(name, error):
    """A side of a block whose one request ended with this error, or well."""
    context = SimpleNamespace(ledger=Rows(), base="base", base_answers=None, results=[SimpleNamespace(error=error)])
    return SimpleNamespace(name=name, context=context, server=SimpleNamespace(alive=lambda: True))


@pytest.fixture
def measured(monkeypatch):
    """Blocks of sides whose answers are known beforehand."""
    pool = SimpleNamespace(only=lambda alive: None)
    monkeypatch.setattr(
        block,
        "observe",
        lambda context, *_: SimpleNamespace(loop=SimpleNamespace(seconds=1.0), results=context.results),
    )
    monkeypatch.setattr(block, "judged_row", lambda context, *_: SimpleNamespace(status="void", reasons=[]))
    campaign = SimpleNamespace(id="c", seed=1)
    return lambda sides: block.measure(pool, sides, Point("chat", 4, 0, 0, 1), campaign, 0, 0)


@pytest.mark.parametrize("silent", ["base", "drafting"])
def test_a_server_that_answers_nothing_leaves_the_row_of_the_other_side(measured, silent):
    sides = [side(name, "timed out" if name == silent else None) for name in ("base", "drafting")]
    with pytest.raises(NoAnswer, match="no answer at C=4: timed out") as failure:
        measured(sides)
    assert failure.value.name == silent and [len(s.context.ledger) for s in sides] == [1, 1]


def test_a_block_of_two_that_answer_ends_well(measured):
    assert len(measured([side("base", None), side("drafting", None)])) == 2
