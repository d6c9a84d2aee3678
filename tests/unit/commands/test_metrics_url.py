"""The address of /metrics from what people give, and what a server may answer there."""

import os
import time

import pytest
from canned_server import canned

from runners.__main__ import parse
from runners.commands import metrics_url, read_log
from runners.core.errors import UserError


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("http://box:8000", "http://box:8000/metrics"),
        ("http://box:8000/", "http://box:8000/metrics"),
        ("http://box:8000/v1", "http://box:8000/metrics"),
        ("http://box:8000/v1/", "http://box:8000/metrics"),
        ("http://box:8000/metrics", "http://box:8000/metrics"),
        ("https://box/team/a/metrics", "https://box/team/a/metrics"),
    ],
)
def test_any_form_of_an_address(given, address):
    assert metrics_url.is_url(given) and metrics_url.address(given) == address


@pytest.mark.parametrize("given", ["box:8000", "http://", "ftp://box"])
def test_what_is_no_address_is_one_sentence(given):
    with pytest.raises(UserError, match="must"):
        metrics_url.address(given)


@pytest.mark.parametrize(
    ("status", "words"), [(401, "asks for a key"), (403, "asks for a key"), (404, "answers 404; give the address")]
)
def test_a_refusal_is_said_as_what_it_is(status, words):
    with canned({"/metrics": status}) as url, pytest.raises(UserError, match=words):
        metrics_url.source(url)


def test_nobody_there_is_one_sentence():
    with canned({}) as url:
        pass
    with pytest.raises(UserError, match="does not answer"):
        metrics_url.source(url)


def test_a_key_and_headers_are_sent(monkeypatch):
    monkeypatch.setenv("MY_KEY", "secret")
    args, _ = parse("watch", ["http://box", "--api-key-env", "MY_KEY", "--header", "X-Team: a: b"])
    headers = metrics_url.headers(args)
    assert headers["X-Team"] == "a: b"
    with canned({"/metrics": "vllm:x 1\n"}, key="secret", guarded="/") as url:
        source = metrics_url.source(url, headers)
    assert source.text() == "vllm:x 1\n" and source.at > 1.7e9


@pytest.mark.parametrize(
    ("words", "said"), [(["--header", "X"], "of the form"), (["--api-key-env", "NOT_SET_HERE"], "must hold the key")]
)
def test_bad_options_are_one_sentence(words, said):
    args, _ = parse("watch", ["http://box", *words])
    with pytest.raises(UserError, match=said):
        metrics_url.headers(args)


def test_a_password_in_an_address_is_used_and_not_shown():
    with canned({"/metrics?token=secret": "vllm:x 1\n"}) as url:
        source = metrics_url.source(url.replace("http://", "http://me:secret@") + "/metrics?token=secret")
    assert source.name == f"{url}/metrics" and source.text() == "vllm:x 1\n"


def test_read_takes_an_address_beside_a_saved_text(tmp_path, capsys):
    saved = tmp_path / "before.prom"
    saved.write_text("vllm:generation_tokens_total 100\nvllm:num_requests_running 1\n")
    os.utime(saved, (time.time() - 60, time.time() - 60))
    with canned({"/metrics": "vllm:generation_tokens_total 700\nvllm:num_requests_running 3\n"}) as url:
        args, _ = parse("read", [str(saved), url])
        assert read_log.main(args) == 0
    out = capsys.readouterr().out
    assert f"before.prom -> {url}/metrics" in out and "output tokens 600" in out
    assert "running 1 at the beginning, 3 at the end" in out and "output tokens/s" in out
