"""How long and how large one streamed answer may become: no server can hold a cell for ever or fill the memory."""

import asyncio
from dataclasses import dataclass
from typing import Any

SLOWEST_TOKEN_S = 2.0  # of each token that was asked for: nobody serves more slowly
LARGEST_TOKEN = 32_768  # bytes: a chunk of one token has some hundred, and some thousand with the likeliest tokens
LARGEST_REST = 1_000_000  # bytes beside the tokens: a server may send the prompt back


@dataclass(frozen=True)
class Limits:
    """patience_s: the longest wait for a byte, and for the first token. whole_s: from the first token to the end.
    most_bytes: of the whole answer.
    """

    patience_s: float
    whole_s: float
    most_bytes: int

    @classmethod
    def of(cls, request: dict[str, Any], patience_s: float) -> "Limits":
        """The limits of a request, by the tokens that it asks for."""
        tokens = int(request.get("max_tokens", 1))
        return cls(patience_s, patience_s + SLOWEST_TOKEN_S * tokens, LARGEST_REST + LARGEST_TOKEN * tokens)

    def until(self) -> float:
        """When the answer must have ended, by the clock of the running loop, if its first token came now."""
        return asyncio.get_running_loop().time() + self.whole_s

    def exceeded(self, begun: bool, heard: bool) -> str:
        """Which limit of time was reached. begun: a token has come; heard: a byte has."""
        if begun:
            return f"the answer did not end within {self.whole_s:.0f} s of its first token"
        return f"no {'token' if heard else 'byte'} for {self.patience_s:.0f} s"
