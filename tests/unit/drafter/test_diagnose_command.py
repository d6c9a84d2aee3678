"""`specverdict diagnose` on the terminal: the evidence, then each likely fault with what to do next."""

from runners.commands import diagnose as command
from runners.core.finding import Finding
from runners.drafter.diagnose import Diagnosis, LikelyFault
from runners.drafter.measured import of_counts
from runners.profiles.load import load


def test_each_likely_fault_is_printed_with_its_evidence_and_what_to_do(monkeypatch, tmp_path, capsys):
    likely = [LikelyFault("boundary+1", 0.7, ["replay: better one layer earlier"]), LikelyFault("weak", None, [])]
    found = Diagnosis(
        [Finding("blocker", "fc takes 16 inputs", "use a drafter of this target")],
        [of_counts(100, 50, [50], "ledger")],
        {"as it is": {"accept_length": 1.5}},
        likely,
    )
    monkeypatch.setattr(command, "diagnose", lambda *a, **k: found)
    assert command.show(load("lab-cpu"), "vllm-eagle3-aligned", tmp_path) == 0
    printed = capsys.readouterr().out
    for words in (
        "fix: use a drafter",
        "accept length 1.500",
        "1. aux states one layer too late (undoing it gains 0.70)",
    ):
        assert words in printed
    assert "next: lower each layer id by one" in printed and "2. no fault found" in printed


def test_without_evidence_each_part_says_so(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(command, "diagnose", lambda *a, **k: Diagnosis([], [], {}, []))
    command.show(load("lab-cpu"), "vllm-eagle3-aligned", tmp_path)
    printed = capsys.readouterr().out
    for words in ("no findings", "not measured here", "not replayed", "none found"):
        assert words in printed
