"""Arguments that several commands share."""

import argparse

DEFAULT_PROFILE = "lab-cpu"


def add_profile(parser: argparse.ArgumentParser) -> None:
    """--profile: which configurations and runs."""
    parser.add_argument(
        "--profile",
        default=DEFAULT_PROFILE,
        help=f"a name in runners/profiles, or a YAML file (default: {DEFAULT_PROFILE})",
    )


def add_preset(parser: argparse.ArgumentParser) -> None:
    """--preset: how much is measured."""
    parser.add_argument(
        "--preset", "--depth", dest="preset", help="how much is measured: quick, full, ... as the profile names them"
    )


def add_runs(parser: argparse.ArgumentParser, default: str) -> None:
    """--runs: the folder that results are read from and written to."""
    parser.add_argument("--runs", default=default, help=f"published, local, or a folder (default: {default})")
