"""`specverdict patch`: add Kimi-K2.5's EAGLE-3 methods to an installed SGLang (engines/sglang_patch.py)."""

import argparse
from pathlib import Path

from runners.engines import sglang_patch


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("action", choices=("check", "apply", "revert"), help="look only, add the methods, or undo it")
    parser.add_argument("--sglang", metavar="FOLDER", help="the package to look at: .../site-packages/sglang")
    parser.add_argument("--python", help="the Python that has SGLang installed (default: python3)")


def main(args: argparse.Namespace) -> int:
    """`check` exits with 0 when nothing needs to be done, with 1 when the patch is needed."""
    found = sglang_patch.find(Path(args.sglang) if args.sglang else None, args.python)
    if args.action == "check":
        state, sentence = sglang_patch.check(found)
        print(sentence)
        return 1 if state == "needed" else 0
    print(sglang_patch.apply(found) if args.action == "apply" else sglang_patch.revert(found))
    return 0
