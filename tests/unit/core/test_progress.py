"""Progress events: to a file that notebooks share, or to the terminal."""

import json

import pytest

from runners.core import progress


@pytest.fixture
def events(tmp_path, monkeypatch):
    path = tmp_path / "events.jsonl"
    monkeypatch.setenv(progress.VARIABLE, str(path))
    return lambda: [json.loads(line) for line in path.read_text().splitlines()]


def test_each_event_is_one_line_of_the_file(events, capsys):
    progress.say("two\nlines")
    progress.emit("cell", label="chat", state="begins")
    first, second = events()
    assert (first["kind"], first["text"]) == ("say", "two\nlines") and first["at"] > 0
    assert (second["kind"], second["label"], second["state"]) == ("cell", "chat", "begins")
    assert capsys.readouterr().err == ""


def test_without_a_file_only_sentences_reach_the_terminal(monkeypatch, capsys):
    monkeypatch.delenv(progress.VARIABLE, raising=False)
    progress.say("hello")
    progress.emit("cell", label="chat")
    assert capsys.readouterr() == ("", "hello\n")


def test_a_span_is_recorded_even_when_its_step_fails(events):
    with pytest.raises(KeyError), progress.span("cell", configuration="a"):
        raise KeyError
    (event,) = events()
    assert (event["kind"], event["what"], event["configuration"]) == ("span", "cell", "a") and event["seconds"] >= 0


def test_quiet_shows_nothing(capsys):
    progress.quiet("anything")
    assert capsys.readouterr() == ("", "")
