"""JSON from outside, parsed whole or refused with ValueError, whatever it holds.

Python's own parser raises RecursionError for deep nesting. Nesting that it still reads would stop whoever walks the
result: writing it as JSON again, pydantic, a repr.
"""

import json
from typing import Any

DEEPEST = 100  # levels of lists and mappings; what engines, models and people write has less than 20
_TOO_DEEP = f"it is nested deeper than {DEEPEST} levels"


def loads(text: str | bytes) -> Any:
    """The content of a JSON text. ValueError, in a few words, for text that is none, is nested deeper than DEEPEST, or
    holds a number with more digits than Python reads (json.JSONDecodeError, with its place, where the syntax is wrong).
    """
    try:
        found = json.loads(text)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise
    except ValueError:
        raise ValueError("it holds a number of too many digits") from None
    # Counting costs little, walking costs as much as parsing: most texts have too few brackets to be deep.
    openings = text.count("[") + text.count("{") if isinstance(text, str) else text.count(b"[") + text.count(b"{")
    if openings > DEEPEST and _deep(found):
        raise ValueError(_TOO_DEEP)
    return found


def _deep(content: Any) -> bool:
    """Is it nested deeper than DEEPEST?"""
    level = [content]
    for _ in range(DEEPEST):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return False
    return any(isinstance(one, dict | list) for one in level)


def _inside(outer: Any) -> list[Any]:
    if isinstance(outer, dict):
        return list(outer.values())
    return outer if isinstance(outer, list) else []
