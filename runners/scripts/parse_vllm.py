"""Parse command lines with the real argument parser of the installed vLLM; nothing is loaded or started.

Runs inside an environment that has vLLM (the CPU build will do: the flags are the same).

    python parse_vllm.py REQUEST.json RESULT.json
REQUEST: {"commands": {name: [words after the module]}}; RESULT: {name: "" or the parser's own message}
"""

import dataclasses
import json
import sys
from pathlib import Path


class Refused(Exception):
    pass


def refuse(message: str):
    raise Refused(message)


def main(request_file: Path, result_file: Path) -> None:
    from vllm.config import SpeculativeConfig
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    try:
        from vllm.entrypoints.launchers.cli_args import make_arg_parser
    except ImportError:  # where earlier releases keep it
        from vllm.entrypoints.openai.cli_args import make_arg_parser

    known = {field.name for field in dataclasses.fields(SpeculativeConfig)}
    # vLLM takes abbreviations; one that is clear today may name two flags in the next release.
    parser = make_arg_parser(FlexibleArgumentParser(allow_abbrev=False))
    parser.error = refuse
    result = {}
    for name, words in json.loads(request_file.read_text())["commands"].items():
        try:
            args = parser.parse_args(words)
            # The parser takes any JSON; its keys are looked at only when the engine starts.
            unknown = sorted(set(args.speculative_config or {}) - known)
            result[name] = f"--speculative-config: unknown key {unknown[0]}" if unknown else ""
        except Refused as refused:
            result[name] = str(refused)
    result_file.write_text(json.dumps(result))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
