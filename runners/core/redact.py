"""What may be shown of this machine: a command without its secrets, folders by name instead of by path."""

from collections.abc import Iterable
from pathlib import Path

from runners.core import paths, secrets
from runners.core.secrets import NOT_SHOWN


def masked(env: dict[str, str]) -> dict[str, str]:
    """Environment variables without the value of each whose name suggests a secret, the others masked by value."""
    return {k: NOT_SHOWN if secrets.is_secret(k, v) else secrets.masked(v) for k, v in env.items()}


def masked_argv(argv: list[str]) -> list[str]:
    """A command line without the value of any flag whose name suggests a secret: `--api-key x`, `--api-key=x`; what
    else it holds is masked by value.
    """
    return secrets.hidden_words(argv)


def without_home(text: str) -> str:
    """The text with the cache, the checkout and the home folder by name instead of by path."""
    # The most specific first: the cache and the checkout often lie in the home folder.
    for folder, name in ((paths.cache(), "$CACHE"), (paths.ROOT, "$ROOT"), (Path.home(), "~")):
        text = text.replace(str(folder), name)
    return text


def without_words(text: str, words: Iterable[str]) -> str:
    """The text without these words, such as a key that a server's answer repeats; short ones are no secrets."""
    for word in words:
        if len(word) >= secrets.SHORTEST:
            text = text.replace(word, NOT_SHOWN)
    return text
