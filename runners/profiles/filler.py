"""Text that makes a context longer, and about how many tokens a text has."""

import re

# Words, digits and signs. The estimate only has to be near: a cell's real context is counted by the engine.
_PIECES = re.compile(r"[^\W\d_]+|\d|[^\w\s]|_")


def about_tokens(text: str) -> int:
    """About how many tokens a tokenizer would make: one for a word of up to six letters, for a digit and for a sign.

    A count by characters alone would be several times too small for numbers, which tokenizers split into digits.
    """
    return sum(1 + (len(piece) - 1) // 6 for piece in _PIECES.findall(text))


def filled(passages: list[str], first: int, tokens: int) -> str:
    """Whole words of the passages from number `first` on, until they are about that many tokens."""
    words: list[str] = []
    count, passage = 0, first
    while count < tokens:
        for word in (passages[passage % len(passages)].strip() + "\n\n").split(" "):
            words.append(word)
            count += about_tokens(word)
            if count >= tokens:
                break
        passage += 1
    return " ".join(words).strip()
