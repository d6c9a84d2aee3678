"""The whole command line of a server, as a person types it: `command` of a configuration. Nothing is added to it."""

import re
import shlex
from typing import Annotated

from pydantic import AfterValidator

PORT = "{port}"  # replaced by the number of a free port
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


def split(text: str, port: int) -> tuple[list[str], dict[str, str]]:
    """(words, variables): variables stand before the program, as in a shell: `HF_HUB_OFFLINE=1 vllm serve ...`.

    >>> split("A=1 serve --port {port} --name 'a b'", 8000)
    (['serve', '--port', '8000', '--name', 'a b'], {'A': '1'})
    """
    words = [word.replace(PORT, str(port)) for word in shlex.split(text)]
    first = next((i for i, word in enumerate(words) if not _ASSIGNMENT.match(word)), len(words))
    variables = (word.partition("=") for word in words[:first])
    return words[first:], {name: value for name, _, value in variables}


def can_be_started(text: str) -> str:
    """The command line as it is; ValueError says what must be true of it."""
    try:
        words, _ = split(text, 0)
    except ValueError as error:  # a quotation that is not closed
        raise ValueError(f"must be a command line as a shell takes it ({error})") from error
    if not words:
        raise ValueError("must name a program")
    if PORT not in text:
        raise ValueError(f"must hold {PORT} where the server is told its port, as in --port {PORT}")
    return text


WholeCommand = Annotated[str, AfterValidator(can_be_started)]
