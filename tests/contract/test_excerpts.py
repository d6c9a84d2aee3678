"""Excerpts: whose text it is and how sure that is, what it tells, and nothing that it does not tell."""

import pytest

from runners.commands.read_answer import answer
from runners.readers import sources, texts
from runners.readers.findings import findings
from runners.readers.read_text import read_text
from runners.readers.together import of_one_server

NOT_TOLD = "not in this text"
ENGINE_LINE = (
    "(APIServer pid=1) INFO 03-11 06:16:52 [loggers.py:271] Engine 000: Avg prompt throughput: 1.5 tokens/s, Avg "
    "generation throughput: 20.0 tokens/s, Running: 3 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.1%"
)
DECODE = (
    "[2026-03-11 06:16:5{} TP0] Decode batch, #running-req: 2, #token: 9, token usage: 0.01, cuda graph: True, "
    "gen throughput (token/s): 90.10, #queue-req: 0"
)

# Text -> whose, how sure, outcome, kind of the cause.
EXCERPTS = {
    "one Engine line": (ENGINE_LINE, "vllm", "certain", NOT_TOLD, None),
    "decode lines without speculation": (
        DECODE.format(1) + "\n" + DECODE.format(2),
        "sglang",
        "certain",
        "served",
        None,
    ),
    "a traceback alone": (
        'Traceback (most recent call last):\n  File "/venv/vllm/v1/core.py", line 1, in f\nKeyError: 7',
        "vllm",
        "likely",
        "dead",
        "other",
    ),
    "a traceback that any of two could have written": (
        'Traceback (most recent call last):\n  File "/a.py", line 1, in f\nKeyError: 7',
        "sglang or vllm",
        "unsure",
        "dead",
        "other",
    ),
    "acceptance of 2025": (
        "draft acceptance rate = 0.57143 (    4 accepted /     7 generated)",
        "llamacpp",
        "certain",
        NOT_TOLD,
        None,
    ),
    "n-gram rows": ("statistics ngram_simple: #calls = 9, #gen drafts = 2", "llamacpp", "certain", NOT_TOLD, None),
    "a decode line without a time": (
        "Decode batch. #running-req: 1, #token: 9, token usage: 0.00, accept len: 2.17, gen throughput (token/s): "
        "9.00, #queue-req: 0",
        "sglang",
        "certain",
        NOT_TOLD,
        None,
    ),
    "two fields of a decode line": ("accept len: 1.00, accept rate: 0.00", "sglang", "certain", NOT_TOLD, None),
    "a rank that waited": (
        "ValueError: TP rank 1 could finish the model loading, but another one could not",
        "sglang",
        "certain",
        NOT_TOLD,
        "rank time-out",
    ),
    "an exit code": ("Exit code: -9", "sglang", "likely", "dead", "killed"),
    "a missing file": (
        "ValueError: Cannot find the config file for awq",
        "sglang or vllm",
        "unsure",
        NOT_TOLD,
        "model files",
    ),
    "PyTorch's words": ("mat1 and mat2 must have the same dtype", "sglang or vllm", "unsure", NOT_TOLD, "dtype"),
    "llama.cpp's words": (
        "draft model vocab must match target model",
        "llamacpp",
        "certain",
        NOT_TOLD,
        "vocabulary mismatch",
    ),
    "a web server's lines": (
        'INFO:     Application startup complete.\nINFO:     10.0.0.2:4 - "POST /v1/completions HTTP/1.1" 200 OK',
        "sglang or vllm",
        "unsure",
        "served",
        None,
    ),
    "a refused flag": (
        "usage: api_server.py [-h]\napi_server.py: error: unrecognized arguments: --foo",
        "vllm",
        "likely",
        NOT_TOLD,
        "other",
    ),
    "a worker that waits": (
        "No available shared memory broadcast block found in 60 seconds.",
        "vllm",
        "certain",
        NOT_TOLD,
        None,
    ),
}


@pytest.mark.parametrize(("text", "engine", "certainty", "outcome", "kind"), EXCERPTS.values(), ids=EXCERPTS)
def test_an_excerpt_is_read_and_what_it_does_not_tell_is_said(text, engine, certainty, outcome, kind):
    found = read_text(text.splitlines())
    assert (found.engine, found.engine_certainty) == (engine, certainty)
    assert (found.outcome, found.cause_kind) == (outcome, kind)
    assert found.excerpt
    assert (found.cause is None) == (kind is None)
    if found.cause:
        assert found.cause.startswith(f"{engine} failed: ")


def test_the_figures_of_an_engine_line_are_read():
    found = read_text([ENGINE_LINE])
    assert found.running_max == 3 and found.unknown_lines == 0


@pytest.mark.parametrize("text", ["", "nothing of the kind\n", "{", '{"a": 1}', "[1, 2]", "d\n"])
def test_what_no_engine_wrote_is_not_read(text):
    assert read_text(text.splitlines(keepends=True)) is None


def test_a_log_whose_start_is_there_is_no_excerpt():
    found = read_text(["(APIServer pid=1) INFO 03-11 06:16:52 [utils.py:1] non-default args: {'model': 'm'}"])
    assert not found.excerpt and found.outcome == "starting"


def test_a_named_engine_is_taken_at_its_word():
    found = read_text(["nothing of the kind\n"], "vllm")
    assert (found.engine, found.engine_certainty, found.unknown_lines) == ("vllm", "named", 1)


def test_an_echo_of_another_engines_line_changes_nothing():
    echo = "(APIServer pid=1) INFO 03-11 06:16:52 [logger.py:1] prompt: 'Decode batch, #running-req: 2'"
    found = read_text([ENGINE_LINE, echo, ENGINE_LINE, ENGINE_LINE])
    assert (found.engine, found.engine_certainty) == ("vllm", "certain")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (ENGINE_LINE, "tells neither its state nor its acceptance"),
        ('INFO:     10.0.0.2:4 - "POST /v1/completions HTTP/1.1" 200 OK\n' * 2, "tells nothing of its drafts"),
        (f"{ENGINE_LINE}\n" * 3, "at 20 output tokens/s with 3 requests running without speculation"),
    ],
)
def test_only_intervals_without_drafts_tell_that_there_are_none(tmp_path, text, words):
    path = tmp_path / "server.log"
    path.write_text(text)
    (source,) = sources.of(str(path))
    together = of_one_server([texts.read(source)])
    assert words in answer(together, findings(together))
