"""The verdict in short, for the README and the terminal."""

from runners.analyse.verdict.answers import USES
from runners.core.format import NOT_MEASURED, SIMULATED
from runners.report import markdown
from runners.report.chapters.verdict.pays import open_sentence, pays_table
from runners.report.chapters.verdict.what_to_serve import answer_sentence, answers_of, text_sentence


def section(verdict: dict) -> str:
    """What to serve for each use and workload, where speculation pays, and what is missing, as Markdown."""
    parts = [f"**{SIMULATED}**"] if verdict.get("simulated") else []
    parts += [_answers(verdict, use) for use in USES if answers_of(verdict, use)]
    if not verdict["answers"]:
        parts.append(f"What to serve: {NOT_MEASURED}.")
    if len(verdict["text"]) > 1:
        parts.append(text_sentence(verdict))
    counts = pays_table(verdict)
    if len(counts):
        parts.append("Points (workload, C) at which speculation pays over the same engine without it:")
        parts.append(markdown.pipe_table(counts))
        parts.append(open_sentence(verdict))
    parts += [f"`{row['configuration']}`: {NOT_MEASURED} ({row['reason']})." for row in verdict["not_measured"]]
    return "\n\n".join(parts) + "\n"


def _answers(verdict: dict, use: str) -> str:
    """A heading and one line a workload."""
    lines = [f"- {answer_sentence(answer)}" for answer in answers_of(verdict, use)]
    return "\n".join([f"**{USES[use].title}**", "", *lines])
