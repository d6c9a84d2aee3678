"""`specverdict serve`: start the configuration that the verdict chose, and stay in the foreground."""

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runners.analyse import results
from runners.analyse.verdict import decide, store
from runners.analyse.verdict.answers import USES
from runners.analyse.verdict.to_serve import to_serve
from runners.commands import arguments
from runners.core import paths
from runners.core.errors import UserError
from runners.profiles.load import argument, load
from runners.profiles.profile import Profile
from runners.serve.from_profile import running
from runners.serve.running_server import RunningServer
from runners.serve.wait_until_ready import ServerDied, ServerStalled


def chosen_by_verdict(profile: Profile, runs: Path, use: str, workload: str | None = None) -> tuple[str, str]:
    """(configuration, why in a sentence, or ""), from the verdict of these runs, else from the published one.

    use: one of answers.USES; workload: a prompt set, or the mix; None: one for all of them (to_serve.to_serve).
    UserError when there is no verdict yet.
    """
    for root in dict.fromkeys((runs, paths.PUBLISHED_RUNS)):
        found = _verdict(root, profile.name)
        if found is None or not found["answers"]:
            continue
        chosen = to_serve(found, use, workload)
        if chosen:
            return chosen
    asked = f" and {USES[use].title.lower()}" + (f" on {workload}" if workload else "")
    raise UserError(
        f"There is no verdict for profile {profile.name}{asked} yet; "
        f"run `make report PROFILE={argument(profile.name)}`, "
        f"or name a configuration: {', '.join(profile.configurations)}."
    )


def _verdict(root: Path, profile: str) -> dict | None:
    """The stored one, else decided from the ledgers (after `measure`, without a book); None without either."""
    if store.path_of(root, profile).is_file():
        return decide.stored(root, profile)  # a damaged one is an error: the published one may differ
    return decide.of(root, profile) if results.folders(root, profile) else None


@contextmanager
def _ready(profile: Profile, name: str, log: Path) -> Iterator[RunningServer]:
    """A server that answers; UserError with its first error when it does not get that far."""
    try:
        with running(profile, name, log) as live:
            yield live
    except (ServerDied, ServerStalled) as error:
        raise UserError(f"{error} (log: {log}).") from error


def _with_port(profile: Profile, name: str, port: int) -> Profile:
    """The profile with another port for this configuration's engine."""
    if not 1 <= port <= 65535:
        raise UserError(f"--port {port}: a port must be between 1 and 65535.")
    engine = profile.configurations[name].engine
    spec = profile.engines[engine].model_copy(update={"port": port})
    return profile.model_copy(update={"engines": profile.engines | {engine: spec}})


def serve(profile: Profile, name: str, port: int | None) -> int:
    """Run a configuration until Ctrl-C; UserError with the server's first error when it does not start, or dies."""
    profile.configuration(name)
    if port is not None:
        profile = _with_port(profile, name, port)
    if profile.configurations[name].attach is not None:
        return _runs_already(profile, name, port)
    log = paths.BUILD / "logs" / profile.name / f"serve-{name}.log"
    print(f"starting {name} ({profile.configurations[name].title})", flush=True)
    with _ready(profile, name, log) as live:
        print(f"serving {name} at {live.base_url}/v1 (log: {log}); Ctrl-C stops it", flush=True)
        try:
            while live.alive():
                time.sleep(1)
        except KeyboardInterrupt:
            print("stopping", flush=True)
            return 0
        cause = (live.cause() or ("no error in its log", ""))[0]
    raise UserError(f"{name} died: {cause} (log: {log}).")


def _runs_already(profile: Profile, name: str, port: int | None) -> int:
    """Nothing to start: say where the server is. UserError when it does not answer there, or is asked to move."""
    attach = profile.configurations[name].attach
    assert attach is not None
    if port is not None:
        raise UserError(f"{name} runs already at {attach.url} and is not ours to start: leave --port out.")
    with running(profile, name, paths.BUILD / "logs" / f"serve-{name}.log"):
        print(f"{name} runs already at {attach.url}/v1: nothing is started here, and nothing is stopped", flush=True)
    return 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    arguments.add_profile(parser)
    arguments.add_runs(parser, "local")
    parser.add_argument("--configuration", help="serve this one instead of the verdict's")
    parser.add_argument("--use", choices=tuple(USES), default="throughput", help="which verdict to follow (throughput)")
    parser.add_argument("--workload", help="follow the verdict for these prompts (default: what is right for most)")
    parser.add_argument("--port", type=int, help="listen here (default: the profile's port, else a free one)")


def main(args: argparse.Namespace) -> int:
    """Serve until stopped."""
    profile, runs = load(args.profile), paths.runs_root(args.runs)
    if args.configuration:
        return serve(profile, args.configuration, args.port)
    name, why = chosen_by_verdict(profile, runs, args.use, args.workload)
    print(f"the verdict for {USES[args.use].phrase}: {name}. {why}".strip(), flush=True)
    return serve(profile, name, args.port)
