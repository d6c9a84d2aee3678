"""SGLang's server, for the box. Flags are those of sglang/srt/server_args.py, release 0.5.9."""

from collections.abc import Iterator, Mapping
from typing import Any

from packaging.version import InvalidVersion, Version

from runners.core.errors import UserError
from runners.core.finding import Finding
from runners.engines import sglang_patch
from runners.engines.engine import Box, Engine, Flags, NewProfile, Parsing, ServerFacts, Serving, StandIn

ALGORITHM = "speculative-algorithm"
SPELLINGS = {"eagle": "EAGLE", "eagle3": "EAGLE3", "mtp": "NEXTN", "draft_model": "STANDALONE", "ngram": "NGRAM"}
# The release from which models/deepseek_v2.py adds one to layer ids only where the first id is 1.
ADDS_ONE_TO_ONE = Version("0.5.13")


def arguments(asked: Serving) -> Flags:
    """The radix cache is off: a prompt that comes again must cost as much as the first time."""
    if asked.files.folder is None:
        raise UserError(
            f"SGLang serves a Hugging Face folder and target {asked.target} has none; set its `path` to one."
        )
    flags: Flags = {
        "model-path": asked.files.folder,
        "served-model-name": asked.target,
        "host": asked.host,
        "port": asked.port,
        "context-length": asked.context_length,
        "max-running-requests": asked.max_running_requests,
        "disable-radix-cache": True,
        "enable-metrics": True,
    }
    if asked.method is not None:
        flags[ALGORITHM] = SPELLINGS.get(asked.method, asked.method.upper())
        if (drafter := asked.files.served_drafter("folder", "SGLang")) is not None:
            flags["speculative-draft-model-path"] = drafter
        if asked.k is not None:
            if asked.method != "ngram":
                # A chain: drafts = steps + 1. A tree is asked for by flags that take the place of these.
                flags |= {"speculative-num-steps": asked.k, "speculative-eagle-topk": 1}
            flags["speculative-num-draft-tokens"] = asked.k + 1
    return flags


def environment(asked: Serving) -> dict[str, str]:
    """Synthetic acceptance is asked for by a variable (sglang/srt/environ.py)."""
    forced = asked.forced_accept_length
    return {} if forced is None else {"SGLANG_SIMULATE_ACC_LEN": str(forced)}


def method_in(flags: Flags) -> str | None:
    named = flags.get(ALGORITHM) or flags.get("speculative-algo")
    return str(named) if named else None


def drafts_tree(method: str, k: int | None, flags: Flags) -> bool:
    """More than one candidate a draft position makes a tree. With neither K nor a flag SGLang chooses by the model's
    architecture, and for several a tree (auto_choose_speculative_params), so that no chain may be assumed.
    """
    if method == "ngram":
        return False
    candidates = flags.get("speculative-eagle-topk")
    if candidates is None:
        return k is None
    return str(candidates) != "1"


def boundaries(ids: list[int], version: str, model: str) -> list[int]:
    """Adds one in models/llama.py always; in models/deepseek_v2.py (Kimi) always up to 0.5.12 and from 0.5.13 only
    where the first id is 1 (`set_eagle3_layers_to_capture`; the book's audit table is read from the wheels).
    """
    return [i + 1 for i in ids] if _adds_one(ids, version, model) else list(ids)


def _adds_one(ids: list[int], version: str, model: str) -> bool:
    if model == "llama":
        return True
    try:
        later = Version(version) >= ADDS_ONE_TO_ONE
    except InvalidVersion as error:
        raise UserError(
            f"SGLang's rule for layer ids depends on its release, and '{version}' is no release number; "
            "set `version` in the profile to one such as 0.5.9."
        ) from error
    return bool(ids) and ids[0] == 1 if later else True


def check_installed(python: str | None, method: str) -> Iterator[Finding]:
    """Does Kimi-K2.5 have the three methods that EAGLE-3 asks for (sglang_patch)?"""
    if method != "eagle3":
        return
    try:
        state, sentence = sglang_patch.check(sglang_patch.find(python=python))
    except UserError as error:
        yield Finding("warning", str(error), "look at the installation")
        return
    level = {"needed": "blocker", "unknown": "warning"}.get(state, "note")
    yield Finding(level, sentence, f"python -m runners patch apply --python {python}")


def facts(answers: Mapping[str, Any]) -> ServerFacts:
    """/server_info (older releases: /get_server_info): the server's arguments, and what its schedulers hold to."""
    info = next((a for a in answers.values() if isinstance(a, dict)), {})
    states = [s for s in info.get("internal_states") or [] if isinstance(s, dict)]
    caps = [s["effective_max_running_requests_per_dp"] for s in states if "effective_max_running_requests_per_dp" in s]
    method, tokens = info.get("speculative_algorithm"), info.get("speculative_num_draft_tokens")
    chain = info.get("speculative_eagle_topk") in (None, 1)  # of a tree K is not the tokens less one
    return ServerFacts(
        version=info.get("version"),
        context_length=info.get("context_length"),
        max_running_requests=sum(caps) if caps else info.get("max_running_requests"),
        drafts=method is not None if "speculative_algorithm" in info else None,
        method=method,
        k=tokens - 1 if method and isinstance(tokens, int) and chain else None,
    )


def settings(box: Box) -> tuple[Flags, dict[str, str]] | None:
    """Of a new profile; its CPU build is not one that this house knows."""
    if not box.gpus:
        return None
    return ({"tp-size": box.gpus} if box.gpus > 1 else {}), {}


ENGINE = Engine(
    name="sglang",
    title="SGLang",
    packages=("sglang",),
    program=("-m", "sglang.launch_server"),
    serves="folder",
    arguments=arguments,
    version_at=("/server_info", "version"),
    facts_at=("/server_info", "/get_server_info"),
    facts=facts,
    # By default /health generates a token and would disturb what is measured (entrypoints/http_server.py).
    env={"SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION": "0", "HF_HUB_OFFLINE": "1"},
    environment=environment,
    spellings=SPELLINGS,
    drafting_flags=frozenset({ALGORITHM, "speculative-algo"}),
    method_in=method_in,
    drafts_tree=drafts_tree,
    ignores_case=True,
    # /metrics holds the accept length of the last interval and no counts, and its gauge of running requests is
    # refreshed only when it schedules.
    counters_in_metrics=False,
    boundaries=boundaries,
    parsing=Parsing("parse_sglang", "wheel"),
    check_installed=check_installed,
    longer_context_variable="SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN",
    new_profile=NewProfile(settings, ngram_k=7),
    # A rehearsal's answers are short: at the default of 40 passes a line it would print none.
    stand_in=StandIn("sglang", {"decode-log-interval": 2}),
)
