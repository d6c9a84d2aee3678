"""llama.cpp's native server from the xllamacpp wheel (runners/scripts/llamacpp_server.py).

Its INT4 kernels serve the GGUF file as it is. With `ignore_eos` it cannot choose the end-of-text tokens (their logit
bias is minus infinity), where vLLM and SGLang choose them and go on: answers differ from where a text would end.
"""

from collections.abc import Mapping
from typing import Any

import httpx

from runners.core.errors import UserError
from runners.core.paths import SCRIPTS
from runners.engines.engine import Box, Engine, Flags, Message, NewProfile, Parsing, ServerFacts, Serving
from runners.engines.http import post

SPELLINGS = {
    "ngram": "ngram-simple",
    "eagle3": "draft-eagle3",
    "draft_model": "draft-simple",
    "mtp": "draft-mtp",
    "dflash": "draft-dflash",
}


def arguments(asked: Serving) -> Flags:
    """Flags under llama-server's own names. Its context is the sum over all slots, hence the product."""
    if asked.files.gguf is None:
        raise UserError(f"llama.cpp serves a GGUF file and target {asked.target} is none; set its `path` to one.")
    flags: Flags = {
        "model": asked.files.gguf,
        "alias": asked.target,
        "host": asked.host,
        "port": asked.port,
        "parallel": asked.max_running_requests,
        "ctx-size": asked.max_running_requests * asked.context_length,
    }
    if asked.method is not None:
        kind = SPELLINGS.get(asked.method, asked.method)
        flags["spec-type"] = kind
        if kind.startswith("draft-"):
            flags |= _by_a_model(asked)
    if asked.forced_accept_length is not None:
        flags["spec-synth-len"] = asked.forced_accept_length
    if asked.method is not None and asked.k is not None and not flags["spec-type"].startswith("draft-"):
        flags[_length_flag(flags["spec-type"])] = asked.k
    return flags


def _by_a_model(asked: Serving) -> Flags:
    flags: Flags = {}
    if (drafter := asked.files.served_drafter("gguf", "llama.cpp")) is not None:
        flags["spec-draft-model"] = drafter
    if asked.k is not None:
        flags["spec-draft-n-max"] = asked.k
    # By default draft tokens are sampled in the compute graph, and this build then mixes up the slots: a drafter of
    # accept length 1.39 at C=1 had 1.11 at C=4 and 1.05 at C=16. Sampled on the host it had 1.38 and 1.37.
    return flags | {"no-spec-draft-backend-sampling": True}


def _length_flag(kind: str) -> str:
    """The flag that holds K of a method that looks tokens up; each of them has flags of its own."""
    if kind != "ngram-simple":
        raise UserError(f"llama.cpp takes no `k` for {kind}; leave `k` out and write its own flags into `flags`.")
    return "spec-ngram-simple-size-m"


def method_in(flags: Flags) -> str | None:
    named = flags.get("spec-type")
    return str(named) if named else None


async def prompt_ids(client: httpx.AsyncClient, messages: list[Message]) -> list[int]:
    """Token ids of a conversation as llama.cpp's own chat template and tokenizer make them."""
    text = await post(client, "/apply-template", {"messages": messages})
    asked = {"content": text["prompt"], "add_special": False, "parse_special": True}
    ids: list[int] = (await post(client, "/tokenize", asked))["tokens"]
    return ids


async def ask_tokens(
    client: httpx.AsyncClient, model: str, messages: list[Message], output_tokens: int
) -> tuple[list[int], list[int]]:
    """Greedy, end of text ignored (engine.AskTokens)."""
    ids = await prompt_ids(client, messages)
    body = {
        "prompt": ids,
        "n_predict": output_tokens,
        "temperature": 0,
        "ignore_eos": True,
        "return_tokens": True,
        "cache_prompt": False,
    }
    return ids, (await post(client, "/completion", body))["tokens"]


def facts(answers: Mapping[str, Any]) -> ServerFacts:
    """/props: build_info, total_slots and, in default_generation_settings, n_ctx of one slot (older builds:
    `speculative` too).

    /slots: each slot says whether it can speculate (tools/server/server-context.cpp, server_slot::to_json).
    """
    props, slots = answers.get("/props"), answers.get("/slots")
    props = props if isinstance(props, dict) else {}
    slots = [s for s in slots if isinstance(s, dict)] if isinstance(slots, list) else []
    settings = props.get("default_generation_settings")
    settings = settings if isinstance(settings, dict) else {}
    said = [s["speculative"] for s in [*slots, settings] if isinstance(s.get("speculative"), bool)]
    return ServerFacts(
        version=props.get("build_info"),
        context_length=settings.get("n_ctx"),
        max_running_requests=props.get("total_slots") or len(slots) or None,
        drafts=any(said) if said else None,
    )


def settings(box: Box) -> tuple[Flags, dict[str, str]]:
    """Of a new profile: our starter wants the number of threads."""
    return {"threads": box.cores}, {}


ENGINE = Engine(
    name="llamacpp",
    title="llama.cpp",
    packages=("xllamacpp",),
    program=(str(SCRIPTS / "llamacpp_server.py"),),
    serves="gguf",
    arguments=arguments,
    version_at=("/props", "build_info"),
    facts_at=("/props", "/slots"),
    facts=facts,
    # Every prompt must be computed: with its cache a prompt that a slot had before would cost nothing.
    request_fields={"cache_prompt": False},
    # tools/server/server-context.cpp. Slots are handed out by least recent use, and requests whose slots do not lie
    # side by side are computed in as many batches as there are gaps between them: four at once decoded 99, 83 and 63
    # tokens/s in one, two and four groups. Which it was would depend on what ran before.
    slot_field="id_slot",
    ask_tokens=ask_tokens,
    start_seconds=3,
    spellings=SPELLINGS,
    drafting_flags=frozenset({"spec-type", "spec-draft-model", "model-draft", "hf-repo-draft"}),
    method_in=method_in,
    capture_script="capture_llamacpp",
    rounds_activations=True,  # its INT4 kernels round activations too
    host_sampling_flag="no-spec-draft-backend-sampling",
    parsing=Parsing("parse_llamacpp", "starter"),
    # Its context is the sum over all slots, and is in memory from the start.
    new_profile=NewProfile(settings, ngram_k=8, ngram_flags={"spec-ngram-simple-size-n": 4}, most_at_once=16),
)
