"""Arguments that several commands share."""

import argparse

DEFAULT_PROFILE = "lab-cpu"


def add_profile(parser: argparse.ArgumentParser) -> None:
    """--profile: whose configurations and runs."""
    parser.add_argument("--profile", default=DEFAULT_PROFILE, help="a name in runners/profiles, or a YAML file")


def add_depth(parser: argparse.ArgumentParser) -> None:
    """--depth: how much is measured."""
    parser.add_argument("--depth", help="quick, full, ... as the profile names them")


def add_runs(parser: argparse.ArgumentParser, default: str) -> None:
    """--runs: where results are read and written."""
    parser.add_argument("--runs", default=default, help=f"published, local, or a folder (default: {default})")
