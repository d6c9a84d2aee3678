"""The section `hardware` of a profile: the machine that it expects."""

from pydantic import Field

from runners.profiles.strict import Strict


class Hardware(Strict):
    """The machine that the profile expects: a description for the reader, numbers for the checks."""

    description: str
    cpu_cores: int | None = Field(default=None, ge=1)
    # How many servers fit into its memory at the same time. With two a ratio is made within seconds (measure/campaign).
    servers_at_once: int = Field(default=1, ge=1)
    gpus: int = Field(default=0, ge=0)
    gpu_name: str | None = None
    gpu_memory_gib: float | None = Field(default=None, gt=0)
