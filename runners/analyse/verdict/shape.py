"""What a verdict.json holds, as far as who reads it relies on it; more fields are welcome."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from runners.analyse.verdict.answers import USES
from runners.core.validation import first_fault

Number = Annotated[float, Field(allow_inf_nan=False)]
Triple = Annotated[list[Number | None], Field(min_length=3, max_length=3)]  # a figure with its interval
Count = Annotated[int, Field(ge=0)]
Concurrency = Annotated[int, Field(ge=1)]


def _use(name: str) -> str:
    if name not in USES:
        raise ValueError(f"must be one of {', '.join(USES)} (it is {name!r:.40})")
    return name


class _Part(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)


class Contender(_Part):
    configuration: str
    engine: str
    method: str
    k: Count | None
    precision: str
    concurrency: Concurrency
    value: Number | None
    end_to_end: Number | None
    decode: Number | None
    to_reference: Number | None


class _Choice(_Part):
    """What a choice holds beside the name of its configuration: across engines, and of one engine and precision."""

    engine: str
    precision: str
    method: str
    k: Count | None
    concurrency: Concurrency
    value: Number | None
    decode: Number | None
    to_reference: Number | None
    reason: str
    clear: bool | None
    among: list[Contender]
    runner_up: Contender | None
    ratio: Triple | None


class EngineChoice(_Choice):
    serve: str


class NoAnswer(_Part):
    use: Annotated[str, AfterValidator(_use)]
    workload: str
    mix: dict[str, Number] | None
    serve: str | None
    engines: list[EngineChoice]


class Answer(_Choice, NoAnswer):
    """An answer that names a configuration."""

    serve: str

    base: str | None
    over_base: Triple | None


class Point(_Part):
    """A speculative configuration at one load."""

    configuration: str
    engine: str
    method: str
    workload: str
    concurrency: Concurrency
    pays: str
    cause: str
    flip: str
    speed_up: Number | None
    speed_up_lo: Number | None
    speed_up_hi: Number | None
    step_cost: Annotated[Number, Field(gt=0)] | None
    step_cost_lo: Number | None
    step_cost_hi: Number | None
    p: Number | None
    drafted: Number | None
    accepted: Number | None


class Text(_Part):
    engine: str
    precision: str
    to_reference: Number | None


class More(_Part):
    points: Count
    open: Count
    unknown: Count
    decidable: Count
    minutes: Number | None


class NotMeasured(_Part):
    configuration: str
    reason: str


class Verdict(_Part):
    margin: Number
    unit: str
    answers: list[NoAnswer]
    text: list[Text]
    points: list[Point]
    more: More
    not_measured: list[NotMeasured]

    @model_validator(mode="after")
    def complete(self) -> "Verdict":
        for i, answer in enumerate(self.answers):
            if answer.serve is not None:
                try:
                    Answer.model_validate(answer.model_dump())
                except ValidationError as error:
                    raise ValueError(f"answer {i + 1}: {first_fault(error, Answer).rstrip('.')}") from error
        return self


def fault(content: dict) -> str | None:
    """What keeps a file's content from being a verdict, in words; None for a good one."""
    try:
        Verdict.model_validate(content)
    except ValidationError as error:
        return first_fault(error, Verdict).rstrip(".")
    return None
