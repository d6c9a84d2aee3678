"""What may be written or shown: secrets left out, this machine's folders by name."""

import re
from pathlib import Path

from runners.core import paths

# Whole words: a tokenizer is no token. A plain number is no secret either (a count of draft tokens).
SECRET = re.compile(
    r"(?<![a-z])(?:tokens?|keys?|secrets?|passw(?:or)?ds?|passphrase|credentials?)(?![a-z])", re.IGNORECASE
)


def masked(env: dict[str, str]) -> dict[str, str]:
    """Variables as they may be shown: the value of one that sounds like a secret is left out."""
    return {name: "(not shown)" if _secret(name, value) else value for name, value in env.items()}


def _secret(name: str, value: str) -> bool:
    return bool(SECRET.search(name)) and not value.isdigit()


def masked_argv(argv: list[str]) -> list[str]:
    """A command line as it may be shown: the word after a flag that sounds like a secret is left out."""
    flags = ["", *argv[:-1]]
    hidden = [f.startswith("--") and _secret(f, w) and not w.startswith("--") for f, w in zip(flags, argv, strict=True)]
    return ["(not shown)" if h else _masked_pair(w) for h, w in zip(hidden, argv, strict=True)]


def _masked_pair(word: str) -> str:
    """--api-key=x is one word."""
    flag, equals, value = word.partition("=")
    return f"{flag}=(not shown)" if equals and flag.startswith("--") and _secret(flag, value) else word


def without_home(text: str) -> str:
    """Paths as a reader may see them: the cache and the checkout by name, not where they lie here."""
    for place, name in ((paths.cache(), "$CACHE"), (paths.ROOT, "$ROOT"), (Path.home(), "~")):
        text = text.replace(str(place), name)
    return text
