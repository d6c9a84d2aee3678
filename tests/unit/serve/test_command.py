"""Every llama.cpp command line of every profile is one that our starter of its server takes."""

import importlib.util
import json

import pytest

from runners.core import paths
from runners.profiles.load import load, names
from runners.readers import llamacpp, vllm
from runners.readers.sglang import log
from runners.serve import model_files
from runners.serve.command import command


def starter():
    place = paths.ROOT / "runners" / "scripts" / "llamacpp_server.py"
    spec = importlib.util.spec_from_file_location("llamacpp_server", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.parser()


CASES = [(p, c) for p in names() for c, chosen in load(p).configurations.items() if chosen.engine == "llamacpp"]


@pytest.mark.parametrize(("profile", "configuration"), CASES)
def test_the_starter_takes_the_command_line(profile, configuration):
    chosen = load(profile)
    argv = command(
        chosen, configuration, model_files.planned_files(chosen, chosen.configurations[configuration].drafter), 1
    ).argv
    place = next(i for i, word in enumerate(argv) if str(word).endswith("llamacpp_server.py"))
    args = starter().parse_args([str(word) for word in argv[place + 1 :]])
    assert args.spec_synth_len == chosen.configurations[configuration].forced_accept_length


def test_the_target_drafts_for_itself_where_no_draft_model_is_named():
    profile = load("lab-cpu-sweeps")
    for name in ("llamacpp-draft-self", "vllm-draft-self"):
        argv = [str(word) for word in command(profile, name, model_files.planned_files(profile, None), 1).argv]
        target = argv[argv.index("--model") + 1]
        if name.startswith("vllm"):
            drafts = json.loads(argv[argv.index("--speculative-config") + 1])
            assert drafts == {"method": "draft_model", "model": target, "num_speculative_tokens": 3}
        else:
            assert argv[argv.index("--spec-draft-model") + 1] == target
            assert argv[argv.index("--spec-type") + 1] == "draft-simple"


@pytest.mark.parametrize("reader", [llamacpp, vllm, log])
def test_a_parsers_refusal_is_the_first_error(reader):
    lines = ["usage: server [-h]\n", "api_server.py: error: unrecognized arguments: --nope 2\n"]
    found = reader.first_error(lines)
    assert found and "unrecognized arguments: --nope 2" in found[0]
