"""What is known of each way of drafting: one table for the checks, the gates and the analysis.

A method that is not in the table is served and measured all the same (its engine's own parser judges the name). Nothing
is assumed of it then: no gate judges whether it drafted, and no model is built on its cells.
"""

from dataclasses import dataclass
from typing import Literal

TREE = "-tree"  # the end of a method's name where a configuration drafts trees with it
UNNAMED = "unnamed"  # drafts through flags that name no method


@dataclass(frozen=True)
class Method:
    """chain: K draft tokens come from K passes of a model, one after the other, and the target verifies each of them.
    every_step: each decode step has a draft. False where steps without one exist, which engines leave out of their
    count of steps; None where it is not known. tree: several candidates a draft position, so that `accepted` of one
    step is no prefix of K tokens. drafter: whether a configuration must, may or cannot name one.
    """

    chain: bool = False
    every_step: bool | None = None
    tree: bool = False
    drafter: Literal["needed", "optional", "none"] = "optional"


_LOOKED_UP = Method(every_step=False, drafter="none")  # in the text so far: often there is nothing to propose
_CHAIN = Method(chain=True, every_step=True)
_ONE_PASS = Method(every_step=True)  # all K tokens from one pass: its cost does not grow with K as a chain's does

METHODS = {
    "none": Method(every_step=False, drafter="none"),
    "ngram": _LOOKED_UP,
    "ngram-cache": _LOOKED_UP,
    "ngram-mod": _LOOKED_UP,
    "suffix": _LOOKED_UP,
    "eagle3": Method(chain=True, every_step=True, drafter="needed"),
    "eagle": _CHAIN,
    "draft_model": _CHAIN,  # without a drafter the target drafts for itself
    "mtp": _CHAIN,  # the target's own extra layers, or a checkpoint of them
    "medusa": _ONE_PASS,
    "dflash": _ONE_PASS,
}

# The methods that the step model (analyse/step_model.py) is built on.
CHAINS = tuple(name for name, method in METHODS.items() if method.chain)


def method(name: str) -> Method:
    """What is known of a method; nothing (`Method()`) of one that the table does not hold.

    >>> method("eagle3").chain, method("eagle3-tree").chain, method("brand-new").every_step
    (True, False, None)
    """
    if name.endswith(TREE):
        known = METHODS.get(name.removesuffix(TREE), Method())
        return Method(every_step=known.every_step, tree=True, drafter=known.drafter)
    return METHODS.get(name, Method())
