"""Chapter Drafter: its text, its training, replay against served, and what it reaches of its aim."""

import math
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from runners.core.format import NOT_MEASURED
from runners.drafter import published_results
from runners.drafter.published_results import AIM_LENGTH, AIM_SPEED_UP
from runners.report import borrowed


@dataclass(frozen=True)
class Data:
    """What the chapter shows, as it was published."""

    text: pd.DataFrame  # the corpus by kind and part
    facts: dict  # of the training: tokens, parameters, device
    history: list[dict]  # the evaluations on held-out subjects, in the order of training
    scaling: pd.DataFrame  # the same training on more and more text
    replay: pd.DataFrame  # accept length served and replayed
    slots: pd.DataFrame  # llama.cpp's accept length by concurrency and by where it samples draft tokens
    aim: pd.DataFrame  # accept length and step cost reached at C=1
    mark: str  # of replay and slots: borrowed.Source


def load(runs: str | Path, profile: str) -> Data:
    """Read what was published of the drafter and of its serving; empty where nothing was."""
    training = published_results.training()
    served = borrowed.alignment(runs, profile)
    return Data(
        published_results.text(),
        training["facts"],
        training["history"],
        published_results.scaling(),
        published_results.replay(served.runs, served.profile),
        published_results.llamacpp_slots(served.runs, served.profile),
        published_results.aim(runs, profile),
        served.mark,
    )


def text_sentence(text: pd.DataFrame) -> str:
    """How much text the target wrote."""
    if text.empty:
        return f"Text: {NOT_MEASURED}."
    return f"**{text['answers'].sum():,} answers, {text['answer tokens'].sum():,} answer tokens.**"


def training_sentence(facts: dict, history: list[dict]) -> str:
    """The size of the training, and what the last evaluation on held-out subjects found."""
    if not history:
        return f"Training: {NOT_MEASURED}."
    last = history[-1]
    top1 = ", ".join(f"{x:.0%}" for x in last["top1"])
    return (
        f"**{facts['parameters'] / 1e6:.1f} million parameters, {facts['train_tokens']:,} answer tokens, "
        f"{last['seconds'] / 60:.0f} minutes: held-out top-1 {top1} over the draft steps, an accept length of "
        f"{last['accept_length']:.2f} from every position.**"
    )


def scaling_sentence(scaling: pd.DataFrame) -> str:
    """What the last doubling of the text brought."""
    if len(scaling) < 2:
        return f"Scaling with data: {NOT_MEASURED}."
    return (
        "**At the largest size, doubling the text changes the held-out accept length by "
        f"{gain_of_a_doubling(scaling):+.2f}.** "
        "Steps and time grow with the text: every size is trained for the same number of epochs."
    )


def gain_of_a_doubling(scaling: pd.DataFrame) -> float:
    """Accept length that the last doubling of the text brought, by the slope between the two largest sizes."""
    a, b = scaling.sort_values("train_tokens").iloc[-2:].itertuples(index=False)
    return (b.accept_length - a.accept_length) / math.log2(b.train_tokens / a.train_tokens)


def replay_sentence(replay: pd.DataFrame) -> str:
    """The largest difference between a served and a replayed accept length."""
    if replay.empty:
        return f"Replay against served: {NOT_MEASURED}."
    worst = replay["difference"].abs().max()
    return f"**Served and replayed accept lengths differ by {worst:.1%} at most.**"


def slots_sentence(slots: pd.DataFrame) -> str:
    """Accept lengths of llama.cpp as concurrency rises, for both places where draft tokens can be sampled."""
    rows = slots.sort_values("concurrency")
    graph, host = (
        ", ".join(f"{v:.2f}" for v in rows["served"][rows["draft_sampling"] == where]) for where in ("graph", "host")
    )
    if not graph:
        return f"llama.cpp's slots: {NOT_MEASURED}."
    return (
        f"**Served accept length with rising concurrency: {graph} sampled in the graph, "
        f"{host or NOT_MEASURED} on the host.**"
    )


def aim_sentence(aim: pd.DataFrame) -> str:
    """The aim that was set before training, and the best that was reached."""
    if aim.empty:
        return f"The aim: {NOT_MEASURED}."
    best = aim.sort_values("speed_up").iloc[-1]
    return (
        f"Aimed at: accept length {AIM_LENGTH:g} on chat, decoding {AIM_SPEED_UP:g} times as fast as base at C=1. "
        f"**The best at C=1: {best['speed_up']:.2f}x on {best['workload']} by {best['configuration']}.**"
    )


def replay_table(replay: pd.DataFrame) -> pd.DataFrame:
    """Accept length served and replayed, and how far they are apart."""
    return replay.assign(difference=[f"{d:+.1%}" for d in replay["difference"]]).round(3)


def aim_table(aim: pd.DataFrame) -> pd.DataFrame:
    """What the drafter reaches of its aim at C=1, and what it would take."""
    return pd.DataFrame(
        {
            "configuration": aim["configuration"],
            "workload": aim["workload"],
            "accept length": aim["accept_length"].round(2),
            "step-cost ratio r": aim["step_cost"].round(2),
            "decode speed-up": aim["speed_up"].round(2),
            "accept length needed at this r": aim["needs_length"].round(2),
            "r needed at this accept length": aim["needs_cost"].round(2),
            "falls short in": aim["short"],
        }
    )
