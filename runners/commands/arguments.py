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


def minutes(text: str) -> float:
    """A number of minutes above 0, as argparse takes it."""
    value = float(text)
    if not 0 < value < 1e5:
        raise argparse.ArgumentTypeError("must be a number of minutes above 0")
    return value


def add_minutes(parser: argparse.ArgumentParser, default: float | None = None) -> None:
    """--minutes: the budget of a campaign."""
    usual = "the preset's `minutes`" if default is None else f"{default:g}"
    parser.add_argument("--minutes", type=minutes, default=default, help=f"what the whole may take (default: {usual})")


def add_more(parser: argparse.ArgumentParser) -> None:
    """--more: another campaign beside a finished one."""
    parser.add_argument("--more", action="store_true", help="add a campaign beside one that is finished")


def positive(text: str) -> float:
    """The type of an option that is a number above 0."""
    value = float(text)
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError("must be a number above 0")
    return value


def count(text: str) -> int:
    """The type of an option that is a whole number above 0."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be a whole number above 0")
    return value


def add_step_cost(parser: argparse.ArgumentParser) -> None:
    """--r, or the profile that knows it: the time of a speculative step over that of a plain one."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--r", type=positive, help="step cost ratio; tells whether speculation pays here")
    group.add_argument("--profile", help="a profile whose verdict knows r; says the same")
    parser.add_argument("--configuration", help="which of the profile's configurations this server runs")
    parser.add_argument("--runs", default="local", help="the profile's: published, local, or a folder (default: local)")
    parser.add_argument("-C", "--concurrency", type=positive, help="requests at the same time, if no text tells them")
