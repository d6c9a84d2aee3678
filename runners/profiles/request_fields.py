"""Fields that a profile adds to every request (`body`), in the words of the engine's API: top_p, seed, and so on."""

import json
from typing import Annotated, Any

from pydantic import AfterValidator

# What the client sets itself: two values for one thing would leave open which of them was measured.
OURS = {
    "model": "`target.name` names the model, `attach.model` that of a server that runs already",
    "messages": "`prompt_sets` says what is asked",
    "stream": "answers are streamed, or no token had a time",
    "stream_options": "answers are streamed with their counts",
    "max_tokens": "`output_tokens` sets it",
    "max_completion_tokens": "`output_tokens` sets it",
    "temperature": "the workload's `temperature` sets it",
    "ignore_eos": "`ends` sets it",
    "n": "a request has one answer",
}
STOPS = ("stop", "stop_token_ids")  # fields that end an answer early


def _not_ours(given: dict[str, Any]) -> dict[str, Any]:
    for name in OURS:
        if name in given:
            raise ValueError(f"`{name}` is not set here: {OURS[name]}")
    try:
        json.dumps(given, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"must be what JSON can hold: texts, numbers, lists and mappings ({error})") from error
    return given


RequestFields = Annotated[dict[str, Any], AfterValidator(_not_ours)]


def ends_early(fields: dict[str, Any]) -> str | None:
    """The first of the fields that would end an answer before its fixed length; None where there is none."""
    return next((name for name in STOPS if fields.get(name)), None)
