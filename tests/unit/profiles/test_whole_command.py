"""A server's whole command line, as a person types it."""

import pytest
import yaml

from runners.core.errors import UserError
from runners.profiles import load, whole_command
from runners.serve import model_files
from runners.serve.command import command, slot_field


def test_quotes_and_variables_are_taken_as_a_shell_takes_them():
    text = """A=1 B='x y' vllm serve m --port {port} --speculative-config '{"method": "ngram"}'"""
    words, variables = whole_command.split(text, 8000)
    assert words == ["vllm", "serve", "m", "--port", "8000", "--speculative-config", '{"method": "ngram"}']
    assert variables == {"A": "1", "B": "x y"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("serve --port {port} --name 'a", "as a shell takes it"),
        ("A=1", "must name a program"),
        ("serve --port 8000", "must hold {port} where the server is told its port"),
    ],
)
def test_what_cannot_be_started_is_refused(text, sentence):
    with pytest.raises(ValueError, match=sentence):
        whole_command.can_be_started(text)


CELL = {"engine": "llamacpp", "title": "mine", "max_running_requests": 16}


def written(tmp_path, **more):
    content = {
        "title": "two commands",
        "hardware": {"description": "any", "servers_at_once": 2},
        "target": {"name": "m"},
        "configurations": {"plain": CELL | {"command": "A=1 llama-server -m m.gguf --port {port}"} | more},
        "workload": {
            **{"prompt_sets": ["chat"], "output_tokens": 24, "concurrencies": [1, 4]},
            "presets": {"quick": {"repeats": {1: 1, 4: 1}, "requests": {1: 2, 4: 4}}},
        },
    }
    file = tmp_path / "two.yaml"
    file.write_text(yaml.safe_dump(content))
    return load.load(str(file))


def test_it_is_all_that_a_profile_needs_to_know_of_its_server(tmp_path):
    found = written(tmp_path)
    line = command(found, "plain", model_files.planned_files(found), 8000)
    assert line.argv == ["llama-server", "-m", "m.gguf", "--port", "8000"] and line.env["A"] == "1"
    assert slot_field(found, "plain", 4) is None, "its slots are not ours to hand out"


@pytest.mark.parametrize("more", [{"flags": {"x": 1}}, {"attach": {"url": "http://127.0.0.1:1"}}])
def test_nothing_else_stands_beside_it(tmp_path, more):
    with pytest.raises(UserError, match="`command` says all of its server: leave `attach` and `flags` out"):
        written(tmp_path, **more)
