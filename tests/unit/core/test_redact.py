"""No secret and no path of this machine is written."""

from pathlib import Path

import pytest

from runners.core import paths, redact, secrets


@pytest.mark.parametrize("name", ["HF_TOKEN", "API_KEY", "my-secret", "DB_PASSWORD", "PASSWD", "AWS_CREDENTIALS"])
def test_a_variable_whose_name_suggests_a_secret_is_masked(name):
    assert redact.masked({name: "hush"}) == {name: "(not shown)"}


def test_whole_words_only_and_no_plain_numbers():
    plain = {"TOKENIZER": "llama", "MONKEY": "x", "MAX_TOKENS": "64", "LANG": "C"}
    assert redact.masked(plain) == plain


def test_a_flags_value_is_masked_in_both_forms():
    argv = "serve --api-key hush --hf-token=hush --speculative-num-draft-tokens 4 --key --port 1".split()
    found = redact.masked_argv(argv)
    assert "hush" not in " ".join(found)
    assert found == [
        *("serve", "--api-key", "(not shown)", "--hf-token=(not shown)", "--speculative-num-draft-tokens", "4"),
        *("--key", "--port", "1"),
    ]
    assert redact.masked_argv([]) == []


def test_folders_are_named(monkeypatch, tmp_path):
    monkeypatch.setenv("SPECVERDICT_CACHE", str(tmp_path))
    assert redact.without_home(f"{tmp_path}/a {paths.ROOT}/b") == "$CACHE/a $ROOT/b"
    monkeypatch.setattr(Path, "home", lambda: Path("/home/somebody"))
    assert redact.without_home("/home/somebody/c") == "~/c"


def test_a_key_that_an_answer_repeats_is_taken_out():
    found = redact.without_words("Bearer sk-12345678 is wrong", ["Bearer", "sk-12345678"])
    assert found == "Bearer (not shown) is wrong"


def test_a_command_is_masked_by_value_too(monkeypatch):
    monkeypatch.setattr(secrets, "_learnt", {})
    secrets.learn("planted-value-5")
    argv = ["serve", "--config", '{"key": "planted-value-5"}', "--a=planted-value-5", "--api-key", "short"]
    assert redact.masked_argv(argv) == [
        *("serve", "--config", '{"key": "(not shown)"}', "--a=(not shown)", "--api-key", "(not shown)"),
    ]
    assert redact.masked({"PLAIN": "planted-value-5", "LANG": "C"}) == {"PLAIN": "(not shown)", "LANG": "C"}
