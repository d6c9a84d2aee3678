"""The command line: `specverdict COMMAND`, or `python -m runners COMMAND`. Bad input: one sentence and exit code 2."""

import argparse
import errno
import importlib
import os
import signal
import sys
from pathlib import Path
from typing import NamedTuple

from runners import __version__
from runners.core import paths, secrets, terminal
from runners.core.errors import UserError

# What a full disk or a wrong path raises. Any other OSError is a defect of ours and keeps its traceback.
DISK_ERRORS = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG),
}


class Command(NamedTuple):
    """One command: its module in runners/commands (`add_arguments`, `main`), its use in a sentence, an example."""

    module: str
    use: str
    example: str


COMMANDS: dict[str, dict[str, Command]] = {
    "everyday": {
        "ask": Command(
            "ask",
            "Ask two running servers, one with speculation, whether it pays.",
            "--base http://a:8000/v1 --spec http://b:8000/v1",
        ),
        "report": Command("run_report", "Measure what is missing, analyse it and build the book.", "--preset quick"),
        "plan": Command(
            "show_plan",
            "Print each exact command of a report, its environment and its time; start nothing.",
            "--preset full",
        ),
        "preflight": Command(
            "preflight.all_checks", "Find in seconds what would fail after a long load.", "--profile my-box"
        ),
        "rehearse": Command(
            "rehearse", "Run a whole report against stand-in engines; nothing is measured.", "--faults"
        ),
        "measure": Command(
            "measure",
            "Measure one configuration beside its base and print its figures.",
            "--configuration llamacpp-base",
        ),
        "try": Command(
            "try_drafter",
            "Say within some minutes whether drafting pays for a model, with a drafter or without.",
            "--target /models/target --drafter /models/drafter --k 1,2,3 --minutes 30",
        ),
        "verdict": Command(
            "show_verdict", "Say from the ledger, in seconds, what to serve and whether it pays.", "--json"
        ),
        "serve": Command("serve_winner", "Start the configuration that the verdict chose.", "--use single_stream"),
        "analyse": Command(
            "analyse", "Execute the book's chapters on existing runs; nothing is measured.", "--runs local"
        ),
        "book": Command("build_book", "Build the book from existing runs; nothing is measured.", "--runs local"),
        "read": Command(
            "read_log",
            "Say what logs and /metrics texts of a server show, and what to do.",
            "before.prom after.prom server.log.gz",
        ),
        "watch": Command(
            "watch", "Show what a running server does, one line an interval.", "http://localhost:8000 --every 5"
        ),
        "compare": Command("compare", "Set two sets of runs side by side, ratio by ratio.", "published local"),
        "share": Command(
            "share_runs", "Pack a profile's runs into one archive for another person.", "--out mine.tar.gz"
        ),
        "new-profile": Command(
            "new_profile", "Look at this machine and write a profile for it.", "my-box --model /models/target"
        ),
        "setup": Command("prepare", "Make the engine environments and the model.", "--engine vllm"),
    },
    "drafter": {
        "drafter": Command("make_drafter", "Make the profile's own EAGLE-3 drafter.", "--stage train"),
        "align": Command("measure_alignment", "Compare states, served and replayed accept lengths.", "--part states"),
        "diagnose": Command(
            "diagnose", "Find out why a drafter fails: any folder, or one of a profile.", "--target DIR --drafter DIR"
        ),
        "forecast": Command("forecast", "Forecast the speed-ups of what is not measured yet.", "--preset full"),
    },
    "maintain": {
        "publish": Command(
            "publish_runs", "Copy local runs to data/runs, where they can be committed.", "--machine no-amx"
        ),
        "readme": Command("write_readme", "Write the verdict and its picture into the README.", ""),
        "audit-sglang": Command("audit_sglang", "Read from its wheel what each SGLang release does.", ""),
        "patch": Command("patch_sglang", "Add Kimi-K2.5's EAGLE-3 methods to an installed SGLang.", "check"),
    },
}
BY_NAME = {name: command for group in COMMANDS.values() for name, command in group.items()}


def overview() -> str:
    """All commands by group, one line each: what `specverdict --help` prints."""
    lines = [
        "usage: specverdict COMMAND ...",
        "",
        "Should speculative decoding be on, with which drafter, on this box?",
    ]
    for group, commands in COMMANDS.items():
        lines += ["", f"{group}:", *(f"  {name:13} {command.use}" for name, command in commands.items())]
    return "\n".join([*lines, "", "specverdict COMMAND --help shows a command's options."])


def parse(name: str, words: list[str]) -> tuple[argparse.Namespace, str]:
    """(a command's arguments, its module). Only that module is imported: `read` needs no chart library."""
    command = BY_NAME[name]
    module = f"runners.commands.{command.module}"
    example = " ".join(f"example: specverdict {name} {command.example}".split())
    parser = argparse.ArgumentParser(
        prog=f"specverdict {name}", description=command.use, epilog=example, allow_abbrev=False
    )
    importlib.import_module(module).add_arguments(parser)
    return parser.parse_args(words), module


def started_from_another_checkout(program: str) -> str | None:
    """What is wrong where `program` lies in the environment of a checkout that was copied: it would run the other one's
    code on the other one's runs, in silence.
    """
    place = Path(program).absolute()
    root = place.parents[2] if len(place.parents) > 2 else place
    if not (root / "runners" / "__main__.py").is_file() or root.resolve() == paths.ROOT or "PYTHONPATH" in os.environ:
        return None
    return (
        f"{place} belongs to the checkout at {paths.ROOT}, and {root} is a copy of it; run `make plan` there once, "
        "which sets its environment to it, or use `.venv/bin/python -m runners`."
    )


def main(argv: list[str] | None = None) -> int:
    """The exit code: 0 done, 1 a check failed, 2 bad input, 130 stopped."""
    if argv is None and (fault := started_from_another_checkout(sys.argv[0])):
        print(f"error: {fault}", file=sys.stderr)
        return 2
    words = sys.argv[1:] if argv is None else argv
    if not words or words[0] in ("-h", "--help"):
        print(overview())
        return 0 if words else 2
    if words[0] == "--version":
        print(f"specverdict {__version__}")
        return 0
    if words[0] not in BY_NAME:
        print(f"error: '{words[0]}' is not a command; use one of {', '.join(BY_NAME)}", file=sys.stderr)
        return 2
    secrets.learn_words(words)
    terminal.guard()
    # SIGTERM is handled like Ctrl-C, so that every server that was started is stopped first.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # a closed terminal too, but not under nohup
        signal.signal(signal.SIGHUP, signal.default_int_handler)
    try:
        args, module = parse(words[0], words[1:])
        return importlib.import_module(module).main(args) or 0
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        if error.errno not in DISK_ERRORS:
            raise
        path = error.filename or "the disk"
        advice = "free space or fix its permissions, then run again; finished cells are kept"
        print(f"error: {path}: {error.strerror}; {advice}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; finished cells are kept, run the same command again to continue", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
