"""Secrets: known by their names, masked by their values wherever text is written or printed."""

import ast
import html
import json
import os
import sys
from urllib.parse import quote

import pytest

from runners.__main__ import main
from runners.core import files, paths, progress, secrets, terminal

VALUE = 'plAnted-"9<z>7'  # JSON, HTML and addresses spell it otherwise


@pytest.fixture(autouse=True)
def nothing_learnt(monkeypatch):
    monkeypatch.setattr(secrets, "_learnt", {})


@pytest.mark.parametrize(
    "name",
    """HF_TOKEN WANDB_API_KEY OPENAI_APIKEY MYAPIKEY BASIC_AUTH AUTH_BEARER DB_PASS PGPASSWORD client_secret --api-key
    --hf-token Authorization Proxy-Authorization Cookie X-Api-Key x-goog-api-key accessToken hfToken
    AWS_SECRET_ACCESS_KEY AZURE_CREDENTIALS password""".split(),
)
def test_a_name_that_suggests_a_secret_is_known(name):
    assert secrets.is_name(name)


@pytest.mark.parametrize(
    "name",
    """TOKENIZER tokenizer-mode MONKEY KEYRING AUTHOR compass LANG api_key_env --api-key-env HF_TOKEN_PATH SSL_KEY_FILE
    host""".split(),
)
def test_a_name_that_only_sounds_like_it_is_none(name):
    assert not secrets.is_name(name)


def test_a_value_is_masked_as_it_is_and_as_json_html_and_addresses_spell_it():
    secrets.learn(VALUE)
    spelt = [
        VALUE,
        json.dumps({"a": VALUE}),
        html.escape(VALUE),
        html.escape(VALUE, quote=False),
        quote(VALUE, safe=""),
    ]
    for text in spelt:
        assert secrets.NOT_SHOWN in secrets.masked(text) and "9" not in secrets.masked(text)
        assert secrets.masked_bytes(text.encode()) == secrets.masked(text).encode()
    assert json.loads(secrets.masked(json.dumps({"a": VALUE}))) == {"a": secrets.NOT_SHOWN}


def test_a_secret_within_another_leaves_nothing_of_the_longer_one():
    secrets.learn("abcd-1234", "abcd-1234-efgh")
    assert secrets.masked("x abcd-1234-efgh y abcd-1234 z") == "x (not shown) y (not shown) z"


def test_ordinary_words_short_values_and_places_are_not_looked_for():
    secrets.learn("EMPTY", "disabled", "metadata", "short-1", "${HF_TOKEN}", "/run/secrets/token", "~/token-file-1")
    assert secrets.known() == secrets._spellings((), tuple(os.environ.items()))


def test_the_environments_own_secrets_are_known(monkeypatch):
    monkeypatch.setenv("WANDBAPIKEY", "env-planted-1")
    monkeypatch.setenv("PIP_INDEX_URL", "https://me:pw-planted-2@index.example/simple")
    monkeypatch.setenv("OMP_NUM_THREADS_KEY", "12345678901")
    text = "a env-planted-1 b pw-planted-2 c 12345678901"
    assert secrets.masked(text) == "a (not shown) b (not shown) c 12345678901"


def test_secrets_of_a_profile_are_learnt_wherever_they_stand():
    secrets.learn_from(
        {
            "engines": {
                "vllm": {"command": ["serve", "--hf-token", "planted-a1", "--x=1"], "env": {"MY_AUTH": "planted-b2"}}
            },
            "configurations": {
                "one": {"flags": {"api-key": ["planted-c3", "planted-d4"], "nested": {"key": "planted-e5"}}}
            },
            "attach": {"url": "http://me:planted-f6@box:1", "headers": {"Authorization": "Bearer planted-g7"}},
            "api_key_env": "PLANTED_NAME_8",
        }
    )
    for end in ("a1", "b2", "c3", "d4", "e5", "f6", "g7"):
        assert secrets.masked(f"x planted-{end} y") == "x (not shown) y", end
    assert secrets.masked("PLANTED_NAME_8") == "PLANTED_NAME_8"


def test_secrets_of_a_command_line_are_learnt():
    words = ["ask", "--base", "http://u:planted-1a@box", "--header", "X-Key: planted-2b", "--api-key=planted-3c"]
    secrets.learn_words([*words, "--api-key", "planted-4d", "--api-key-env", "PLANTED_ENV"])
    text = secrets.masked("planted-1a planted-2b planted-3c planted-4d PLANTED_ENV")
    assert text == "(not shown) (not shown) (not shown) (not shown) PLANTED_ENV"


def test_a_password_in_an_address_is_masked_however_short():
    assert secrets.masked("see http://me:pw@box:8000/v1") == "see http://me:(not shown)@box:8000/v1"
    plain = '{"url":"http://127.0.0.1:8000","mail":"a@b.example"}'
    assert secrets.masked(plain) == plain and secrets.masked_bytes(plain.encode()) == plain.encode()


def test_content_for_another_reader_holds_no_secret_of_any_length():
    secrets.learn("planted-value-1")
    found = secrets.hidden(
        {"flags": {"api-key": "pw", "k": 3, "note": "has planted-value-1"}, "headers": {"X-Key": "${HF_TOKEN}"}, 4: [1]}
    )
    assert found == {
        "flags": {"api-key": "(not shown)", "k": 3, "note": "has (not shown)"},
        "headers": {"X-Key": "${HF_TOKEN}"},
        4: [1],
    }


def test_files_are_written_without_secrets_and_parquet_as_it_is(tmp_path):
    secrets.learn("planted-value-2")
    files.write_text(tmp_path / "a.json", '{"a": "planted-value-2"}')
    assert (tmp_path / "a.json").read_text() == '{"a": "(not shown)"}'
    files.write_atomic(tmp_path / "a.parquet", b"PAR1 planted-value-2")
    assert (tmp_path / "a.parquet").read_bytes() == b"PAR1 planted-value-2"


def test_events_hold_no_secret(tmp_path, monkeypatch, capsys):
    secrets.learn(VALUE)
    progress.say(f"it said {VALUE}")
    monkeypatch.setenv(progress.VARIABLE, str(tmp_path / "events"))
    progress.say(f"it said {VALUE}")
    assert json.loads((tmp_path / "events").read_text())["text"] == "it said (not shown)"
    assert capsys.readouterr().err == "it said (not shown)\n"


def test_the_terminal_shows_no_secret(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    secrets.learn("planted-value-3")
    terminal.guard()
    guarded = sys.stdout
    terminal.guard()
    assert sys.stdout is guarded, "once is enough"
    print("a planted-value-3 b", file=sys.stdout)
    sys.stderr.writelines(["planted-value-3\n"])
    assert capsys.readouterr() == ("a (not shown) b\n", "(not shown)\n")


def test_an_error_does_not_repeat_a_secret_of_the_command_line(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    assert main(["ask", "--base", "ftp://me:planted-value-4@box", "--spec", "http://box"]) == 2
    assert "planted" not in capsys.readouterr().err


# Modules that write a file in another way: what they write holds no secret, or they mask it themselves.
OTHER_WRITERS = {
    "core/files.py": "the one place",
    "core/hashes.py": "a hash",
    "core/locks.py": "empty",
    "core/progress.py": "masks each event",
    "engines/environments.py": "pip's output, which leaves passwords out, and a marker",
    "serve/scripts.py": "a request to a script, deleted after it",
    "serve/supervisor.py": "masks an engine's log",
    "commands/run_report.py": "what Snakemake prints of steps that mask their output, and an empty event file",
}
ROOMS = ("core", "profiles", "engines", "serve", "measure", "analyse", "claims", "report", "commands")


def writes(node) -> bool:
    """Whether a call writes a file by itself."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("write_text", "write_bytes"):
        return ast.unparse(node.func.value) != "files"
    modes = [*node.args[1:2], *(k.value for k in node.keywords if k.arg == "mode")]
    return ast.unparse(node.func) == "open" and any(
        isinstance(m, ast.Constant) and set(str(m.value)) & set("wax") for m in modes
    )


def test_files_are_written_through_one_function():
    found = set()
    for room in ROOMS:
        for path in (paths.ROOT / "runners" / room).rglob("*.py"):
            if any(writes(node) for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))):
                found.add(path.relative_to(paths.ROOT / "runners").as_posix())
    assert found == set(OTHER_WRITERS), "use files.write_text or files.write_atomic"


COMMAND = "HF_TOKEN=planted-9i serve m --api-key 'planted-10j' --x=1 --port {port}"


def test_a_whole_command_line_is_looked_through():
    secrets.learn_from({"configurations": {"one": {"command": COMMAND}}})
    assert secrets.masked("planted-9i planted-10j") == "(not shown) (not shown)"
    secrets.learn_words(["ask", "--base-command", COMMAND.replace("planted-9i", "planted-11k")])
    assert secrets.masked("planted-11k") == "(not shown)"
    plain = "OMP_NUM_THREADS=2 serve m --port {port} --a 'b c'"
    assert secrets.hidden({"command": plain}) == {"command": plain}
    words = "HF_TOKEN=pw serve --api-key pw --token=pw --max-tokens 5 --key --port {port}"
    found = secrets.hidden({"base_command": words, "command": words.split()})
    assert "pw" not in str(found) and "--max-tokens 5 --key --port" in found["base_command"]
