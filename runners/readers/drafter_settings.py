"""What a log says of the drafter that the server was started with: method, head, drafts a step.

Found in the command line or in what the engine prints of its settings, in the first lines of a log.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_METHOD = re.compile(
    r"(?:speculative_algorithm=|--speculative-algorithm[ =]|--spec-type[ =]|adding speculative implementation "
    r"|statistics +(?=[\w-]+:? +#calls)|speculative.*?\bmethod['\"]?\s*[=:]\s*)['\"]?(?!None\b|none\b)([A-Za-z][\w-]*)"
)
_HEAD = re.compile(
    r"(?:Load weight end\..* type=|Resolved architecture: )(\w*(?:Eagle|EAGLE|NextN|MTP|Medusa|DFlash)\w*)"
)
_FOLDER = re.compile(
    r"(?:speculative_draft_model_path=|--speculative-draft-model-path[ =]|speculative.*?\bmodel['\"]?\s*[=:]\s*"
    r"|loading draft model )['\"]?([^'\",) ]+)"
)
_DRAFTS = re.compile(r"num_speculative_tokens['\"]?\s*[=:]\s*(\d+)|num_spec_tokens=(\d+)")
_EAGLE3 = re.compile(r"eagle-?_?3", re.IGNORECASE)


@dataclass(frozen=True)
class DrafterSettings:
    """As printed; None for each that the text does not tell. head: the class of the drafter's model, or the name of its
    folder where no class is printed. k: drafts a step.
    """

    method: str | None = None
    head: str | None = None
    k: int | None = None

    def disagree(self) -> bool:
        """Whether the method is for another kind of EAGLE head: the two take different hidden states."""
        if self.method is None or self.head is None or "eagle" not in self.head.lower():
            return False
        method = self.method.lower()
        if "eagle" not in method:
            return False
        return bool(_EAGLE3.search(method)) != bool(_EAGLE3.search(self.head))


def drafter_settings(lines: Iterable[str]) -> DrafterSettings:
    """The first of each that these lines tell."""
    method = head = folder = None
    k: int | None = None
    for line in lines:
        if "spec" not in line and "raft" not in line and "type=" not in line and "rchitecture" not in line:
            continue
        method = method or _first(_METHOD, line)
        head = head or _first(_HEAD, line)
        folder = folder or _first(_FOLDER, line)
        if k is None and (found := _DRAFTS.search(line)):
            k = int(found[1] or found[2])
    # A folder's name tells of an EAGLE-3 head only where it says so; many names tell nothing.
    named = folder.rstrip("/").rpartition("/")[2] if folder and _EAGLE3.search(folder) else None
    return DrafterSettings(method, head or named, k)


def _first(pattern: re.Pattern[str], line: str) -> str | None:
    found = pattern.search(line)
    return found[1] if found else None
