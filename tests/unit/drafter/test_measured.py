"""The measured acceptance of a drafter: from a ledger's counts, and from a server's texts."""

import pytest

from runners.drafter import measured
from runners.readers.counter_figures import Figures
from runners.readers.records import Counters
from runners.readers.together import Together


def told(figures, counts=None):
    return Together("any", "surely", (), [], figures, "the log", counts)


def test_counts_are_a_ratio_of_sums():
    found = measured.of_counts(40, 18, [12, 6], "ledger")
    assert found.accept_length == pytest.approx(1.45) and found.survival == pytest.approx([0.3, 0.15])
    assert found.words == "accept length 1.450 over 40 steps; survival 0.300, 0.150" and not found.reads_one


def test_a_servers_texts_give_what_they_tell():
    found = measured.of_server(told(Figures(1.9, per_position=[0.6, 0.3]), Counters(steps=100)))
    assert (found.accept_length, found.steps, found.survival, found.source) == (1.9, 100, [0.6, 0.3], "the log")
    found = measured.of_server(told(Figures(1.004)))
    assert found.words == "accept length 1.004" and found.reads_one
    assert measured.of_server(told(Figures())) is None
