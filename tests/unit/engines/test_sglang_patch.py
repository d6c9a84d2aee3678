"""The patch on files shaped like the real ones: needed, applied once, taken back, refused where it is unknown."""

import hashlib
import subprocess
import sys

import pytest

from runners.core.errors import UserError
from runners.engines import sglang_patch

BARE = '''"""A wrapper."""
from typing import List, Optional, Tuple

import torch


class KimiK25ForConditionalGeneration:
    def __init__(self, language_model):
        self.language_model = language_model

    def load_weights(self, weights):
        self.language_model.load_weights(weights)


EntryClass = [KimiK25ForConditionalGeneration]
'''


@pytest.fixture
def bare(tmp_path, monkeypatch):
    file = tmp_path / "sglang" / "srt" / "models" / "kimi_k25.py"
    file.parent.mkdir(parents=True)
    file.write_text(BARE)
    (tmp_path / "sglang-0.5.9.dist-info").mkdir()
    monkeypatch.setitem(sglang_patch.NEEDS, "0.5.9", hashlib.sha256(BARE.encode()).hexdigest())
    return file


def look(file):
    return sglang_patch.find(file.parents[2])


def test_needed_applied_once_and_taken_back(bare):
    assert sglang_patch.check(look(bare))[0] == "needed"
    assert "is patched" in sglang_patch.apply(look(bare))
    once = bare.read_text()
    assert sglang_patch.check(look(bare))[0] == "patched"
    sglang_patch.apply(look(bare))
    assert bare.read_text() == once
    methods = sglang_patch.delegations(once)
    assert all(d.present and d.delegates for d in methods.values())
    assert once.index("def get_embed_and_head") < once.index("EntryClass")
    assert "is the original again" in sglang_patch.revert(look(bare)) and bare.read_text() == BARE
    assert "nothing to revert" in sglang_patch.revert(look(bare))


def test_an_unknown_file_is_refused_and_left_alone(bare):
    changed = BARE.replace("A wrapper", "Another wrapper")
    bare.write_text(changed)
    assert sglang_patch.check(look(bare))[0] == "unknown"
    with pytest.raises(UserError, match="this patch was not made for its file"):
        sglang_patch.apply(look(bare))
    assert bare.read_text() == changed


def test_a_file_changed_since_is_not_overwritten(bare):
    sglang_patch.apply(look(bare))
    bare.write_text(bare.read_text() + "\n# mine\n")
    with pytest.raises(UserError, match="changed since it was patched"):
        sglang_patch.revert(look(bare))


def test_releases_without_the_model_and_with_the_methods_need_nothing(bare):
    bare.write_text(sglang_patch.patched_source(BARE))
    assert sglang_patch.check(look(bare))[0] == "whole"
    bare.unlink()
    assert sglang_patch.check(look(bare))[0] == "absent" and "nothing to patch" in sglang_patch.apply(look(bare))


def test_delegation_is_read_from_the_tree_and_not_from_words():
    source = BARE.replace(
        "    def load_weights",
        "    def get_embed_and_head(self):\n        # self.language_model.get_embed_and_head()\n        return None\n\n"
        "    def set_embed_and_head(self, embed, head):\n"
        "        if not hasattr(self.language_model, 'set_embed_and_head'):\n            raise AttributeError\n"
        "        self.language_model.set_embed_and_head(embed, head)\n\n    def load_weights",
    )
    found = sglang_patch.delegations(source)
    assert found["get_embed_and_head"] == sglang_patch.Delegation(True, False, False)
    assert found["set_embed_and_head"] == sglang_patch.Delegation(True, True, True)
    assert not found["set_eagle3_layers_to_capture"].present


def test_no_sglang_is_one_sentence_and_exit_code_2(tmp_path):
    argv = [sys.executable, "-m", "runners", "patch", "check", "--sglang", str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 2 and "must be SGLang's package folder" in done.stderr and "Traceback" not in done.stderr
    (tmp_path / "srt").mkdir()
    with pytest.raises(UserError, match="must hold one version"):
        sglang_patch.find(tmp_path)
