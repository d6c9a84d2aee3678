"""vLLM's OpenAI-compatible server, V1 engine; the CPU build in the lab, the CUDA build on a box.

The CPU build serves fp32 with --enforce-eager: compiled bf16 answered wrong text there while healthy.
Flags are those of vllm/entrypoints/openai/cli_args.py and vllm/engine/arg_utils.py, version 0.32.0.
"""

from typing import Any

from runners.core.errors import UserError
from runners.engines.command import Files
from runners.profiles.profile import Profile
from runners.profiles.schema import CHAINED, Configuration

HEALTH_PATH = "/health"
VERSION = ("/version", "version")  # where the running server tells its own
ENV = {"VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"}


def program() -> list[str]:
    # The `vllm` command of the CPU build fails ("No package metadata was found for vllm").
    return ["-m", "vllm.entrypoints.openai.api_server"]


def arguments(profile: Profile, c: Configuration, files: Files, host: str, port: int) -> dict[str, Any]:
    """Prefix caching is off, so that a repeated prompt costs what it costs."""
    if files.folder is None:
        raise UserError(
            f"vLLM serves a Hugging Face folder and target {profile.target.name} has none; set its `path` to one."
        )
    flags: dict[str, Any] = {
        "model": files.folder,
        "served-model-name": profile.target.name,
        "host": host,
        "port": port,
        "max-model-len": profile.target.context_length,
        "max-num-seqs": c.max_running_requests,
        "no-enable-prefix-caching": True,
    }
    if c.method in CHAINED:  # vLLM's own names for them
        drafter = {"method": c.method, "model": str(files.drafter_folder), "num_speculative_tokens": c.k}
        flags["speculative-config"] = drafter
    if c.method == "ngram":
        # The shortest and longest n-gram looked up (vllm/config/speculative.py); a configuration may override.
        flags["speculative-config"] = {
            "method": "ngram",
            "num_speculative_tokens": c.k,
            "prompt_lookup_max": 4,
            "prompt_lookup_min": 2,
        }
    if c.forced_accept_length is not None:
        # vllm/config/speculative.py; the CPU build dies of it at the first request.
        forced = {"rejection_sample_method": "synthetic", "synthetic_acceptance_length": c.forced_accept_length}
        flags["speculative-config"] |= forced
    return flags


PLACE_FIELD = None


def request_fields() -> dict[str, Any]:
    return {}
