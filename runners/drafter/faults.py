"""The one table of faults: each fault's name, what it is, what to do next, and which diagnosis names it rightly.

To add a fault: add a row here; if it is a fault of the checkpoint, add its function to scripts/derive_drafter.py and
its name to `Fault` in profiles/schema.py as well. A test compares the three.
"""

from dataclasses import dataclass
from typing import Literal

# Where a fault comes from: nowhere (the drafter as it is), scripts/derive_drafter.py, a training (the `variants` of a
# profile's training section), or only a diagnosis, which names it and nobody puts it in.
Origin = Literal["none", "checkpoint", "training", "diagnosis"]


@dataclass(frozen=True)
class Fault:
    """One fault. `name` is its key in profiles, files and on the command line; `what` and `next_step` are for readers.

    named_as: the diagnoses that are right for this fault; its own name where empty.
    measured: whether `specverdict align` serves and replays it.
    """

    name: str
    origin: Origin
    what: str
    next_step: str
    named_as: tuple[str, ...] = ()
    measured: bool = True


AS_TRAINED = "as-trained"
# A drafter without a fault, or one that was made for another target, is weak at most.
WEAK_AT_MOST = ("weak", "none")

# In the order in which tables and charts show them.
_ROWS = (
    Fault(
        AS_TRAINED,
        "none",
        "the drafter as it was trained",
        "nothing: this is the drafter that the faults are compared with",
        named_as=WEAK_AT_MOST,
    ),
    Fault(
        "random-head",
        "checkpoint",
        "LM head missing, drawn at random by the engine",
        "serve with an lm_head: export the drafter again, or copy the target's rows of the draft vocabulary",
    ),
    Fault(
        "wrong-map",
        "checkpoint",
        "draft-to-target vocabulary map of another vocabulary",
        "rebuild d2t from the drafter's training vocabulary and serve again",
    ),
    Fault(
        "boundary+1",
        "checkpoint",
        "aux states one layer too late",
        "lower each layer id by one (or serve with a release that adds none) and serve again",
    ),
    Fault(
        "boundary-1",
        "checkpoint",
        "aux states one layer too early",
        "raise each layer id by one and serve again",
    ),
    Fault(
        "aux-order",
        "checkpoint",
        "aux states in reverse order",
        "put the input blocks of fc.weight in ascending order of layers, the order that engines capture in",
    ),
    Fault(
        "rope-base",
        "checkpoint",
        "RoPE base 10,000 instead of the target's",
        "set rope_theta to the target's and serve again",
    ),
    Fault(
        "norm-flag",
        "checkpoint",
        "norm-before-residual flag flipped",
        "flip norm_before_residual in the config and serve again",
    ),
    Fault(
        "int4",
        "checkpoint",
        "drafter quantized to four bits like the target",
        "serve the drafter in the dtype it was trained in",
    ),
    Fault(
        "bfloat16",
        "checkpoint",
        "drafter rounded to bfloat16",
        "compare with the checkpoint it was rounded from; the loss is usually small",
    ),
    Fault(
        "short-context",
        "checkpoint",
        "drafter's position limit of 64",
        "compare short with long prompts, alone and together: if one request is longer than the limit, vLLM accepts "
        "nothing for its whole batch",
    ),
    Fault(
        "int4-states",
        "training",
        "trained on the INT4 kernels' states",
        "capture the states with the reference model and train again",
        named_as=WEAK_AT_MOST,
    ),
    # A drafter trained one layer later is served one layer too early, and the reverse.
    Fault(
        "trained+1",
        "training",
        "trained on aux states one layer later",
        "raise each layer id by one, or train on the states that are served",
        named_as=("boundary-1",),
    ),
    Fault(
        "trained-1",
        "training",
        "trained on aux states one layer earlier",
        "lower each layer id by one, or train on the states that are served",
        named_as=("boundary+1",),
    ),
    Fault(
        "sibling",
        "training",
        "trained for a sibling of the target",
        "train a drafter for this target",
        named_as=("weak",),
    ),
    # Drafters of graded quality, for sweeps over the accept length: no fault that anyone met.
    Fault(
        "noise-0.2",
        "checkpoint",
        "noise of 0.2 of each matrix's standard deviation",
        "serve the drafter without the noise",
        measured=False,
    ),
    Fault(
        "noise-0.4",
        "checkpoint",
        "noise of 0.4 of each matrix's standard deviation",
        "serve the drafter without the noise",
        measured=False,
    ),
    Fault(
        "weak",
        "diagnosis",
        "no fault found: the drafter itself is weak",
        "compare with its held-out figures; more data, or a drafter made for this target",
        measured=False,
    ),
    Fault(
        "engine",
        "diagnosis",
        "the engine serves less than replay predicts",
        "serve at C=1 and at C=16: if only one is low, the engine mixes its slots",
        measured=False,
    ),
)
FAULTS = {fault.name: fault for fault in _ROWS}
MEASURED = tuple(name for name, fault in FAULTS.items() if fault.measured)


def what(name: str) -> str:
    """A fault in a reader's words; the name itself for one of an older version, which the table no longer has."""
    return FAULTS[name].what if name in FAULTS else name


def names_rightly(diagnosis: str, fault: str) -> bool:
    """Is this the right diagnosis of the fault?"""
    return diagnosis in ((fault in FAULTS and FAULTS[fault].named_as) or (fault,))
