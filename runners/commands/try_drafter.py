"""`specverdict try`: from a model (and a drafter) to a verdict, within some minutes: profile, pre-flight, measuring.

The profile is written to local/profiles/ under a name made from what is compared, so that the same command goes on
where it stopped; the same profile then makes the book.
"""

import argparse
import hashlib
import re
import time
from dataclasses import replace
from pathlib import Path

from runners.commands import arguments, new_profile, profile_text
from runners.commands.measure import measure
from runners.commands.preflight import all_checks
from runners.commands.prepare import prepare_report
from runners.commands.profile_plan import SETS, Plan, Wanted
from runners.core import paths
from runners.core.errors import UserError
from runners.profiles import prompts
from runners.profiles.profile import Profile

MINUTES = 30.0
LEAST_S = 60.0  # what installing has used up still leaves time for something
NAME = "try"  # before it has one


def named(plan: Plan) -> Plan:
    """The plan under a name of its content: another target, drafter, engine or load is another profile."""
    assert plan.target is not None, "`try` has a target"
    # More time, or a machine that has more memory free today, is no other comparison.
    same = replace(plan, wanted=replace(plan.wanted, minutes=MINUTES))
    lines = [line for line in profile_text.text(same).splitlines() if "servers_at_once" not in line]
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:6]
    model = re.sub(r"[^A-Za-z0-9._-]+", "-", plan.target.name).strip("-._") or "model"
    return replace(plan, name=f"{NAME}-{model}-{digest}")


def run(plan: Plan, runs: Path, minutes: float) -> int:
    """Write the profile, look at what would fail, measure within the minutes and print the verdict.

    1 where the pre-flight finds a blocker or no good cell was measured; UserError as prepare_report and measure.
    """
    began = time.monotonic()
    plan = named(plan)
    place = paths.LOCAL_PROFILES / f"{plan.name}.yaml"
    profile = new_profile.save(plan, place)
    shown = place.relative_to(paths.ROOT) if place.is_relative_to(paths.ROOT) else place
    print(f"profile {plan.name} ({shown}): {', '.join(profile.configurations)}", flush=True)
    if _blocked(profile, runs):
        return 1
    prepare_report(profile, None, None)
    seconds = max(minutes * 60 - (time.monotonic() - began), LEAST_S)
    # A campaign that was interrupted goes on; beside a finished one there is another.
    code = measure(profile, None, runs, list(profile.configurations), seconds, more=True, whole=True)
    print("\nthe same command again adds a campaign to what was measured")
    print(f"the book:   specverdict report --profile {plan.name}\nthe choice: specverdict serve --profile {plan.name}")
    return code


def _blocked(profile: Profile, runs: Path) -> bool:
    """Print what the pre-flight has to say against it; whether there is a blocker."""
    found = all_checks.check(profile, runs=runs)
    for line in all_checks.lines(found, least="warning"):
        print(line)
    count = all_checks.blockers(found)
    print(f"pre-flight: {count} blockers", flush=True)
    return bool(count)


def _levels(text: str) -> list[int]:
    """`1,4,16` as numbers >= 1."""
    try:
        found = [int(word) for word in text.split(",")]
    except ValueError:
        found = []
    if not found or min(found) < 1:
        raise argparse.ArgumentTypeError(f"must be numbers >= 1 separated by commas, such as 1,4,16 (it is {text!r})")
    return found


def _prompt_set(entry: str) -> str:
    """A shipped set by its name; anything else as the whole path of a file."""
    if entry.partition("@")[0] in prompts.available():
        return entry
    return str(Path(entry).expanduser().absolute())


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument(
        "--target",
        "--model",
        action="append",
        required=True,
        help="the model: a Hugging Face folder or a GGUF file (repeat it for both forms of one model)",
    )
    new_profile.add_looking(parser)
    parser.add_argument("--method", type=_words, help="ngram,eagle3,... (default: ngram, and what the drafter is for)")
    parser.add_argument("--k", type=_levels, default=[], help="draft tokens: 1,2,3 tries each (default: the usual one)")
    parser.add_argument("-C", "--concurrency", type=_levels, help="requests in flight: 1,4,16")
    parser.add_argument(
        "--prompts", action="append", metavar="FILE", help="a file, or a shipped set; may be repeated (chat and edit)"
    )
    arguments.add_minutes(parser, MINUTES)
    arguments.add_runs(parser, "local")


def main(args: argparse.Namespace) -> int:
    """Try it; UserError where target, drafter or engine are not what they must be."""
    sets = [_prompt_set(entry) for entry in args.prompts or SETS]
    wanted = Wanted(args.method, args.k, sets, args.concurrency, args.minutes)
    plan = new_profile.look(NAME, args.target, args.drafter, args.python, args.engine, wanted)
    if any(not how.seen for how in plan.engines.values()):
        raise UserError(
            f"No engine was found that serves this target ({', '.join(plan.engines)}); name the interpreter that "
            "holds one by --python."
        )
    return run(plan, paths.runs_root(args.runs), args.minutes)
