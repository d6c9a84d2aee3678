"""Planted secrets over whole runs: in flags, variables and headers, repeated by engine and server; found nowhere."""

import json
import sys
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pandas as pd
import pytest
import yaml
from slowness import WAIT_S

from runners.__main__ import main
from runners.core import paths, progress, secrets
from runners.measure import campaign, gates, server_pool
from runners.measure.ledger import Ledger
from runners.profiles.load import load
from runners.report import execute
from runners.report.execute import Page

pytestmark = pytest.mark.slow  # starts servers and a kernel

FAKE = Path(__file__).parents[1] / "support" / "fake_server.py"
MARK = "planted-"  # of every secret here
# An engine that prints its command line and its environment, and one that dies of its key.
ECHO = """
import os, runpy, sys
sys.argv = sys.argv[1:]
print("non-default args:", sys.argv, dict(os.environ), flush=True)
if "--refuse" in sys.argv:
    print("ValueError: no such key: " + sys.argv[sys.argv.index("--api-key") + 1], flush=True)
    sys.exit(1)
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """Everything that is written lies in tmp_path; the profile alone, which holds the secrets, in its folder `own`."""
    monkeypatch.setattr(secrets, "_learnt", {})
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    monkeypatch.setattr(server_pool, "BUILD", tmp_path / "build")
    monkeypatch.setattr(gates, "HEADROOM", 1)
    monkeypatch.setattr(sys, "stdout", sys.stdout)  # `main` guards them
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    monkeypatch.setenv("HF_TOKEN", f"{MARK}of-this-process")
    monkeypatch.setenv(progress.VARIABLE, str(tmp_path / "events.jsonl"))
    (tmp_path / "own").mkdir()
    return tmp_path


def written(tmp_path, configurations, **more):
    """The profile's file."""
    content = {
        "name": "fake",
        "title": "a stand-in",
        "hardware": {"description": "any", "servers_at_once": 2},
        "target": {
            **{"name": "toy", "precision": "none", "layers": 1, "hidden_size": 1, "vocab_size": 1},
            **{"context_length": 64, "bytes_on_disk": 1, "path": str(tmp_path)},
        },
        "drafters": {"toy": {"path": str(tmp_path)}},
        "engines": {
            "vllm": {
                "version": "0",
                "command": [sys.executable, "-c", ECHO, str(FAKE)],
                "env": {"WANDBAPIKEY": f"{MARK}variable", "PROXY": f"http://me:{MARK}password@proxy:1"},
            }
        },
        "configurations": configurations,
        "workload": {
            **{"prompt_sets": ["chat"], "output_tokens": 24, "concurrencies": [1], "default_preset": "quick"},
            "presets": {"quick": {"repeats": {1: 1}, "requests": {1: 2}, "rounds": 1}},
        },
        "budgets": {"vllm": {"default": WAIT_S}},
        "request_timeout_seconds": WAIT_S,
        "gates": {"check_neighbours": False, "distinct_bigram_floor": 0.1},
    } | more
    file = tmp_path / "own" / "fake.yaml"
    file.write_text(yaml.safe_dump(content))
    return file


def configuration(title, **more):
    return {"engine": "vllm", "title": title, "max_running_requests": 4} | more


def contents(tmp_path):
    """(where, bytes) of all that was written, packed and compressed files unpacked."""
    for file in sorted(p for p in tmp_path.rglob("*") if p.is_file() and "own" not in p.parts):
        yield file.relative_to(tmp_path), file.read_bytes()
        if file.suffix == ".parquet":
            yield file.relative_to(tmp_path), pd.read_parquet(file).to_csv().encode()
        if file.name.endswith(".tar.gz"):
            with tarfile.open(file) as packed:
                for member in packed.getmembers():
                    yield f"{file.name}: {member.name}", packed.extractfile(member).read()


def found_in(tmp_path):
    return [str(where) for where, content in contents(tmp_path) if MARK.encode() in content]


def test_a_secret_of_an_engine_is_found_nowhere(tmp_path, capfd):
    flags = {"token-s": 0.03, "api-key": f"{MARK}flag", "more-config": {"hf_token": f'{MARK}in-"json"'}}
    file = written(
        tmp_path,
        {
            "base": configuration("base", flags=flags),
            "drafting": configuration("drafting", flags=flags, method="eagle3", k=3, drafter="toy"),
            "refusing": configuration("refusing", flags=flags | {"refuse": True}, method="ngram", k=2),
        },
    )
    runs = tmp_path / "runs"
    profile = load(str(file))
    done = campaign.run(profile, None, runs, lambda: ([], 0))
    assert done.finished
    assert main(["plan", "--profile", str(file), "--runs", str(runs)]) == 0
    assert main(["share", "--profile", str(file), "--runs", str(runs), "--out", str(tmp_path / "a.tar.gz")]) == 0
    given = {"profile": str(file), "runs": str(runs)}
    pages = [Page("run_configuration", f"run_{name}", given | {"configuration": name}) for name in ("base", "refusing")]
    execute.execute([*pages, Page("comparison", "comparison", given)], runs / "fake" / "notebooks")
    # What hides nothing proves nothing: the secrets were all printed, and what stands beside them is there.
    log = (runs / "fake" / "base" / "server.log").read_text()
    assert "WANDBAPIKEY" in log and log.count(secrets.NOT_SHOWN) >= 3
    raw = [p.read_text() for p in (tmp_path / "build" / "logs" / "fake").glob("*.log")]
    assert len(raw) >= 3 and all("non-default args" in text and secrets.NOT_SHOWN in text for text in raw)
    status = json.loads((runs / "fake" / "refusing" / "status.json").read_text())
    assert "no such key: (not shown)" in status["reason"]
    shown = capfd.readouterr()
    assert "--api-key" in shown.out and MARK not in shown.out + shown.err
    assert found_in(tmp_path) == []


class Echo(BaseHTTPRequestHandler):
    """Healthy, and refuses each request with all its headers in the answer."""

    def log_message(self, *_):
        pass

    def answer(self, status, text):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_GET(self):
        status = {"/health": 200, "/v1/models": 200}.get(self.path, 404)
        self.answer(status, json.dumps({"data": [{"id": "toy"}]}) if status == 200 else "no")

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(500, "x" * 280 + f" {dict(self.headers)}")  # some are cut within by whoever quotes 300 characters


@pytest.fixture
def server():
    running = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{running.server_port}"
    running.shutdown()
    running.server_close()
    thread.join()


def test_a_secret_that_a_server_repeats_is_found_nowhere(tmp_path, monkeypatch, capfd, server):
    monkeypatch.setenv("NO_NAME_OF_A_SECRET", f"{MARK}in-a-variable")
    attach = {"url": server, "headers": {"X-Key": f"{MARK}header", "X-Id": "id ${NO_NAME_OF_A_SECRET}"}}
    sides = {
        "base": configuration("base", attach=attach | {"api_key_env": "HF_TOKEN"}),
        "drafting": configuration("drafting", attach=attach, method="eagle3", k=3),
    }
    file = written(tmp_path, sides, drafters={})
    profile, runs = load(str(file)), tmp_path / "runs"
    campaign.run(profile, None, runs, lambda: ([], 0))
    reasons = [r for row in Ledger(runs / "fake" / "base").rows() for r in row["reasons"]]
    assert any("HTTP 500" in reason for reason in reasons), reasons
    assert main(["plan", "--profile", str(file), "--runs", str(runs)]) == 0
    assert main(["share", "--profile", str(file), "--runs", str(runs), "--out", str(tmp_path / "a.tar.gz")]) == 0
    shown = capfd.readouterr()
    assert MARK not in shown.out + shown.err and found_in(tmp_path) == []
