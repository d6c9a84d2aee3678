"""`specverdict measure`: measure one configuration beside its base."""

import argparse

from runners.analyse import looks
from runners.commands import arguments
from runners.core import paths
from runners.measure import campaign
from runners.profiles.load import load
from runners.report.chapters.run_campaign import campaign_sentence


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    arguments.add_profile(parser)
    arguments.add_preset(parser)
    arguments.add_runs(parser, "local")
    arguments.add_minutes(parser)
    arguments.add_more(parser)
    parser.add_argument(
        "--configuration", required=True, action="append", help="a name from the profile; may be repeated"
    )


def main(args: argparse.Namespace) -> int:
    """Measure and print what was done; UserError when the engine cannot be installed or started."""
    profile, runs = load(args.profile), paths.runs_root(args.runs)
    done = campaign.run(
        profile,
        args.preset,
        runs,
        lambda: looks.for_campaign(runs, profile, args.configuration),
        names=args.configuration,
        seconds=args.minutes * 60 if args.minutes else None,
        more=args.more,
        strict=True,
    )
    print(campaign_sentence(done))
    return 0
