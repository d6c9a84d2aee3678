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


def _minutes(text: str) -> float:
    value = float(text)
    if not 0 < value < 1e5:
        raise argparse.ArgumentTypeError("must be a number of minutes above 0")
    return value


def add_minutes(parser: argparse.ArgumentParser) -> None:
    """--minutes: the budget of a campaign."""
    parser.add_argument("--minutes", type=_minutes, help="what the whole may take (default: the preset's `minutes`)")


def add_more(parser: argparse.ArgumentParser) -> None:
    """--more: another campaign beside a finished one."""
    parser.add_argument("--more", action="store_true", help="add a campaign beside one that is finished")
