"""The section `gates` of a profile: the limits that a cell is judged by (measure/gates.py and its siblings)."""

from typing import Literal

from pydantic import Field

from runners.profiles.schema import EngineName, Share
from runners.profiles.strict import Strict

EqualText = Literal["exact", "floor"]


class Gates(Strict):
    """Floors and ceilings; a cell outside one is void (book, chapter Method).

    equal_to_base: at temperature 0, for all engines or by engine. `exact`: each answer is the base's, to the last
    character. `floor`: answers share that much of it (`equal_to_base_floor`, for 16 answers or more of one cell).
    """

    distinct_bigram_floor: Share = 0.2
    neighbour_cores_ceiling: float = Field(default=0.25, gt=0)
    steal_ceiling: Share = 0.05
    equal_to_base: EqualText | dict[EngineName, EqualText] = "floor"
    equal_to_base_floor: Share = 0.5
    equal_to_reference_floor: Share | None = None  # None: this machine has no reference model
    check_neighbours: bool = True

    def exact_text(self, engine: str) -> bool:
        """Must this engine's configurations repeat the base's text exactly? An engine that is not named need not."""
        rule = self.equal_to_base
        return (rule.get(engine, "floor") if isinstance(rule, dict) else rule) == "exact"
