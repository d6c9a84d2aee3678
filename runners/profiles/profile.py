"""A whole profile: its sections put together, and what must hold between them."""

import re
from typing import Any

from pydantic import Field, model_validator

from runners.core.errors import UserError
from runners.engines.registry import engine
from runners.profiles import methods, request_fields
from runners.profiles.attach import filled_in
from runners.profiles.gate_limits import Gates
from runners.profiles.hardware import Hardware
from runners.profiles.schema import (
    Configuration,
    Drafter,
    EngineName,
    EngineSpec,
    Preset,
    Target,
    Timing,
    Training,
    Workload,
)
from runners.profiles.strict import Positive, Strict
from runners.readers.registry import reader

NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
# Folders that stand beside those of the configurations in a profile's runs, and the page run_campaign.
RESERVED = ("alignment", "notebooks", "campaign")


class Profile(Strict):
    name: str = Field(pattern=f"^{NAME}$")  # of a folder too
    title: str
    simulated: bool = False  # a rehearsal against stand-in engines: marked everywhere, never published
    hardware: Hardware
    target: Target
    extends: str | None = None  # the profile this one's file was laid over
    drafters: dict[str, Drafter] = Field(default_factory=dict)
    engines: dict[EngineName, EngineSpec]
    configurations: dict[str, Configuration] = Field(min_length=1)
    workload: Workload
    budgets: dict[EngineName, dict[str, Positive]] = Field(default_factory=dict)
    stall_seconds: float = Field(default=60, gt=0)
    livelock_seconds: float = Field(default=900, gt=0)
    request_timeout_seconds: float = Field(default=300, gt=0)
    gates: Gates = Field(default_factory=Gates)
    timing: Timing = Field(default_factory=Timing)
    training: Training | None = None
    practical_margin: float = Field(default=0.03, ge=0, lt=1)  # a smaller difference than this counts as none

    @model_validator(mode="before")
    @classmethod
    def servers_that_run_already(cls, given: Any) -> Any:
        return filled_in(given)

    @model_validator(mode="after")
    def names_meet(self) -> "Profile":
        self._check_started()
        self._check_training()
        self._check_drafters()
        self._check_workload()
        self._check_mix()
        self._check_budgets()
        for name, chosen in self.configurations.items():
            self._check_configuration(name, chosen)
        self._check_bases()
        return self

    def _check_started(self) -> None:
        """What must be known of a server that we start, and need not be of one that stands alone."""
        started = list(dict.fromkeys(c.engine for c in self.configurations.values() if not c.stands_alone))
        if not started:
            return
        needed = ("precision", "layers", "hidden_size", "vocab_size", "context_length")
        missing = [key for key in needed if getattr(self.target, key) == Target.model_fields[key].default]
        missing += ["bytes_on_disk"] if "bytes_on_disk" not in self.target.model_fields_set else []
        if missing:
            raise ValueError(f"target: `{missing[0]}` is missing; only servers that run already (`attach`) need none")
        if self.target.path is None and self.target.package is None:
            raise ValueError("target: give exactly one of `path` and `package`")
        for kind in started:
            spec = self.engines.get(kind)
            if spec is None:
                continue  # _check_configuration names it
            if "version" not in spec.model_fields_set:
                raise ValueError(f"engines.{kind}: `version` is missing")
            if spec.environment is None and spec.python is None and spec.command is None:
                raise ValueError(f"engines.{kind}: give exactly one of `environment`, `python` and `command`")

    def _check_training(self) -> None:
        if self.training is None:
            return
        if max(self.training.boundaries) >= self.target.layers:
            raise ValueError(f"training: each boundary must be below the target's {self.target.layers} layers")
        if self.training.configuration not in self.configurations:
            raise ValueError(
                f"training: configuration `{self.training.configuration}` must be one of {sorted(self.configurations)}"
            )

    def _check_drafters(self) -> None:
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

    def _check_workload(self) -> None:
        for preset_name, preset in self.workload.presets.items():
            unknown = sorted(set(preset.leave_out) - set(self.configurations))
            if unknown:
                raise ValueError(f"preset `{preset_name}`: `leave_out` names `{unknown[0]}`, which is no configuration")
            if set(preset.leave_out) >= set(self.configurations):
                raise ValueError(f"preset `{preset_name}`: `leave_out` leaves no configuration to measure")
        tokens = [self.workload.output_tokens, *(p.output_tokens or 0 for p in self.workload.presets.values())]
        open_loop = self.workload.open_loop
        unknown = sorted(set(open_loop.leave_out) - set(self.configurations)) if open_loop else []
        if unknown:
            raise ValueError(f"`open_loop`: `leave_out` names `{unknown[0]}`, which is no configuration")
        longest = self.target.context_length - max(tokens)
        for prompt_set in self.workload.prompt_sets:
            context = prompt_set.partition("@")[2]
            unfit = longest <= 0 or (context.isdigit() and int(context) >= longest)
            if self.target.context_length and unfit:
                raise ValueError(
                    f"prompt set `{prompt_set}` and {max(tokens)} output tokens do not fit into "
                    f"`context_length: {self.target.context_length}`"
                )
        early = request_fields.ends_early(self.workload.body)
        if early and self.workload.ends == "fixed":
            raise ValueError(f"`{early}` in `body` ends answers before `output_tokens`; set `ends: natural`")

    def _check_mix(self) -> None:
        mix = self.workload.mix
        if mix is None:
            return
        unknown = sorted(set(mix) - set(self.workload.prompt_sets))
        if unknown:
            known = ", ".join(self.workload.prompt_sets)
            raise ValueError(f"workload: `mix` names `{unknown[0]}`, which is none of its prompt sets ({known})")
        if abs(sum(mix.values()) - 1) > 1e-6:
            raise ValueError(f"workload: the shares of `mix` must sum to 1, and they sum to {sum(mix.values()):g}")

    def _check_budgets(self) -> None:
        for kind, phases in self.budgets.items():
            known = ["default", "importing", *(phase for phase, _ in reader(kind).PHASES)]
            unknown = sorted(set(phases) - set(known))
            if unknown:
                # A phase that is never entered would silently leave the default in force.
                raise ValueError(f"budgets of {kind}: no load phase `{unknown[0]}`; there are {', '.join(known)}")

    def _check_configuration(self, name: str, c: Configuration) -> None:
        if not re.fullmatch(NAME, name) or name in RESERVED:
            raise ValueError(
                f"configuration `{name}`: a name holds letters, digits, dots, dashes and underscores only, and is "
                f"none of {', '.join(RESERVED)}"
            )
        if c.engine not in self.engines:
            raise ValueError(f"configuration `{name}`: engine `{c.engine}` is none of {sorted(self.engines)}")
        unknown = sorted(set(c.prompt_sets or ()) - set(self.workload.prompt_sets))
        if unknown:
            known = ", ".join(self.workload.prompt_sets)
            raise ValueError(f"configuration `{name}`: prompt set `{unknown[0]}` is none of {known}")
        missing = sorted(set(c.concurrencies or ()) - set(self.workload.concurrencies))
        if missing:
            known = ", ".join(map(str, self.workload.concurrencies))
            raise ValueError(f"configuration `{name}`: concurrency {missing[0]} is none of the workload's {known}")
        if c.drafter is not None and c.drafter not in self.drafters:
            raise ValueError(f"configuration `{name}`: drafter `{c.drafter}` is none of {sorted(self.drafters)}")

    def _check_bases(self) -> None:
        for name, c in self.configurations.items():
            if c.base is True and self.drafts(name):
                raise ValueError(f"configuration `{name}`: `base: true` is for one that does not draft")
            if isinstance(c.base, str):
                same = [n for n, o in self.configurations.items() if o.engine == c.engine and not self.drafts(n)]
                if c.base not in same:
                    raise ValueError(
                        f"configuration `{name}`: `base: {c.base}` must be a configuration of the same engine that "
                        f"does not draft ({', '.join(same) or 'there is none'})"
                    )
        for kind in self.engines:
            plain = self.plain(kind)
            marked = [n for n in plain if self.configurations[n].base is True]
            if len(marked) > 1 or (len(plain) > 1 and not marked):
                raise ValueError(
                    f"configurations {', '.join(marked or plain)} of {kind} do not draft: set `base: true` on exactly "
                    "one of them, the one that the others are compared with"
                )

    def configuration(self, name: str) -> Configuration:
        if name not in self.configurations:
            known = ", ".join(self.configurations)
            raise UserError(f"Profile {self.name} has no configuration '{name}'; it has: {known}.")
        return self.configurations[name]

    def required_training(self) -> Training:
        """The `training` section, for what cannot be done without one."""
        if self.training is None:
            raise UserError(f"Profile {self.name} has no `training` section, so no drafter can be made from it.")
        return self.training

    def preset(self, name: str | None) -> Preset:
        name = name or self.workload.default_preset
        if name not in self.workload.presets:
            known = ", ".join(self.workload.presets)
            raise UserError(f"Profile {self.name} has no preset '{name}'; it has: {known}.")
        return self.workload.presets[name]

    def output_tokens(self, preset: str | None) -> int:
        """Tokens of a timed answer: the preset's, else the workload's."""
        return self.preset(preset).output_tokens or self.workload.output_tokens

    def at_preset(self, name: str | None) -> list[str]:
        """The configurations that a report of this preset measures, in the profile's order."""
        left_out = self.preset(name).leave_out
        return [c for c in self.configurations if c not in left_out]

    def method_of(self, configuration: str) -> str:
        """How a configuration drafts: its `method`, or what its flags ask for where it names none.

        Ends in `-tree` where it drafts trees, so that nothing takes its counts for a chain's (profiles/methods.py).
        """
        chosen = self.configuration(configuration)
        kind = engine(chosen.engine)
        flags = kind.merged(self.engines[chosen.engine].flags, chosen.flags)
        name = chosen.method
        if name == "none":
            if not kind.drafts_by(flags):
                return name
            name = kind.known_as(kind.method_in(flags) or methods.UNNAMED)
        return name + methods.TREE if kind.drafts_tree(name, chosen.k, flags) else name

    def drafts(self, configuration: str) -> bool:
        """Whether it drafts, by its method or through its flags alone."""
        return self.method_of(configuration) != "none"

    def precision_of(self, configuration: str) -> str:
        """In which precision a configuration serves the target: the target's own, unless a flag or its form changes it.

        A dequantised target's folder is served in the engine's `dtype`, and so without the rounding of the original.
        """
        chosen = self.configuration(configuration)
        flags = engine(chosen.engine).merged(self.engines[chosen.engine].flags, chosen.flags)
        form = engine(chosen.engine).serves
        dequantised = self.target.dequantised and form == "folder"
        second = self.target.gguf if form == "gguf" else None
        kept = second.precision if second is not None else self.target.precision
        own = str(flags.get("dtype", "dequantised")) if dequantised else kept
        return f"{own}, {flags['quantization']}" if flags.get("quantization") else own

    def plain(self, kind: str) -> list[str]:
        """The configurations of an engine that do not draft, sorted."""
        return sorted(n for n, c in self.configurations.items() if c.engine == kind and not self.drafts(n))

    def base_of(self, configuration: str) -> str | None:
        """What a configuration is compared with: the base it names, else its engine's; None where there is none."""
        chosen = self.configuration(configuration)
        if isinstance(chosen.base, str):
            return chosen.base
        plain = self.plain(chosen.engine)
        marked = [n for n in plain if self.configurations[n].base is True]
        return next(iter(marked or plain), None)
