"""One short request to a server that runs already: does it answer as the cells will ask, and how fast is a stream?"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from runners.core.errors import UserError
from runners.measure.client import Job, Result, body, closed_loop

TOKENS = 32
QUESTION = "Write the numbers from one to forty as words, separated by commas."
REFUSED = ("HTTP 400", "HTTP 422")  # a field that the server does not take


@dataclass(frozen=True)
class Probe:
    """tokens_per_second: of one stream, after its first token. ends: whether answers can be made equally long
    ("fixed"), or end by themselves ("natural") because the server does not go on behind the end of a text.
    """

    tokens_per_second: float
    ends: Literal["fixed", "natural"]


def probe(url: str, headers: Mapping[str, str], model: str, fields: dict[str, Any], timeout_s: float) -> Probe:
    """Ask once. fields: what a request holds beside the usual ones.

    UserError when the server refuses the request, or its stream has no token or no count of tokens.
    """
    result = _answer(url, headers, model, fields, timeout_s, "fixed")
    ends: Literal["fixed", "natural"] = "fixed"
    if result.error is not None and result.error.startswith(REFUSED):
        result, ends = _answer(url, headers, model, fields, timeout_s, "natural"), "natural"
    if result.error is not None:
        raise UserError(f"{url} does not answer a chat request for {model}: {result.error}")
    tokens, first, last = result.output_tokens, result.first_token_s, result.last_token_s
    if first is None or last is None:
        raise UserError(f"{url} streams no token of {model}; look at its answer to a chat request with `stream: true`.")
    if tokens is None:
        raise UserError(
            f"{url} counts no tokens in its stream: asked with `include_usage: true` it must end with `usage`."
        )
    seconds = last - first if tokens > 1 and last > first else max(last - result.sent_s, 1e-3)
    return Probe(max(tokens - 1, 1) / seconds, ends if tokens == TOKENS else "natural")


def _answer(
    url: str, headers: Mapping[str, str], model: str, fields: dict[str, Any], timeout_s: float, ends: str
) -> Result:
    asked = body(model, [{"role": "user", "content": QUESTION}], TOKENS, 0.0, fields, ends)
    return closed_loop(url, [Job("probe", asked)], 1, timeout_s, None, headers).results[0]
