"""The command line: `specverdict COMMAND`, or `specverdict COMMAND`. Bad input is one sentence and exit code 2."""

import argparse
import errno
import importlib
import signal
import sys
from typing import NamedTuple

from runners import __version__
from runners.core.errors import UserError

# A disk or a path that was given; any other OSError is a fault of ours and shows itself whole.
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
        "report": Command("run_report", "Measure what is missing, analyse it and build the book.", "--depth quick"),
        "plan": Command("show_plan", "Print each exact command, its environment and its time; start nothing.", ""),
        "preflight": Command("preflight.all_checks", "Look for what would fail, in seconds, before a long load.", ""),
        "rehearse": Command(
            "rehearse", "Run a whole report against stand-in engines; nothing is measured.", "--faults"
        ),
        "measure": Command("measure", "Measure one configuration.", "--configuration llamacpp-base"),
        "serve": Command("serve_winner", "Start the configuration that the verdict chose.", "--use single_stream"),
        "book": Command("build_book", "Build the book from runs that are there.", "--runs local"),
        "read": Command("read_log", "Tell what a log, a /metrics text or a /server_info says.", "server.log"),
        "compare": Command("compare", "Set two sets of runs side by side, ratio by ratio.", "published local"),
        "share": Command("share_runs", "Pack a profile's runs into one archive.", "--out mine.tar.gz"),
        "new-profile": Command("new_profile", "Look at this machine and write a profile for it.", "mine --model DIR"),
        "setup": Command("prepare", "Make the engine environments and the model.", "--engine vllm"),
    },
    "drafter": {
        "drafter": Command("make_drafter", "Make the profile's own EAGLE-3 drafter.", "--stage train"),
        "align": Command("measure_alignment", "Compare states, served and replayed accept lengths.", "--part states"),
        "diagnose": Command("diagnose", "Say why a drafter fails.", "--configuration vllm-eagle3-aligned"),
        "forecast": Command("forecast", "Forecast speed-ups of what is not measured yet.", "--profile lab-cpu-sweeps"),
    },
    "maintain": {
        "publish": Command("publish_runs", "Copy local runs to data/runs, to be committed.", "--machine no-amx"),
        "readme": Command("write_readme", "Write the verdict and its picture into the README.", ""),
        "audit-sglang": Command("audit_sglang", "Read what each SGLang release does from its wheel.", ""),
        "patch": Command("patch_sglang", "Check or patch Kimi-K2.5's EAGLE-3 methods in an SGLang.", "check"),
    },
}
BY_NAME = {name: command for group in COMMANDS.values() for name, command in group.items()}


def overview() -> str:
    """All commands by group, a line each: what `specverdict --help` prints."""
    lines = [
        "usage: specverdict COMMAND ...",
        "",
        "Should speculative decoding be on, with which drafter, on this box?",
    ]
    for group, commands in COMMANDS.items():
        lines += ["", f"{group}:", *(f"  {name:13} {command.use}" for name, command in commands.items())]
    return "\n".join([*lines, "", "specverdict COMMAND --help shows a command's options."])


def parsed(name: str, words: list[str]) -> tuple[argparse.Namespace, str]:
    """(a command's arguments, its module). Only that module is imported: a plan should not wait for pandas."""
    command = BY_NAME[name]
    module = f"runners.commands.{command.module}"
    example = " ".join(f"example: specverdict {name} {command.example}".split())
    parser = argparse.ArgumentParser(
        prog=f"specverdict {name}", description=command.use, epilog=example, allow_abbrev=False
    )
    importlib.import_module(module).add_arguments(parser)
    return parser.parse_args(words), module


def main(argv: list[str] | None = None) -> int:
    """The exit code: 0 done, 1 a check failed, 2 bad input, 130 stopped."""
    words = sys.argv[1:] if argv is None else argv
    if not words or words[0] in ("-h", "--help"):
        print(overview())
        return 0 if words else 2
    if words[0] == "--version":
        print(f"specverdict {__version__}")
        return 0
    if words[0] not in BY_NAME:
        print(f"error: there is no command '{words[0]}'; there are {', '.join(BY_NAME)}", file=sys.stderr)
        return 2
    # A polite kill is an interrupt like Ctrl-C: everything that was started comes down first.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # a closed terminal too, unless nohup asked otherwise
        signal.signal(signal.SIGHUP, signal.default_int_handler)
    try:
        args, module = parsed(words[0], words[1:])
        return importlib.import_module(module).main(args) or 0
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        if error.errno not in DISK_ERRORS:
            raise
        where = error.filename or "the disk"
        advice = "free space or fix its permissions, then run again; finished cells are kept"
        print(f"error: {where}: {error.strerror}; {advice}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; finished cells are kept, run the same command again to go on", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
