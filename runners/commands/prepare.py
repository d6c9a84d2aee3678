"""`specverdict setup`: make the engine environments and the model, before anything is measured."""

import argparse

from runners.commands import arguments
from runners.core.errors import EngineUnavailable
from runners.engines import environments
from runners.measure import cell_context
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

    # A server that already runs (`attach`) needs neither an environment nor files of ours.
    chosen = {n: c for n, c in profile.configurations.items() if (not only or n in only) and c.attach is None}
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
    cell_context.reference_texts(profile, preset, profile.workload.prompt_sets)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    arguments.add_profile(parser)
    parser.add_argument("--engine", action="append", help="only this environment, and no model; may be repeated")


def main(args: argparse.Namespace) -> int:
    """Make what is missing and print where it lies."""
    return setup(load(args.profile), args.engine)
