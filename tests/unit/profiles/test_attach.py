"""Servers that run already: their address and key, and what a profile of nothing else need not say."""

import pytest
import yaml
from pydantic import ValidationError

from runners.core.errors import UserError
from runners.measure import cell_key
from runners.profiles import load
from runners.profiles.attach import Attach
from runners.profiles.points import Point
from runners.serve import model_files


@pytest.mark.parametrize(
    ("given", "base"),
    [
        ("http://box:8000", "http://box:8000"),
        ("http://box:8000/", "http://box:8000"),
        ("http://box:8000/v1", "http://box:8000"),
        ("http://box:8000/v1/", "http://box:8000"),
        ("https://gate.example/team/v1", "https://gate.example/team"),
        ("http://[::1]:8000/v1", "http://[::1]:8000"),
    ],
)
def test_an_address_is_taken_as_clients_are_given_it(given, base):
    assert Attach(url=given).url == base


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"url": "box:8000"}, "must be an address"),
        ({"url": "http://me:hush@box:8000"}, "must hold no user and no password"),
        ({"url": "http://box:8000/v1?key=hush"}, "without a query"),
        ({"url": "http://box", "api_key_env": "not a name"}, "api_key_env"),
        ({"url": "http://box", "headers": {"X-Team": "a\nb"}}, "headers"),
        ({"url": "http://box", "headers": {"X Team": "a"}}, "headers"),
    ],
)
def test_a_wrong_address_key_or_header_is_refused_without_a_secret_in_the_sentence(fields, sentence):
    with pytest.raises(ValidationError) as error:
        Attach(**fields)
    message = error.value.errors()[0]
    assert sentence in f"{message['loc']} {message['msg']}" and "hush@" not in message["msg"]


CELL = {"engine": "vllm", "max_running_requests": 4}
ATTACHED = {
    "title": "two servers",
    "target": {"name": "toy"},
    "configurations": {
        "plain": CELL | {"title": "plain", "attach": {"url": "http://127.0.0.1:1/v1"}},
        "drafting": CELL | {"title": "drafting", "method": "eagle3", "attach": {"url": "http://127.0.0.1:2"}},
    },
    "workload": {
        **{"prompt_sets": ["chat"], "output_tokens": 24, "concurrencies": [1]},
        "presets": {"quick": {"repeats": {1: 1}, "requests": {1: 2}}},
    },
}


def loaded(tmp_path, content):
    file = tmp_path / "two.yaml"
    file.write_text(yaml.safe_dump(content))
    return load.load(str(file))


def test_servers_that_run_already_need_no_layers_no_files_and_no_interpreter(tmp_path):
    found = loaded(tmp_path, ATTACHED)
    assert found.hardware.servers_at_once == 2 and found.engines["vllm"].version == "unknown"
    assert found.base_of("drafting") == "plain" and model_files.planned_files(found).folder is None
    facts = cell_key.settings_facts(found, "drafting", Point("chat", 1, 0, 0, 2), None)
    assert facts["attach"] == "http://127.0.0.1:2" and facts["target"] == "toy" and facts["argv"] == ""
    with pytest.raises(UserError, match="the target's files are not known; set its `path`"):
        model_files.files(found)
    again = type(found).model_validate(found.model_dump())  # as a profile is written back
    assert again == found


def test_what_a_request_to_one_server_alone_holds_is_part_of_its_key(tmp_path):
    attach = {"url": "http://127.0.0.1:2", "body": {"draft": 0}}
    content = ATTACHED | {"configurations": {"plain": CELL | {"title": "plain", "attach": attach}}}
    facts = cell_key.settings_facts(loaded(tmp_path, content), "plain", Point("chat", 1, 0, 0, 2), None)
    assert facts["attach"] == ["http://127.0.0.1:2", {"draft": 0}]


TARGET = {"name": "toy", "precision": "none", "layers": 1, "hidden_size": 1, "vocab_size": 1}
TARGET |= {"context_length": 64, "bytes_on_disk": 1, "path": "/m"}


@pytest.mark.parametrize(
    ("left_out", "engine", "sentence"),
    [
        ("layers", {"version": "0", "python": "python3"}, "target: `layers` is missing; only servers that run already"),
        ("bytes_on_disk", {"version": "0", "python": "python3"}, "target: `bytes_on_disk` is missing"),
        ("path", {"version": "0", "python": "python3"}, "exactly one of `path` and `package`"),
        ("", {"python": "python3"}, "engines.vllm: `version` is missing"),
        ("", {"version": "0"}, "engines.vllm: give exactly one of `environment`, `python` and `command`"),
    ],
)
def test_a_server_that_we_start_needs_them(tmp_path, left_out, engine, sentence):
    started = {k: v for k, v in ATTACHED["configurations"]["plain"].items() if k != "attach"}
    content = ATTACHED | {
        "hardware": {"description": "any"},
        "target": {k: v for k, v in TARGET.items() if k != left_out},
        "engines": {"vllm": engine},
        "configurations": ATTACHED["configurations"] | {"plain": started},
    }
    with pytest.raises(UserError, match=sentence):
        loaded(tmp_path, content)
