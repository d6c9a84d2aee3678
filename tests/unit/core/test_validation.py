"""A failed validation in one sentence: where, what must be true, what is allowed."""

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from runners.core.validation import first_fault


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Engine(Strict):
    port: int = Field(default=1, ge=1)
    kind: str = "a"


class File(Strict):
    name: str = Field(min_length=1)
    engines: dict[str, Engine] = {}
    sizes: list[int] | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def not_called_x(self):
        if self.name == "x":
            raise ValueError("name must not be x")
        return self


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({}, "key `name` is missing."),
        ({"name": "x"}, "name must not be x."),
        (
            {"name": "a", "engines": {"e": {"port": 0}}},
            "key `engines.e.port` must be greater than or equal to 1 (it is 0).",
        ),
        ({"name": "a", "engines": {"e": {"prot": 1}}}, "key `engines.e.prot` is unknown; allowed there: kind, port."),
        ({"name": "a", "more": 1}, "key `more` is unknown; allowed there: engines, name, sizes."),
        ({"name": "a", "sizes": []}, "key `sizes` must have at least 1 item after validation, not 0 (it is [])."),
        ({"name": 3, "sizes": ["b"]}, "key `name` must be a valid string (it is 3); and 1 more."),
        ([], "the file must be a valid dictionary or instance of File (it is [])."),
    ],
)
def test_the_first_fault_is_a_sentence(content, sentence):
    with pytest.raises(ValidationError) as error:
        File.model_validate(content)
    assert first_fault(error.value, File) == sentence
