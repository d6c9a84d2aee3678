"""The second form of a model: a GGUF file beside a folder, so that engines of both forms share one profile."""

from pydantic import Field

from runners.profiles.strict import Strict


class GgufForm(Strict):
    """The target as a GGUF file, for engines that serve one."""

    path: str
    precision: str  # as the file has it, Q4_K_M for example
    bytes_on_disk: int = Field(default=0, ge=0)  # 0: unknown


def must_be_second(path: str | None, gguf: object) -> None:
    """ValueError where `gguf` is given and `path` is no folder that it could stand beside."""
    if gguf and (path is None or path.endswith(".gguf")):
        raise ValueError("`gguf` is the second form of a folder: set `path` to the folder, or to the file alone")
