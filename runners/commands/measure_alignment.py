"""`specverdict align`: captured states, served and replayed accept lengths, and each fault put in."""

import argparse

from runners.commands import arguments
from runners.core import paths
from runners.drafter import experiments
from runners.profiles.load import load


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.add_profile(parser)
    arguments.add_runs(parser, "local")
    parser.add_argument("--part", action="append", choices=experiments.PARTS, help="only this (may be repeated)")
    parser.add_argument("--configuration", help="only this one")
    parser.add_argument("--fault", action="append", help="only this fault of part `faults` (may be repeated)")


def main(args: argparse.Namespace) -> int:
    parts = args.part or list(experiments.PARTS)
    profile, runs = load(args.profile), paths.runs_root(args.runs)
    return experiments.run(profile, runs, parts, only=args.configuration, only_faults=args.fault)
