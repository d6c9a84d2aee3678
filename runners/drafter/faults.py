"""The faults that are put into a drafter, by name: what each is, what to do about it, and what names it rightly."""

NEXT = {
    "random-head": "serve with an lm_head: export the drafter again, or copy the target's rows of the draft vocabulary",
    "wrong-map": "rebuild d2t from the drafter's training vocabulary and serve again",
    "boundary+1": "lower each layer id by one (or serve with a release that adds none) and serve again",
    "boundary-1": "raise each layer id by one and serve again",
    "aux-order": "turn the input blocks of fc.weight to the ascending order of layers that engines capture in",
    "rope-base": "set rope_theta to the target's and serve again",
    "norm-flag": "flip norm_before_residual in the config and serve again",
    "int4": "serve the drafter in the dtype it was trained in",
    "bfloat16": "compare with the checkpoint it was rounded from; the loss is usually small",
    "short-context": "compare short with long prompts, alone and together: vLLM accepts nothing of a whole batch with "
    "one request beyond the limit",
    "weak": "compare with its held-out figures; more data, or a drafter made for this target",
    "engine": "serve at C=1 and at C=16: if only one is low, the engine mixes its slots",
}


# Names that are right for a fault: a drafter that is well, or was made for another target, is at most weak; one trained
# a layer later is served a layer too early.
SAME_FAULT = {
    "as-trained": ("weak", "none"),
    "int4-states": ("weak", "none"),
    "sibling": ("weak",),
    "trained+1": ("boundary-1",),
    "trained-1": ("boundary+1",),
}


AS_TRAINED = "as-trained"
# What each change stands for in the case's list of suspicions, in a reader's words.
CAUSES = {
    AS_TRAINED: "the drafter as it was trained",
    "random-head": "LM head missing, drawn at random by the engine",
    "wrong-map": "draft-to-target vocabulary map of another vocabulary",
    "boundary+1": "aux states one layer too late",
    "boundary-1": "aux states one layer too early",
    "aux-order": "aux states in reverse order",
    "rope-base": "RoPE base 10,000 instead of the target's",
    "norm-flag": "norm-before-residual flag flipped",
    "int4": "drafter quantized to four bits like the target",
    "bfloat16": "drafter rounded to bfloat16",
    "short-context": "drafter's position limit of 64",
    "int4-states": "trained on the INT4 kernels' states",
    "trained+1": "trained on aux states one layer later",
    "trained-1": "trained on aux states one layer earlier",
    "sibling": "trained for a sibling of the target",
}
