"""A profile of one base and one speculative configuration on the stand-in program, as a YAML file."""

import sys
from pathlib import Path
from typing import Any

import yaml
from slowness import WAIT_S

FAKE = Path(__file__).with_name("fake_server.py")
SLOW = {"token-s": 0.03}  # slow enough for the gauge to be polled while requests run


def content(folder: Path, flags: dict[str, Any] | None = None) -> dict[str, Any]:
    """The profile as YAML holds it; `folder` stands for the model and the drafter, `flags` go to both servers."""
    flags = SLOW if flags is None else flags
    common = {"engine": "vllm", "max_running_requests": 4, "flags": flags}
    return {
        "name": "fake",
        "title": "a stand-in",
        "hardware": {"description": "any", "servers_at_once": 2},
        "target": {
            **{"name": "toy", "precision": "none", "layers": 1, "hidden_size": 1, "vocab_size": 1},
            **{"context_length": 64, "bytes_on_disk": 1, "path": str(folder)},
        },
        "drafters": {"toy": {"path": str(folder)}},
        "engines": {"vllm": {"version": "0", "command": [sys.executable, str(FAKE)]}},
        "configurations": {
            "base": {"title": "base", **common},
            "drafting": {"title": "drafting", "method": "eagle3", "k": 3, "drafter": "toy", **common},
            "ngram": {"title": "n-gram", "method": "ngram", "k": 3, **common},
        },
        "workload": {
            **{"prompt_sets": ["chat"], "output_tokens": 24, "concurrencies": [1], "default_preset": "quick"},
            "presets": {"quick": {"repeats": {1: 1}, "requests": {1: 2}, "rounds": 1}},
        },
        "budgets": {"vllm": {"default": WAIT_S}},
        "request_timeout_seconds": WAIT_S,
        # The stand-in's words repeat and a test machine is never quiet: those gates have their own tests.
        "gates": {"check_neighbours": False, "distinct_bigram_floor": 0.1},
    }


def write(folder: Path, content: dict[str, Any]) -> str:
    """Write it; the path, as `--profile` takes it."""
    file = folder / "fake.yaml"
    file.write_text(yaml.safe_dump(content))
    return str(file)
