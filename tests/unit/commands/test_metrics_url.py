"""The address of /metrics from what people give, and what a server may answer there."""

import http.server
import threading
from contextlib import contextmanager

import pytest

from runners.__main__ import parse
from runners.commands import metrics_url
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


@contextmanager
def answering(reply):
    """A server whose answer is reply(path, headers) -> (status, text)."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            status, text = reply(self.path, self.headers)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize(
    ("status", "words"), [(401, "asks for a key"), (403, "asks for a key"), (404, "answers 404; give the address")]
)
def test_a_refusal_is_said_as_what_it_is(status, words):
    with answering(lambda *_: (status, "no")) as url, pytest.raises(UserError, match=words):
        metrics_url.source(url)


def test_nobody_there_is_one_sentence():
    with answering(lambda *_: (200, "")) as url:
        pass
    with pytest.raises(UserError, match="does not answer"):
        metrics_url.source(url)


def test_a_key_and_headers_are_sent(monkeypatch):
    monkeypatch.setenv("MY_KEY", "secret")
    args, _ = parse("watch", ["http://box", "--api-key-env", "MY_KEY", "--header", "X-Team: a: b"])
    seen = {}

    def reply(path, headers):
        seen.update(path=path, key=headers["Authorization"], team=headers["X-Team"])
        return 200, "vllm:x 1\n"

    with answering(reply) as url:
        source = metrics_url.source(url, metrics_url.headers(args))
    assert seen == {"path": "/metrics", "key": "Bearer secret", "team": "a: b"}
    assert source.text() == "vllm:x 1\n" and source.at > 1.7e9


@pytest.mark.parametrize(
    ("words", "said"), [(["--header", "X"], "of the form"), (["--api-key-env", "NOT_SET_HERE"], "must hold the key")]
)
def test_bad_options_are_one_sentence(words, said):
    args, _ = parse("watch", ["http://box", *words])
    with pytest.raises(UserError, match=said):
        metrics_url.headers(args)
