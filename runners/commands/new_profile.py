"""`specverdict new-profile NAME`: look at this machine and write a commented profile for it.

It reads the GPUs and their memory, the engines of the given interpreters, and the target's and the drafter's files.
What it cannot find gets an example value and a comment CHECK; the result is a valid profile in any case.
"""

import argparse
import re
from collections.abc import Collection, Sequence
from pathlib import Path

from runners.commands import found_engines, found_models, profile_text
from runners.commands.profile_plan import Plan, Wanted, longest
from runners.core import gpus, paths
from runners.core.errors import UserError
from runners.core.files import write_atomic
from runners.engines.engine import Form
from runners.profiles.load import load
from runners.profiles.profile import Profile


def look(
    name: str,
    models: Sequence[str] = (),
    drafter: Sequence[str] = (),
    pythons: Sequence[str] | None = None,
    engines: Collection[str] | None = None,
    wanted: Wanted | None = None,
) -> Plan:
    """What a profile of this machine is written from. Each of models and drafter: a folder, a GGUF file, or both.

    UserError when a path cannot be read, or holds something else; and what found_engines.find raises.
    """
    wanted = wanted or Wanted()
    target = found_models.target(models) if models else None
    draft = found_models.drafter(drafter) if drafter else None
    forms: list[Form] = ["folder"]  # of the example
    if target is not None:
        forms = ["folder"] if target.forms.folder else []
        forms += ["gguf"] if target.forms.gguf else []
    cards = gpus.found() or []
    found = found_engines.find(pythons, len(cards), forms, engines)
    return Plan(name, target, draft, found, cards, wanted, longest(wanted.prompt_sets))


def save(plan: Plan, place: Path) -> Profile:
    """Write a plan's profile and read it back; UserError, and no file, where it is not a valid one."""
    before = place.read_bytes() if place.is_file() else None
    write_atomic(place, profile_text.text(plan).encode())
    try:
        return load(str(place))
    except UserError:
        if before is None:
            place.unlink()
        else:
            write_atomic(place, before)
        raise


def write(
    name: str,
    models: Sequence[str] = (),
    drafter: Sequence[str] = (),
    pythons: Sequence[str] | None = None,
    engines: Collection[str] | None = None,
) -> int:
    """Write runners/profiles/<name>.yaml; UserError when it exists, and what `look` raises."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise UserError(f"A name must hold letters, digits, dots, dashes and underscores only; '{name}' does not.")
    place = paths.PROFILES / f"{name}.yaml"
    if place.exists():
        raise UserError(f"{place.name} exists already; choose another name or edit it.")
    plan = look(name, models, drafter, pythons, engines)
    save(plan, place)
    print(f"{place.relative_to(paths.ROOT)} is written for {', '.join(_reached(plan))}.")
    if models:
        for kind, form in found_engines.left_out(plan.engines, pythons, len(plan.found)).items():
            what = "a GGUF file" if form == "gguf" else "a Hugging Face folder"
            print(f"{kind} is here too and serves {what}: give the target in that form as well")
    marked = sum("CHECK" in line for line in place.read_text().splitlines()[1:])
    print(f"{marked} lines are marked CHECK: read them, then" if marked else "Then")
    print(f"  specverdict preflight --profile {name}\n  make plan PROFILE={name}\n  make report PROFILE={name}")
    return 0


def _reached(plan: Plan) -> list[str]:
    """Each engine with its version and how it is reached."""
    return [
        f"{kind} {how.version} ({how.python or how.environment})" if how.seen else f"{kind} (not found)"
        for kind, how in plan.engines.items()
    ]


def add_looking(parser: argparse.ArgumentParser) -> None:
    """The options that say what is on this machine."""
    parser.add_argument("--python", action="append", metavar="PYTHON", help="an interpreter that may hold an engine")
    parser.add_argument("--engine", action="append", help="only this engine; may be repeated")
    parser.add_argument(
        "--drafter",
        action="append",
        default=[],
        help="a drafter's folder or GGUF file (repeat it for both forms of one drafter)",
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("name", help="of the profile: runners/profiles/NAME.yaml is written")
    parser.add_argument(
        "--model",
        "--target",
        action="append",
        default=[],
        help="the target: a Hugging Face folder or a GGUF file (repeat it for both forms of one model)",
    )
    add_looking(parser)


def main(args: argparse.Namespace) -> int:
    """Write the profile and say what comes next."""
    return write(args.name, args.model, args.drafter, args.python, args.engine)
