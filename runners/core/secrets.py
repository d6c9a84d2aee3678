"""Which values are secret, and texts without them.

A secret is known by the name that it stands under: a variable of the environment, a flag, a header, a key of a profile.
Its value is learnt when it is first met. Whatever is written or printed later is masked by value, wherever it came from
(an engine that prints its command line, a server that repeats a header): files by `files.write_atomic`, the terminal by
`terminal.guard`, events by `progress.emit`, notebooks by `report/notebook.py`, an engine's log by its guardian.
"""

import functools
import html
import json
import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

NOT_SHOWN = "(not shown)"
SHORTEST = 8  # characters: a shorter value would be found in ordinary words too, and is masked under its name alone
_ORDINARY = re.compile(r"[a-z]{1,11}|[A-Z]{1,11}")  # "disabled", "metadata": a word that texts hold for other reasons
SCHEMES = ("bearer", "basic", "digest", "token", "apikey")  # what may stand before the secret in a header
_PAIR = re.compile(r"([\w.-]+)(?:=|: *)(.+)", re.DOTALL)  # of a command line: --flag=value, NAME=value, "Header: value"
_NAME = re.compile(r"[\w.-]+")
_NUMBER = re.compile(r"[-+.\d]+")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# Whole words: `tokenizer` is not `token`, `monkey` not `key`.
_WORDS = frozenset(
    """token tokens key keys apikey apikeys secret secrets password passwords passwd pwd pass passphrase passphrases
    credential credentials auth authorization bearer cookie cookies""".split()
)
# Written without a separator too: WANDBAPIKEY, myAccessKey, X-AuthToken.
_PARTS = ("apikey", "accesskey", "secretkey", "privatekey", "authtoken", "accesstoken", "passw", "secret", "credential")
_PLACES = ("env", "file", "path", "dir")  # last words of a name whose value says only where the secret is
_IN_ADDRESS = re.compile(r"""(://[^/@\s:"'<>,\\]*:)([^/@\s"'<>,\\]+)(?=@)""")  # scheme://user:password@host
_IN_ADDRESS_BYTES = re.compile(_IN_ADDRESS.pattern.encode())

_SPELLINGS: tuple[Callable[[str], str], ...] = (
    lambda text: json.dumps(text)[1:-1],
    lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    lambda text: repr(text)[1:-1],
    lambda text: quote(text, safe="", errors="replace"),
    html.escape,
    lambda text: html.escape(text, quote=False),
)

_learnt: dict[str, None] = {}  # in the order in which they were met


def is_name(name: str) -> bool:
    """Whether what stands under this name is a secret: HF_TOKEN, --api-key, Authorization, wandbApiKey."""
    words = [word.lower() for word in _WORD.findall(name)]
    if not words or words[-1] in _PLACES:
        return False
    joined = "".join(words)
    return not _WORDS.isdisjoint(words) or any(part in joined for part in _PARTS)


def is_secret(name: str, value: str) -> bool:
    """The same of a name with its value: a plain number is none (--speculative-num-draft-tokens 4)."""
    return is_name(name) and not _NUMBER.fullmatch(value)


def learn(*values: str) -> None:
    """Remember these values as secret, for as long as this process lives."""
    _learnt.update(dict.fromkeys(found for value in values for found in _values(value)))


def _values(text: str) -> Iterable[str]:
    """What of a text under a secret name is looked for: the whole, and what follows a header's scheme."""
    scheme, _, rest = text.strip().partition(" ")
    for value in (text.strip(), rest.strip() if scheme.lower() in SCHEMES else ""):
        if _telling(value):
            yield value


def _telling(value: str) -> bool:
    """Whether a text that holds this value must be masked. "${NAME}" says only where the value is, as a path does."""
    ordinary = value.startswith(("/", "~/")) or _ORDINARY.fullmatch(value) is not None
    return len(value) >= SHORTEST and "${" not in value and not ordinary


def learn_from(content: Any, name: str = "") -> None:
    """Learn every secret of nested content, such as a profile's as it was read: values by their keys, words of a
    command line by the flag before them, passwords in addresses.
    """
    if isinstance(content, Mapping):
        for key, value in content.items():
            learn_from(value, str(key))
    elif isinstance(content, list | tuple):
        if all(isinstance(word, str) for word in content):
            learn_words(content)
        for value in content:
            learn_from(value, name)
    elif isinstance(content, str):
        if is_secret(name, content):
            learn(content)
        if _is_command(name):
            learn_words(_split(content))
        for _, password in _IN_ADDRESS.findall(content):
            learn(password, unquote(password))


def learn_words(words: Iterable[str]) -> None:
    """Learn the secrets of a command line: `--api-key x`, `--api-key=x`, a header `X-Key: x`, `http://user:x@host`."""
    before = ""
    for word in words:
        if not word.startswith("--"):
            learn_from(word, before if before.startswith("--") else "")
        if pair := _PAIR.fullmatch(word):
            learn_from(pair[2], pair[1])
        before = word


def _is_command(name: str) -> bool:
    """Whether a text under this name is a whole command line: `command` of a profile, --base-command."""
    return [word.lower() for word in _WORD.findall(name)][-1:] == ["command"]


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:  # a quotation that is not closed
        return command.split()


def known() -> tuple[str, ...]:
    """Every spelling of every secret that is known now, the longest first; those of this environment among them."""
    return _spellings(tuple(_learnt), tuple(os.environ.items()))


@functools.lru_cache(maxsize=4)
def _spellings(learnt: tuple[str, ...], variables: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    values = dict.fromkeys(learnt)
    for name, text in variables:
        found = [text] if is_secret(name, text) else []
        found += [unquote(password) for _, password in _IN_ADDRESS.findall(text)]  # of an index, of a proxy
        values |= dict.fromkeys(value for one in found for value in _values(one))
    spelt = {spelling for value in values for spelling in _spelt(value)}
    return tuple(sorted(spelt, key=lambda s: (-len(s), s)))


def _spelt(value: str) -> set[str]:
    """A value as it is and as JSON, HTML, addresses and Python spell it; also twice, as in JSON within JSON."""
    spelt = {value}
    for _ in range(2):
        spelt |= {spell(one) for one in spelt for spell in _SPELLINGS}
    return spelt


def masked(text: str) -> str:
    """The text without the value of any secret that is known now, and without passwords in addresses."""
    for spelling in known():
        text = text.replace(spelling, NOT_SHOWN)
    return _IN_ADDRESS.sub(rf"\1{NOT_SHOWN}", text) if "://" in text else text


def masked_bytes(content: bytes) -> bytes:
    """The same of a text in UTF-8."""
    for spelling in known():
        content = content.replace(spelling.encode(errors="surrogatepass"), NOT_SHOWN.encode())
    return _IN_ADDRESS_BYTES.sub(rb"\1" + NOT_SHOWN.encode(), content) if b"://" in content else content


def hidden(content: Any, name: str = "") -> Any:
    """Nested content for another reader: what stands under a secret name left out, however short, the rest masked."""
    if isinstance(content, Mapping):
        return {key: hidden(value, str(key)) for key, value in content.items()}
    if isinstance(content, list | tuple):
        if all(isinstance(word, str) for word in content) and not is_name(name):
            return hidden_words(content)
        return [hidden(value, name) for value in content]
    if not isinstance(content, str):
        return content
    if _is_command(name):
        words = _split(content)
        shown = hidden_words(words)
        return content if shown == words else shlex.join(shown)
    return NOT_SHOWN if is_secret(name, content) and "${" not in content else masked(content)


def hidden_words(words: Sequence[str]) -> list[str]:
    """A command line without the value of any flag or variable whose name suggests a secret: `--api-key x`,
    `--api-key=x`, `HF_TOKEN=x`; what else it holds is masked by value.
    """
    before = ["", *words][: len(words)]
    # A flag may have no value: the next word is then a flag itself and is shown.
    after_a_secret = [
        b.startswith("--") and is_secret(b, w) and not w.startswith("--") for b, w in zip(before, words, strict=True)
    ]
    return [NOT_SHOWN if h else masked(_hidden_pair(w)) for h, w in zip(after_a_secret, words, strict=True)]


def _hidden_pair(word: str) -> str:
    """The form `--api-key=x`, which is one word."""
    name, equals, value = word.partition("=")
    plain = equals and _NAME.fullmatch(name) and is_secret(name, value)
    return f"{name}={NOT_SHOWN}" if plain else word
