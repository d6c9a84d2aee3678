"""What may be written or shown: secrets are left out, this machine's folders are replaced by names."""

import re
from collections.abc import Iterable
from pathlib import Path

from runners.core import paths

SHORTEST_SECRET = 8  # characters
# Whole words: `tokenizer` is not `token`. A plain number is not a secret either (--speculative-num-draft-tokens 4).
SECRET = re.compile(
    r"(?<![a-z])(?:tokens?|keys?|secrets?|passw(?:or)?ds?|passphrase|credentials?)(?![a-z])", re.IGNORECASE
)


def masked(env: dict[str, str]) -> dict[str, str]:
    """Environment variables with the value of each whose name suggests a secret left out."""
    return {name: "(not shown)" if _secret(name, value) else value for name, value in env.items()}


def _secret(name: str, value: str) -> bool:
    return bool(SECRET.search(name)) and not value.isdigit()


def masked_argv(argv: list[str]) -> list[str]:
    """A command line without the value of any flag whose name suggests a secret: `--api-key x`, `--api-key=x`."""
    flags = ["", *argv][: len(argv)]  # the word before each
    # A flag may have no value: the next word is then a flag itself and is shown.
    hidden = [f.startswith("--") and _secret(f, w) and not w.startswith("--") for f, w in zip(flags, argv, strict=True)]
    return ["(not shown)" if h else _masked_pair(w) for h, w in zip(hidden, argv, strict=True)]


def _masked_pair(word: str) -> str:
    """The form `--api-key=x`, which is one word."""
    flag, equals, value = word.partition("=")
    return f"{flag}=(not shown)" if equals and flag.startswith("--") and _secret(flag, value) else word


def without_home(text: str) -> str:
    """The text with the cache, the checkout and the home folder by name instead of by path."""
    # The most specific first: the cache and the checkout often lie in the home folder.
    for folder, name in ((paths.cache(), "$CACHE"), (paths.ROOT, "$ROOT"), (Path.home(), "~")):
        text = text.replace(str(folder), name)
    return text


def without_words(text: str, words: Iterable[str]) -> str:
    """The text without these words, such as a key that a server's answer repeats; short ones are no secrets."""
    for word in words:
        if len(word) >= SHORTEST_SECRET:
            text = text.replace(word, "(not shown)")
    return text
