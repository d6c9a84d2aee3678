"""vLLM's OpenAI-compatible server, V1 engine; the CPU build in the lab, the CUDA build on a box.

The CPU build serves fp32 with --enforce-eager: compiled and in bf16 it gave wrong text, and looked healthy.
Flags are those of vllm/entrypoints/openai/cli_args.py and vllm/engine/arg_utils.py, version 0.32.0.
"""

import json
from typing import Any

import httpx

from runners.core.errors import UserError
from runners.engines.engine import Box, Engine, Flags, Message, NewProfile, Parsing, Serving, StandIn
from runners.engines.http import post

SPECULATION = "speculative-config"


def arguments(asked: Serving) -> Flags:
    """Prefix caching is off: a prompt that comes again must cost as much as the first time."""
    if asked.files.folder is None:
        raise UserError(f"vLLM serves a Hugging Face folder and target {asked.target} has none; set its `path` to one.")
    flags: Flags = {
        "model": asked.files.folder,
        "served-model-name": asked.target,
        "host": asked.host,
        "port": asked.port,
        "max-model-len": asked.context_length,
        "max-num-seqs": asked.max_running_requests,
        "no-enable-prefix-caching": True,
    }
    if asked.method is not None:
        flags[SPECULATION] = _speculation(asked, asked.method)
    return flags


def _speculation(asked: Serving, method: str) -> dict[str, Any]:
    """The mapping of vllm/config/speculative.py, under its own keys; methods have vLLM's own names there."""
    drafts: dict[str, Any] = {"method": method}
    if (drafter := asked.files.served_drafter("folder", "vLLM")) is not None:
        drafts["model"] = str(drafter)
    if asked.k is not None:
        drafts["num_speculative_tokens"] = asked.k
    if method == "ngram":
        # The shortest and longest n-gram looked up; a configuration's flags may say otherwise.
        drafts |= {"prompt_lookup_max": 4, "prompt_lookup_min": 2}
    if asked.forced_accept_length is not None:
        # The CPU build dies of it at the first request.
        drafts["rejection_sample_method"] = "synthetic"
        drafts["synthetic_acceptance_length"] = asked.forced_accept_length
    return drafts


def method_in(flags: Flags) -> str | None:
    drafts = flags.get(SPECULATION)
    if isinstance(drafts, str):  # written as JSON in the profile
        try:
            drafts = json.loads(drafts)
        except ValueError:
            return None  # vLLM's own parser will say so
    named = flags.get("spec-method") or (drafts.get("method") if isinstance(drafts, dict) else None)
    return str(named) if named else None


async def ask_tokens(
    client: httpx.AsyncClient, model: str, messages: list[Message], output_tokens: int
) -> tuple[list[int], list[int]]:
    """Greedy, end of text ignored (engine.AskTokens)."""
    asked = {"model": model, "messages": messages, "add_generation_prompt": True}
    ids = (await post(client, "/tokenize", asked))["tokens"]
    body = {
        "model": model,
        "prompt": ids,
        "max_tokens": output_tokens,
        "temperature": 0,
        "ignore_eos": True,
        "return_token_ids": True,
    }
    got = await post(client, "/v1/completions", body)
    return ids, got["choices"][0]["token_ids"]


def settings(box: Box) -> tuple[Flags, dict[str, str]]:
    """Of a new profile. On a CPU: fp32 and eager (see above), room for the KV cache, and no core left unused."""
    if box.gpus:
        return ({"tensor-parallel-size": box.gpus} if box.gpus > 1 else {}), {}
    variables = {"VLLM_CPU_KVCACHE_SPACE": str(box.cache_gib), "VLLM_CPU_NUM_OF_RESERVED_CPU": "0"}
    return {"dtype": "float32", "enforce-eager": True}, variables


ENGINE = Engine(
    name="vllm",
    title="vLLM",
    packages=("vllm", "vllm-cpu"),
    # The `vllm` command of the CPU build fails ("No package metadata was found for vllm").
    program=("-m", "vllm.entrypoints.openai.api_server"),
    serves="folder",
    arguments=arguments,
    env={"VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"},
    # A chunk may hold several accepted tokens: its running count says how many (entrypoints/openai, StreamOptions).
    request_fields={"stream_options": {"include_usage": True, "continuous_usage_stats": True}},
    ask_tokens=ask_tokens,
    drafting_flags=frozenset({SPECULATION, "spec-method", "spec-model"}),
    method_in=method_in,
    needs_k=frozenset({"ngram", "eagle", "eagle3", "draft_model"}),
    merged_flags=frozenset({SPECULATION}),
    # v1/core/sched/scheduler.py: update_from_output takes its statistics before check_stop.
    counts_cut_off=True,
    stops_at_drafter_limit=True,  # effective_drafter_max_model_len in gpu_model_runner.py
    capture_script="capture_vllm",
    parsing=Parsing("parse_vllm", "python"),
    new_profile=NewProfile(settings, ngram_k=5),
    stand_in=StandIn("vllm"),
)
