"""`specverdict patch`: Kimi-K2.5's EAGLE-3 methods in an installed SGLang (engines/sglang_patch.py)."""

import argparse
from pathlib import Path

from runners.engines import sglang_patch


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("check", "apply", "revert"))
    parser.add_argument("--sglang", metavar="FOLDER", help=".../site-packages/sglang")
    parser.add_argument("--python", help="the Python whose SGLang it is (default: python3)")


def main(args: argparse.Namespace) -> int:
    """Exit code of `check`: 0 when nothing is to do, 1 when the patch is needed."""
    found = sglang_patch.find(Path(args.sglang) if args.sglang else None, args.python)
    if args.action == "check":
        state, sentence = sglang_patch.check(found)
        print(sentence)
        return 1 if state == "needed" else 0
    print(sglang_patch.apply(found) if args.action == "apply" else sglang_patch.revert(found))
    return 0
