"""`specverdict setup`: make the engine environments and the model, before anything is measured."""

import argparse

from runners.commands import arguments
from runners.core.errors import EngineUnavailable
from runners.core.progress import Progress
from runners.engines import environments
from runners.measure import cell_context
from runners.profiles import prompt_files
from runners.profiles.load import load
from runners.profiles.profile import Profile
from runners.serve import model_files
from runners.serve.ports import check_port


def setup(profile: Profile, only: list[str] | None) -> int:
    """Make what this profile needs. `only`: these environments and nothing else.

    An engine that cannot be installed is an error here, since it was asked for.
    """
    wanted = only or [spec.environment for spec in profile.engines.values() if spec.environment]
    if profile.target.dequantised and not only:
        wanted.append("reference")
    for name in wanted:
        print(f"{name}: {environments.ensure(name, print)}")
    if profile.target.package and not only:
        for drafter in [None, *(name for name, spec in profile.drafters.items() if spec.made)]:
            model_files.files(profile, drafter, print)
    return 0


def prepare_report(profile: Profile, preset: str | None, only: list[str] | None) -> None:
    """Check ports and make environments and model before a report: a wrong path must not end hours of measuring.

    Raises UserError for a missing or wrong file, a port in use, a reference model that cannot be set up, and for an
    engine that was asked for by name. Another engine that cannot be installed only loses its configurations.
    """

    def say(text: str) -> None:
        print(text, flush=True)

    # A server that stands alone (`attach`, `command`) needs neither an environment nor files of ours.
    chosen = {n: c for n, c in profile.configurations.items() if (not only or n in only) and not c.stands_alone}
    for engine in dict.fromkeys(c.engine for c in chosen.values()):
        spec = profile.engines[engine]
        if spec.port is not None:
            check_port(spec.host, spec.port)
        try:
            if spec.environment:
                environments.ensure(spec.environment, say)
        except EngineUnavailable as error:
            if only:
                raise
            say(f"{engine}: its configurations will read «not measured here»: {error}")
    if profile.gates.equal_to_reference_floor is not None:
        environments.ensure("reference", say)
    for drafter in dict.fromkeys(c.drafter for c in chosen.values()):
        model_files.files(profile, drafter, say)
    _say_of_prompts(profile, preset, say)
    cell_context.reference_texts(profile, preset, profile.workload.prompt_sets)


def _say_of_prompts(profile: Profile, preset: str | None, say: Progress) -> None:
    """What of a prompt file is not asked, and which set may be too long for the context."""
    whole, answer = profile.target.context_length, profile.output_tokens(preset)
    for name in profile.workload.prompt_sets:
        found = prompt_files.load(name, profile.workload.prompt_files)
        for note in found.notes:
            say(f"prompts {name}: {note}")
        if whole and found.longest + answer > whole:
            say(f"prompts {name}: the longest has about {found.longest:,} tokens; with {answer:,} of the answer it may "
                f"not fit into `context_length: {whole}`, and the engine then refuses it")  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    arguments.add_profile(parser)
    parser.add_argument("--engine", action="append", help="only this environment, and no model; may be repeated")


def main(args: argparse.Namespace) -> int:
    """Make what is missing and print where it lies."""
    return setup(load(args.profile), args.engine)
