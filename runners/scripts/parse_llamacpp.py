"""Parse command lines with the parser of our starter of llama.cpp's server; nothing is loaded or started.

Needs the standard library alone: the starter imports its engine only when it starts one.

    python parse_llamacpp.py REQUEST.json RESULT.json
REQUEST: {"commands": {name: [words after the program]}}; RESULT: {name: "" or the parser's own message}
"""

import json
import sys
from pathlib import Path

from llamacpp_server import parser


class Refused(Exception):
    pass


def refuse(message: str):
    raise Refused(message)


def main(request_file: Path, result_file: Path) -> None:
    starter = parser()
    starter.error = refuse
    result = {}
    for name, words in json.loads(request_file.read_text())["commands"].items():
        try:
            starter.parse_args(words)
            result[name] = ""
        except Refused as refused:
            result[name] = str(refused)
    result_file.write_text(json.dumps(result))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
