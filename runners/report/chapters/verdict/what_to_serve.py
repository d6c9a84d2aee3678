"""What to serve: the verdict's answers in whole sentences and as tables; for the book, the README and the terminal."""

import pandas as pd

from runners.analyse.verdict.answers import MIX, USES
from runners.analyse.verdict.to_serve import to_serve
from runners.core.format import NOT_MEASURED, listed, number, percent, triple_text
from runners.engines.registry import all_engines

NAMED = 3  # so many of those that are not clearly behind are named, the others are counted


def answers_of(verdict: dict, use: str) -> list[dict]:
    """The answers for a use, one a workload, the mix last."""
    return [a for a in verdict["answers"] if a["use"] == use]


def use_sentences(verdict: dict, use: str) -> str:
    """The answer for each workload, a sentence each."""
    found = answers_of(verdict, use)
    if not found:
        phrase = USES[use].phrase
        return f"{phrase[0].upper()}{phrase[1:]}: {NOT_MEASURED}."
    return " ".join(map(answer_sentence, found))


def answer_sentence(answer: dict) -> str:
    """One answer: what to serve, how fast it is, how much that is over its base, and what else is as good."""
    opening = f"For {_workload_text(answer)}, {USES[answer['use']].phrase}"
    if not answer["serve"]:
        none = "no configuration meets them" if answer["use"] == "goodput" else NOT_MEASURED
        return f"{opening}: {none}."
    measured = f"{answer['serve']}{_at(answer)} ({_speeds(answer)})"
    if answer["clear"] is False:
        return f"{opening}: no clear winner: {_either(answer)}. Serve {measured}: {answer['reason']}."
    return f"{opening}: serve {measured}{_lead(answer)}."


def _workload_text(answer: dict) -> str:
    if answer["workload"] != MIX:
        return answer["workload"]
    return f"the mix ({', '.join(f'{name} {share:.0%}' for name, share in answer['mix'].items())})"


def _at(contender: dict) -> str:
    return "" if contender["concurrency"] == 1 else f" at C={contender['concurrency']}"


def _either(answer: dict) -> str:
    """`A or B`, `A, B or C`; of more than NAMED the first ones, and how many there are."""
    names = [_named(answer, c) for c in answer["among"]]
    if len(names) > NAMED:
        return f"{listed(names[:NAMED])} or {len(names) - NAMED} more"
    return f"{', '.join(names[:-1])} or {names[-1]}"


def _named(answer: dict, other: dict) -> str:
    """Another configuration's name, with its precision where it differs from that of the choice."""
    same = other["precision"] == answer["precision"]
    return other["configuration"] if same else f"{other['configuration']} ({other['precision']})"


def _speeds(answer: dict) -> str:
    """`72.1 tok/s end to end, 101.3 while decoding; 1.17 [1.07, 1.28] times llamacpp-base`."""
    stream = number(answer["decode"], 1)
    if answer["use"] == "single_stream":
        text = f"{number(answer['value'], 1)} tok/s end to end, {stream} while decoding"
    else:
        text = f"{number(answer['value'], 1)} {USES[answer['use']].unit}, {stream} a stream while decoding"
    return text + (f"; {triple_text(answer['over_base'])} times {answer['base']}" if answer["over_base"] else "")


def _lead(answer: dict) -> str:
    """Of a clear answer by how much; and of one alone that nothing stands beside it."""
    second = answer["runner_up"]
    if second is None:
        return ", the only one measured"
    if answer["over_base"] and second["configuration"] == answer["base"]:
        return f", clearly ahead of {answer['base']}"
    return f", clearly ahead: {triple_text(answer['ratio'])} times {_named(answer, second)}"


def text_sentence(verdict: dict) -> str:
    """In which precision each engine serves, and how much of its text is the reference's."""
    groups = verdict["text"]
    if not groups:
        return f"The engines' texts: {NOT_MEASURED}."
    if len({g["precision"] for g in groups}) == 1:
        return f"All serve the target in the same precision ({groups[0]['precision']})."
    parts = []
    for g in groups:
        name = engine.title if (engine := all_engines().get(g["engine"])) else g["engine"]
        parts.append(f"{name} serves {g['precision']}{_equal_text(g['to_reference'])}")
    return f"The engines' texts differ: {'; '.join(parts)}. So a choice across engines is also one between texts."


def _equal_text(share: float | None) -> str:
    if share is None:
        return ""
    part = "" if share >= 0.995 else f"the first {percent(share, 0)} of "
    return f", whose answers equal {part}the reference model's"


def serve_sentence(verdict: dict, use: str = "throughput") -> str:
    """What `make serve` starts without further words."""
    chosen = to_serve(verdict, use)
    if chosen is None:
        return f"What `make serve` would start: {NOT_MEASURED}."
    name, why = chosen
    return f"`make serve` starts `{name}`, the choice for {USES[use].phrase}. {why}".strip()


def answers_table(verdict: dict) -> pd.DataFrame:
    """What to serve for each use and workload, across engines."""
    return pd.DataFrame([_row(a, a) for a in verdict["answers"]], columns=_COLUMNS)


def engines_table(verdict: dict) -> pd.DataFrame:
    """What to serve of each engine and precision, for each use and workload."""
    rows = []
    for answer in verdict["answers"]:
        for own in answer["engines"]:
            words = {"engine": f"{own['engine']}, {own['precision']}" if own["precision"] else own["engine"]}
            equal = {"text as the reference's": percent(own["to_reference"], 0)}
            rows.append(_row(answer, own) | words | equal)
    columns = [*_COLUMNS[:2], "engine", *_COLUMNS[2:], "text as the reference's"]
    return pd.DataFrame(rows, columns=columns)


_COLUMNS = ["use", "workload", "serve", "C", "tok/s end to end", "tok/s decode", "as good", "next", "best / next"]


def _row(answer: dict, choice: dict) -> dict:
    """choice: the answer itself, or one of its engines."""
    names = [answer["use"], answer["workload"]]
    first = {"use": USES[names[0]].title, "workload": _workload_text(answer)}
    if not choice["serve"]:
        none = "none meets the limits" if answer["use"] == "goodput" else NOT_MEASURED
        return first | {c: "-" for c in _COLUMNS[2:]} | {"serve": none}
    others = [c["configuration"] for c in choice["among"] if c["configuration"] != choice["serve"]]
    second = choice["runner_up"]
    return first | {
        "serve": choice["serve"],
        "C": str(choice["concurrency"]),
        "tok/s end to end": number(choice["value"], 1),
        "tok/s decode": number(choice["decode"], 1),
        "as good": ", ".join(others) or "-",
        "next": f"{second['configuration']} (C={second['concurrency']})" if second else "-",
        "best / next": triple_text(choice["ratio"]) if second else "-",
    }
