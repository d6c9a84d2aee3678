"""Every command line of the profiles through the engines' own argument parsers, from their release's own source."""

import pytest
from sglang_wheel import wheel

from runners.commands.preflight import command_line
from runners.engines import environments
from runners.engines.registry import engine
from runners.profiles.load import load, names
from runners.profiles.profile import Profile

pytestmark = pytest.mark.slow

BOXES = [name for name in names() if "sglang" in load(name).engines]


@pytest.fixture(scope="module")
def vllm_here():
    environments.ensure("vllm", print)


def sglang_lines(name):
    profile = load(name)
    return {c: command_line.words(profile, c) for c, v in profile.configurations.items() if v.engine == "sglang"}


@pytest.mark.parametrize("version", ["0.5.9", "0.5.10"])
@pytest.mark.parametrize("name", BOXES)
def test_sglangs_parser_takes_every_command_line(name, version):
    spec = load(name).engines["sglang"]
    parsed = command_line.parse(engine("sglang"), spec, sglang_lines(name), wheel(version))
    assert parsed and set(parsed.values()) == {""}, parsed


@pytest.mark.parametrize(
    "words, said",
    [
        (["--speculative-num-step", "3"], "unrecognized arguments: --speculative-num-step"),
        (["--speculative-num-steps", "three"], "invalid int value: 'three'"),
        (["--speculative-algorithm", "EAGLE4"], "invalid choice: 'EAGLE4'"),
    ],
)
def test_a_typo_fails_with_sglangs_own_message(words, said):
    spec = load("single-gpu").engines["sglang"]
    parsed = command_line.parse(engine("sglang"), spec, {"typo": ["--model-path", "/m", *words]}, wheel("0.5.9"))
    assert said in parsed["typo"]


def test_vllms_parser_takes_every_command_line(vllm_here):
    for name in names():
        profile = load(name)
        lines = {c: command_line.words(profile, c) for c, v in profile.configurations.items() if v.engine == "vllm"}
        parsed = command_line.parse(engine("vllm"), profile.engines["vllm"], lines)
        assert parsed and set(parsed.values()) == {""}, parsed


def test_a_typo_fails_with_vllms_own_message(vllm_here):
    lines = {
        "flag": ["--model", "/m", "--max-num-seq", "4"],
        "type": ["--model", "/m", "--max-num-seqs", "four"],
        "key": ["--model", "/m", "--speculative-config", '{"method": "eagle3", "num_speculative_token": 3}'],
    }
    parsed = command_line.parse(engine("vllm"), load("lab-cpu").engines["vllm"], lines)
    assert (
        "--max-num-seq" in parsed["flag"] and "invalid" in parsed["type"] and "num_speculative_token" in parsed["key"]
    )


def test_a_refused_command_line_is_a_blocker(monkeypatch):
    content = load("kimi-k2.5-8x-rtx-pro-6000").model_dump()
    content["configurations"]["sglang-base"]["flags"] = {"max-runing-requests": 4}
    monkeypatch.setattr(command_line, "wheel_of", lambda version: wheel("0.5.9"))
    found = command_line.check(Profile.model_validate(content), ["sglang-base"])["sglang-base"]
    assert found[0].level == "blocker" and "max-runing-requests" in found[0].text
