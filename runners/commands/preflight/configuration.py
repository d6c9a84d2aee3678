"""Pre-flight of one configuration: port, engine and its version, command line, SGLang's patch, drafter and target."""

import shutil
from collections.abc import Iterator

from runners.commands.preflight import attached, ports, workload
from runners.core import checkpoint
from runners.core.checkpoint import read_text_config
from runners.core.errors import UserError
from runners.core.finding import Finding
from runners.drafter import compatibility
from runners.engines import environments
from runners.engines.engine import Files
from runners.engines.environments import installed_version
from runners.engines.registry import engine
from runners.profiles import methods
from runners.profiles.profile import Profile
from runners.profiles.schema import Configuration, EngineSpec
from runners.serve.planned_start import planned_start


def check(profile: Profile, name: str) -> Iterator[Finding]:
    """Findings of one configuration, in the order in which a start would meet them."""
    chosen = profile.configuration(name)
    yield from workload.base_of(profile, name)
    if chosen.attach:
        yield from attached.check(profile, name)
        return
    spec, start = profile.engines[chosen.engine], planned_start(profile, name)
    yield from ports.check(start)
    if chosen.command:
        yield from _program(start.command().argv[0])
        yield Finding("note", "its command line is its own: neither its files nor its flags are checked")
        return
    yield from _engine(chosen, spec)
    try:
        start.command()
    except UserError as error:
        yield Finding("blocker", str(error))
        return
    if chosen.drafter is None:
        return
    own = profile.drafters[chosen.drafter]
    if own.gguf is not None and start.files.drafter_gguf is not None and not start.files.drafter_gguf.is_file():
        words = f"the GGUF form of drafter {chosen.drafter} is not at {start.files.drafter_gguf}"
        yield Finding("blocker", words, "put it there, or leave the drafter's `gguf` out")
    if own.made and (profile.target.package is None or not profile.target.dequantised):
        words = f"drafter {chosen.drafter} is made from a packaged target with `dequantised: true`, and this is none"
        yield Finding("blocker", words, "give the drafter's `path`")
    elif chosen.method == "eagle3":
        yield from _drafter(profile, chosen, start.files)
    elif methods.method(chosen.method).drafter == "optional":
        yield from _draft_model(profile, chosen, start.files)


def _engine(chosen: Configuration, spec: EngineSpec) -> Iterator[Finding]:
    if spec.environment and not environments.ready(spec.environment):
        yield Finding("note", f"environment {spec.environment} is not made yet: `make report` makes it")
        return
    program = spec.command[0] if spec.command else spec.python
    if program is not None and (missing := list(_program(program))):
        yield from missing
        return
    if spec.command:
        yield Finding("note", f"started by {spec.command[0]}: its version is read when it runs")
        return
    python = spec.python or str(environments.python_of(spec.environment or ""))
    version = installed_version(python, chosen.engine)
    if version is None:
        yield Finding(
            "blocker", f"{spec.python} has no {chosen.engine}", "install it there, or set the engine's `python`"
        )
    elif version != spec.version:
        words = f"{chosen.engine} {version} is installed, the profile says {spec.version}"
        yield Finding("warning", words, "set `version` in the profile: flags, layer ids and rates follow it")
    if version is not None:
        yield from engine(chosen.engine).check_installed(spec.python, chosen.method)


def _program(name: str) -> Iterator[Finding]:
    if shutil.which(name) is None:
        yield Finding("blocker", f"there is no program {name}", "install it, or correct the `command` or `python`")


def _draft_model(profile: Profile, chosen: Configuration, files: Files) -> Iterator[Finding]:
    """A model or a checkpoint drafts: it must be there, and have the target's vocabulary."""
    path = files.drafter(engine(chosen.engine).serves)
    if path is None or not path.exists():
        yield Finding("blocker", f"draft model {chosen.drafter} is not at {path}", "put it there, or set its path")
        return
    own, target = (read_text_config(f) if f and f.is_dir() else None for f in (files.drafter_folder, files.folder))
    if own is None or target is None:
        yield Finding("note", "the draft model's or the target's config is not here: vocabularies were not compared")
    elif (sizes := [config.get("vocab_size") for config in (own, target)])[0] != sizes[1]:
        words = f"draft model {chosen.drafter} knows {sizes[0]} tokens, the target {sizes[1]}"
        yield Finding("blocker", words, "take one of the target's family: its drafts are compared token by token")


def _drafter(profile: Profile, chosen: Configuration, files: Files) -> Iterator[Finding]:
    folder, file = files.drafter_folder, files.drafter_gguf
    if folder is None and file is not None:
        if file.is_file():
            yield Finding("note", f"drafter {chosen.drafter} is a GGUF file: it was not compared with the target")
        else:
            yield Finding("blocker", f"drafter {chosen.drafter} is not at {file}", "put it there, or set its path")
        return
    if folder is None or not folder.is_dir():
        if chosen.drafter is not None and profile.drafters[chosen.drafter].made:
            yield Finding("note", f"drafter {chosen.drafter} is made when it is first served")
        else:
            yield Finding("blocker", f"drafter {chosen.drafter} is not at {folder}", "put it there, or set its path")
        return
    try:
        drafter = checkpoint.read(folder)
    except UserError as error:
        yield Finding("blocker", str(error), "copy the drafter again")
        return
    target = read_text_config(files.folder) if files.folder else None
    if target is None:
        yield Finding("note", "the target's config is not here: the drafter was not compared with it")
        return
    try:
        yield from compatibility.check(drafter, target, profile.target.context_length)
    except UserError as error:
        yield Finding("warning", str(error), "correct the config")
        return
    own, asked = checkpoint.flat_config(drafter.config).get("max_position_embeddings"), profile.target.context_length
    kind, spec = engine(chosen.engine), profile.engines[chosen.engine]
    variable, env = kind.longer_context_variable, spec.env | chosen.env
    if variable and own and own < asked and env.get(variable) != "1":
        words = f"{kind.title} refuses a drafter of {own:,} positions for {asked:,} without {variable}=1"
        yield Finding("blocker", words, f"set env: {{{variable}: '1'}} in the configuration, or lower context_length")
    ids = checkpoint.named_layer_ids(drafter.config)
    if ids and kind.boundaries:
        model = "llama" if target.get("model_type") == "llama" else "deepseek_v2"
        try:
            means = kind.boundaries(ids, spec.version, model)
        except UserError as error:
            yield Finding("warning", str(error), "set the engine's `version` to the release it is")
            return
        yield Finding("note", f"layer ids {ids} mean the inputs of layers {means} in this release")
