"""Odd texts of /metrics: what cannot be counted is not known; nothing grows with what a label says."""

from types import SimpleNamespace

import matrix
import pytest

from runners.__main__ import main
from runners.engines import http
from runners.measure.cell_context import CellContext
from runners.measure.ledger import Ledger
from runners.profiles.load import load
from runners.readers.vllm import http as of_vllm

# Texts without a value that can be read, and a value that is not there yet: nothing is known of what they count.
NOTHING = ("counter-infinite", "counter-nan", "metrics-empty", "metrics-brackets")


@pytest.fixture
def bounded(monkeypatch):
    monkeypatch.setattr(http, "LARGEST", 1_000_000)


@pytest.mark.parametrize("fault", matrix.METRICS, ids=lambda f: f.name)
def test_what_cannot_be_counted_is_not_known(server, tmp_path, fault, bounded, capsys):
    context = CellContext(load("lab-cpu"), "vllm-base", None, Ledger(tmp_path), {}, SimpleNamespace())
    context.reader = of_vllm
    found = context.counters(f"{server}/{fault.name}")
    if fault.name in NOTHING:
        assert found is not None and found.output_tokens is None and found.accepted_per_position is None
    else:
        assert found is None
    assert main(["read", f"{server}/{fault.name}/metrics"]) in (0, 1, 2)
    said = capsys.readouterr()
    assert len(said.out) + len(said.err) < 5000 and "\x1b" not in said.out + said.err
