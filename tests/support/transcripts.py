"""The guide's transcripts: what is typed in each, on which files, and what may differ when it is typed again.

    PYTHONPATH=. .venv/bin/python tests/support/transcripts.py [NAME ...]     writes them to book/transcripts

Their files are in book/transcripts/inputs; the models are made-up ones of a few numbers. The two servers are stand-ins
whose times are known: a plain step takes 20 ms, a step with drafts 25 ms, and it yields 2 tokens on average.
"""

import contextlib
import io
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import httpx
import small_models
from slowness import wait_for

from runners.__main__ import main
from runners.core import paths
from runners.serve import ports

FOLDER = paths.ROOT / "book" / "transcripts"
INPUTS = FOLDER / "inputs"
MOCK = Path(__file__).with_name("mock_engine.py")
HOST = "127.0.0.1"
# By the port that the guide shows: any free one is used.
SERVERS = {"8001": ["--step-s", "0.02"], "8002": ["--step-s", "0.025", "--yields", "3,2,1,2"]}
BASE, SPEC = (f"http://{HOST}:{port}" for port in SERVERS)
# Lines that say how this run went and not what the answer is.
CHANCE = re.compile(r": void: |^  left out: |points are decided$|points? stays? open|^asked for ")
FIGURE = re.compile(r"\d+(?:[.,:]\d+)*")


class Transcript(NamedTuple):
    """words: behind `specverdict`. timed: its figures are measured. busy: the servers have requests meanwhile.
    after: the one whose runs it reads.
    """

    words: str
    timed: bool = False
    busy: bool = False
    after: str | None = None


TRANSCRIPTS = {
    "read": Transcript("read before.prom after.prom server.log --seconds 60 --r 1.6"),
    "diagnose": Transcript("diagnose --target target --drafter bare-head --log bare-head.log --no-replay"),
    "plan": Transcript("plan --profile my-box.yaml"),
    "ask": Transcript(
        f"ask --base {BASE}/v1 --spec {SPEC}/v1 --prompts chat -C 1,4 --minutes 2 --keep my-servers", timed=True
    ),
    "verdict": Transcript("verdict --profile my-servers", timed=True, after="ask"),
    "ask-prompts": Transcript(
        f"ask --base {BASE} --spec {SPEC} --prompts questions.csv#question --output-tokens 64 -C 2 --minutes 0.5",
        timed=True,
    ),
    "watch": Transcript(f"watch {SPEC} --every 1 --count 3 --r 1.25", timed=True, busy=True),
}


class Box:
    """A machine of the guide: a folder with its files, profiles and runs of its own, and the servers once needed."""

    def __init__(self, folder: Path, running: ExitStack):
        self.folder, self._running = folder, running
        shutil.copytree(INPUTS, folder, dirs_exist_ok=True)
        for name in ("profiles", "runs"):
            (folder / name).mkdir()
        small_models.target(folder / "target")
        whole = small_models.head_tensors()
        small_models.head(folder / "bare-head", tensors={n: t for n, t in whole.items() if n != "lm_head.weight"})
        self._ports: dict[str, int] = {}  # by the port that the guide shows
        self._typed: dict[str, str] = {}

    def transcript(self, name: str) -> str:
        """The command as it is typed, and what it prints on both streams. Each is typed once: what one keeps is there
        for the next.
        """
        one = TRANSCRIPTS[name]
        if one.after is not None:
            self.transcript(one.after)
        if name not in self._typed:
            self._typed[name] = self._type(one)
        return self._typed[name]

    def _type(self, one: Transcript) -> str:
        typed = one.words
        for shown, port in (self._servers() if one.timed else {}).items():
            typed = typed.replace(f"{HOST}:{shown}", f"{HOST}:{port}")
        printed = io.StringIO()
        with ExitStack() as during:
            during.enter_context(contextlib.chdir(self.folder))
            during.enter_context(mock.patch.object(paths, "PROFILES", self.folder / "profiles"))
            during.enter_context(mock.patch.object(paths, "LOCAL_RUNS", self.folder / "runs"))
            if one.busy:
                during.enter_context(requests_in_flight(f"http://{HOST}:{self._ports['8002']}"))
            during.enter_context(contextlib.redirect_stdout(printed))
            during.enter_context(contextlib.redirect_stderr(printed))
            code = main(shlex.split(typed))
        text = printed.getvalue()
        assert code == 0, text
        for shown, port in self._ports.items():
            text = text.replace(f"{HOST}:{port}", f"{HOST}:{shown}")
        return f"$ specverdict {one.words}\n{text}"

    def _servers(self) -> dict[str, int]:
        for shown, flags in SERVERS.items():
            if shown not in self._ports:
                port = self._ports[shown] = ports.free_port()
                command = [sys.executable, str(MOCK), "--port", str(port), "--ttft-s", "0.1", *flags]
                child = subprocess.Popen(command)
                self._running.callback(child.wait)
                self._running.callback(child.kill)
                assert wait_for(lambda url=f"http://{HOST}:{port}": _answers(url))
        return self._ports


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


@contextlib.contextmanager
def requests_in_flight(url: str, count: int = 2) -> Iterator[None]:
    """So many streams, from their first tokens on until the end."""
    ended, begun = threading.Event(), threading.Semaphore(0)
    body = {"messages": [{"role": "user", "content": "Count."}], "max_tokens": 100_000}

    def ask() -> None:
        with httpx.stream("POST", f"{url}/v1/chat/completions", json=body, timeout=60, trust_env=False) as answer:
            for number, _ in enumerate(answer.iter_lines()):
                if number == 10:
                    begun.release()
                if ended.is_set():
                    return

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        assert all(begun.acquire(timeout=60) for _ in threads)
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join(timeout=60)


def kept(name: str) -> str:
    """The transcript that the guide shows."""
    return (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


def masked(text: str) -> str:
    """What measuring again does not change: the words, without figures and without lines of chance."""
    lines = [FIGURE.sub("#", line) for line in text.splitlines() if not CHANCE.search(line)]
    lines = [re.sub(r"\b(block|minute)s\b", r"\1", line) for line in lines]
    return "\n".join(re.sub(r" {2,}", "  ", re.sub(r"-{2,}", "--", line)).rstrip() for line in lines)


def write(names: list[str]) -> None:
    """Type these again and write what they print."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as running:
        box = Box(Path(folder), running)
        for name in names:
            began = time.monotonic()
            (FOLDER / f"{name}.txt").write_text(box.transcript(name), encoding="utf-8")
            print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    write(sys.argv[1:] or list(TRANSCRIPTS))
