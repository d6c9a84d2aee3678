"""SGLang's server, for the box. Flags are those of sglang/srt/server_args.py, release 0.5.9."""

from typing import Any

from runners.core.errors import UserError
from runners.engines.command import Files
from runners.profiles.profile import Profile
from runners.profiles.schema import CHAINED, Configuration

HEALTH_PATH = "/health"
VERSION = ("/server_info", "version")  # where the running server tells its own
# By default /health generates a token and would disturb what is measured (entrypoints/http_server.py).
ENV = {"SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION": "0", "HF_HUB_OFFLINE": "1"}


def program() -> list[str]:
    return ["-m", "sglang.launch_server"]


def arguments(profile: Profile, c: Configuration, files: Files, host: str, port: int) -> dict[str, Any]:
    """The radix cache is off, so that a repeated prompt costs what it costs."""
    if files.folder is None:
        raise UserError(
            f"SGLang serves a Hugging Face folder and target {profile.target.name} has none; set its `path` to one."
        )
    flags: dict[str, Any] = {
        "model-path": files.folder,
        "served-model-name": profile.target.name,
        "host": host,
        "port": port,
        "context-length": profile.target.context_length,
        "max-running-requests": c.max_running_requests,
        "disable-radix-cache": True,
        "enable-metrics": True,
    }
    if c.method in CHAINED:
        flags |= {
            "speculative-algorithm": "EAGLE3" if c.method == "eagle3" else "STANDALONE",
            "speculative-draft-model-path": files.drafter_folder,
            "speculative-num-steps": c.k,
            "speculative-eagle-topk": 1,  # a chain: drafts = steps + 1
            "speculative-num-draft-tokens": (c.k or 0) + 1,
        }
    if c.method == "ngram":
        flags |= {"speculative-algorithm": "NGRAM", "speculative-num-draft-tokens": (c.k or 0) + 1}
    return flags


def environment(c: Configuration) -> dict[str, str]:
    """SGLang pretends an accept length by a variable (sglang/srt/environ.py)."""
    return {} if c.forced_accept_length is None else {"SGLANG_SIMULATE_ACC_LEN": str(c.forced_accept_length)}


PLACE_FIELD = None


def request_fields() -> dict[str, Any]:
    return {}
