"""Replay of a made-up head on a made-up target, in the reference environment: the scripts agree with what is asked."""

import json

import pytest
import small_models

from runners.core import checkpoint
from runners.drafter import layouts, replay_folders
from runners.engines import environments

pytestmark = pytest.mark.slow

TEMPLATE = "{% for m in messages %}{{ m['content'] }} {% endfor %}"


def tokenizer(folder):
    """One token a word: 38 common words, one for all others and an end."""
    common = "the a is of to in and what how you it that for on with as be at by or an are do if not can why".split()
    words = ["<unk>", "<end>", *common, *(f"w{i}" for i in range(small_models.VOCABULARY))][: small_models.VOCABULARY]
    model = {"type": "WordLevel", "vocab": {w: i for i, w in enumerate(words)}, "unk_token": "<unk>"}
    held = {"version": "1.0", "model": model, "pre_tokenizer": {"type": "Whitespace"}, "added_tokens": []}
    held |= {"truncation": None, "padding": None, "normalizer": None, "post_processor": None, "decoder": None}
    (folder / "tokenizer.json").write_text(json.dumps(held))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>", "eos_token": "<end>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config | {"chat_template": TEMPLATE}))


@pytest.mark.parametrize("shards, write", [(1, small_models.head), (2, small_models.speculators)])
def test_each_alternative_is_replayed_on_the_targets_own_answers(tmp_path, shards, write):
    environments.ensure("reference")
    more = {"head_dim": 4, "bos_token_id": None, "eos_token_id": None, "max_position_embeddings": 2048}
    folder = small_models.target(tmp_path / "target", layers=6, config=more, shards=shards)
    tokenizer(folder)
    head = layouts.of(checkpoint.read(write(tmp_path / "head")))
    said = []
    found, reason = replay_folders.what_if(checkpoint.read(folder), head, 3, said.append)
    assert reason == "" and {"as it is", "states one layer later", "the target's own LM head"} <= set(found)
    for words, row in found.items():
        assert 1 <= row["accept_length"] <= 4 and len(row["every_position"]) == replay_folders.PROMPTS, words
