"""What an engine is and can do: one `Engine` a module of this package, named `ENGINE` there.

The rest of the house asks these fields and never for an engine's name. An engine knows nothing of profiles: it gets a
`Serving`, which is what one configuration asks of it.
"""

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import httpx

from runners.core.errors import UserError
from runners.core.finding import Finding

Flags = dict[str, Any]  # an engine's own flags without the dashes, in the order of the command line
Form = Literal["gguf", "folder"]  # a GGUF file, or a Hugging Face folder
Message = dict[str, str]  # {"role", "content"}


@dataclass(frozen=True)
class Files:
    """Paths an engine may serve from; None where this machine has no such form."""

    gguf: Path | None = None
    folder: Path | None = None
    drafter_gguf: Path | None = None
    drafter_folder: Path | None = None

    def target(self, form: Form) -> Path | None:
        return self.gguf if form == "gguf" else self.folder

    def drafter(self, form: Form) -> Path | None:
        return self.drafter_gguf if form == "gguf" else self.drafter_folder

    def served_drafter(self, form: Form, title: str) -> Path | None:
        """The drafter as the engine of that title serves it; None where none is named.

        UserError where only its other form is there: without it the engine would serve and draft nothing.
        """
        other = self.drafter("folder" if form == "gguf" else "gguf")
        if self.drafter(form) is None and other is not None:
            has, needs, how = (
                ("a Hugging Face folder", "a GGUF file", "convert it (convert_hf_to_gguf.py of llama.cpp)")
                if form == "gguf"
                else ("a GGUF file", "a Hugging Face folder", "take the folder that it was made from")
            )
            raise UserError(f"{title} takes a drafter as {needs} and {other.name} is {has}; {how} and set its `path`.")
        return self.drafter(form)

    def required_folder(self) -> Path:
        """The target's Hugging Face folder, for what cannot be done without one."""
        if self.folder is None:
            raise UserError("The target must have a Hugging Face folder; give its `path`, or set `dequantised: true`.")
        return self.folder

    def required_drafter_folder(self) -> Path:
        """The drafter's Hugging Face folder, for what cannot be done without one."""
        if self.drafter_folder is None:
            raise UserError("The drafter must be a Hugging Face folder, and a GGUF file is none; give its `path`.")
        return self.drafter_folder


@dataclass(frozen=True)
class Serving:
    """What one configuration asks of an engine; `method` and `k` are None where it does not draft or gives none."""

    target: str  # the model's name in requests
    context_length: int  # tokens of one request
    max_running_requests: int
    files: Files
    host: str
    port: int
    method: str | None = None  # the house's word (`Engine.spellings`), or the engine's own
    k: int | None = None
    forced_accept_length: float | None = None


# (client, model, messages, output tokens) -> token ids of the prompt, as the chat template makes it, and of the answer
AskTokens = Callable[[httpx.AsyncClient, str, list[Message], int], Awaitable[tuple[list[int], list[int]]]]


@dataclass(frozen=True)
class Parsing:
    """How the engine's own parser checks a command line without a GPU (commands/preflight/command_line.py).

    script: runners/scripts/<script>.py. source: "python" runs it with the engine's own interpreter; "wheel" runs it
    with ours on the source of an installed package, or of the release's wheel; "starter" runs it with ours on our own
    program that starts the engine.
    """

    script: str
    source: Literal["python", "wheel", "starter"]


@dataclass(frozen=True)
class Box:
    """A machine that a profile is written for. cache_gib: of the KV cache that its workload needs, on a CPU."""

    gpus: int
    cores: int
    cache_gib: int


@dataclass(frozen=True)
class NewProfile:
    """What `specverdict new-profile` writes for this engine.

    settings: the flags and variables that it is known to need on a box; None where it is not offered on such a one.
    most_at_once: requests, where memory is taken for all of them at its start.
    """

    settings: Callable[[Box], tuple[Flags, dict[str, str]] | None]
    ngram_k: int
    ngram_flags: Mapping[str, Any] = field(default_factory=dict)
    most_at_once: int | None = None


@dataclass(frozen=True)
class StandIn:
    """How runners/standins/engine.py plays this engine in a rehearsal: its kind there, and flags added."""

    kind: str
    flags: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ServerFacts:
    """What a running server says of itself; None where it does not.

    drafts: whether it speculates; method, K: how, in the engine's own word.
    """

    version: str | None = None
    context_length: int | None = None  # tokens of one request
    max_running_requests: int | None = None
    drafts: bool | None = None
    method: str | None = None
    k: int | None = None


def _no_environment(_: Serving) -> dict[str, str]:
    return {}


def _no_method_in(_: Flags) -> str | None:
    return None


def _no_facts(_: Mapping[str, Any]) -> ServerFacts:
    return ServerFacts()


def _never_a_tree(_method: str, _k: int | None, _flags: Flags) -> bool:
    return False


def _nothing_to_check(_python: str | None, _method: str) -> Iterator[Finding]:
    return iter(())


@dataclass(frozen=True, kw_only=True)
class Engine:
    """An engine. Only the first block must be given; each default is what most engines do."""

    name: str  # in profiles; also the names of its reader and of its pinned list
    title: str  # in prose
    packages: tuple[str, ...]  # whose metadata gives the installed version, the first that is there
    program: tuple[str, ...]  # words between the interpreter and the flags
    serves: Form
    arguments: Callable[[Serving], Flags]  # UserError when the target has not the form that it serves

    # Starting and asking
    health_path: str = "/health"
    version_at: tuple[str, str] = ("/version", "version")  # path and key of the running server's own version
    facts_at: tuple[str, ...] = ()  # paths at which the running server tells more of itself, in JSON
    facts: Callable[[Mapping[str, Any]], ServerFacts] = _no_facts  # from the answers that came, by path
    env: Mapping[str, str] = field(default_factory=dict)
    environment: Callable[[Serving], dict[str, str]] = _no_environment  # added to `env`, by what is asked
    request_fields: Mapping[str, Any] = field(default_factory=dict)
    slot_field: str | None = None  # the request field that names a slot; None: no slots
    ask_tokens: AskTokens | None = None  # None: it gives no token ids, so replay cannot use it
    start_seconds: float = 60  # about; the faster engine of two is measured first

    # Drafting
    spellings: Mapping[str, str] = field(default_factory=dict)  # the house's word for a method -> the engine's
    drafting_flags: frozenset[str] = frozenset()  # any of these set: it drafts, whatever `method` says
    method_in: Callable[[Flags], str | None] = _no_method_in  # the method that flags alone ask for, engine's word
    drafts_tree: Callable[[str, int | None, Flags], bool] = _never_a_tree  # method, K, the profile's flags
    needs_k: frozenset[str] = frozenset()  # methods for which it has no K of its own
    ignores_case: bool = False  # of a method's name
    merged_flags: frozenset[str] = frozenset()  # flags that hold JSON: a profile's mapping merges into ours

    # Counting
    counters_in_metrics: bool = True  # False: its reader estimates a cell's counts from the log (counts_from_log)
    counts_cut_off: bool = False  # its counters include accepted tokens that the output limit then cuts off
    stops_at_drafter_limit: bool = False  # drafts nothing beyond the drafter's max_position_embeddings

    # Hidden states (drafter/)
    capture_script: str | None = None  # runners/scripts/<it>.py, run in the environment of this engine's name
    rounds_activations: bool = False  # its states differ from the reference's by more than fp32's rounding
    boundaries: Callable[[list[int], str, str], list[int]] | None = None  # of layer ids; None: equal
    host_sampling_flag: str | None = None  # samples draft tokens on the host and not in the graph

    # Checking a box
    parsing: Parsing | None = None
    check_installed: Callable[[str | None, str], Iterator[Finding]] = _nothing_to_check  # python, method
    longer_context_variable: str | None = None  # must be 1 where the drafter's context is shorter than the target's
    new_profile: NewProfile | None = None  # None: not offered there
    stand_in: StandIn | None = None  # None: no rehearsal

    def required_capture_script(self) -> str:
        """The script that captures its hidden states; UserError where there is none."""
        if self.capture_script is None:
            raise UserError(f"The hidden states of {self.title} cannot be captured here; no script does it.")
        return self.capture_script

    def drafts_by(self, flags: Flags) -> bool:
        """Whether these flags alone make it draft."""
        given = self.spelled(flags)
        return any(given.get(name) not in (None, False, "", "none", {}) for name in self.drafting_flags)

    def spelled(self, flags: Flags) -> Flags:
        """The flags with those that draft or hold JSON under the names of `arguments`: engines take `_` for `-` too,
        and for a mapping's key a flag of its own (`speculative-config.method`).
        """
        found: Flags = {}
        for name, value in flags.items():
            head, dot, rest = name.partition(".")
            head = head.replace("_", "-")
            if dot and head in self.merged_flags:
                for key in reversed(rest.split(".")):
                    value = {key: value}
                found[head] = merge(found.get(head), value)
            elif head in self.drafting_flags | self.merged_flags and not dot:
                found[head] = merge(found.get(head), value)
            else:
                found[name] = value
        return found

    def merged(self, ours: Flags, theirs: Flags) -> Flags:
        """`theirs` over `ours`; a flag that holds JSON is merged into ours key by key, any other one replaces it."""
        theirs = self.spelled(theirs)
        json_flags = {name: merge(ours.get(name), theirs[name]) for name in self.merged_flags if name in theirs}
        return ours | theirs | json_flags

    def known_as(self, method: str) -> str:
        """The house's word for a method written as this engine writes it; an unknown one as it is."""
        same = str.lower if self.ignores_case else str
        words = {same(theirs): ours for ours, theirs in self.spellings.items()}
        ours = {same(word): word for word in self.spellings}
        return words.get(same(method)) or ours.get(same(method)) or same(method)


def merge(ours: Any, theirs: Any) -> Any:
    """Deep merge of two mappings (or the texts of their JSON), theirs over ours; anything but two mappings: theirs.

    >>> merge({"method": "ngram", "prompt_lookup_max": 4}, {"prompt_lookup_max": 8})
    {'method': 'ngram', 'prompt_lookup_max': 8}
    """
    mine, yours = _from_json(ours), _from_json(theirs)
    if not isinstance(mine, dict) or not isinstance(yours, dict):
        return theirs  # where it is no JSON, the engine's own parser says what is wrong with it
    return mine | {name: merge(mine.get(name), value) for name, value in yours.items()}


def _from_json(value: Any) -> Any:
    """A flag's value as one would write it on the command line, read; anything else as it is."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value
