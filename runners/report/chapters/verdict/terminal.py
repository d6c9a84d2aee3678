"""The verdict on the terminal: what to serve, whether speculation pays and why, speeds and latencies, what is void."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from runners.analyse import latencies, results
from runners.analyse.verdict import decide, store
from runners.core.format import NOT_MEASURED, SIMULATED, number, triple_text
from runners.report import plain_text
from runners.report.chapters.verdict.pays import open_sentence, pays_sentence
from runners.report.chapters.verdict.what_to_serve import answer_sentence

REASONS = 3  # different reasons of void cells that are told, of each configuration
FIGURES = {"ttft_ms": "TTFT ms", "tpot_ms": "TPOT ms", "e2e_ms": "end to end ms"}


@dataclass(frozen=True)
class Figures:
    """What the ledgers of a profile say.

    verdict: as verdict.json holds it. points: one row a configuration, workload and concurrency (`of`). void: one row a
    configuration and kind of reason (configuration, cells, of, reason).
    """

    verdict: dict[str, Any]
    points: pd.DataFrame
    void: pd.DataFrame

    def as_json(self) -> dict[str, Any]:
        """The verdict with `figures` (a row a measured point) and `void` (why cells are void): JSON's own types."""
        rows = {"figures": self.points.to_dict("records"), "void": self.void.to_dict("records")}
        return self.verdict | store.plain(rows)


def of(runs: str | Path, profile: str) -> Figures:
    """Decided from the ledgers as they are now; nothing is written, and no notebook is executed."""
    cells = results.cells(runs, profile)
    return Figures(decide.of(runs, profile), _points(cells, results.requests(runs, profile)), _void(cells))


def _points(cells: pd.DataFrame, requests: pd.DataFrame) -> pd.DataFrame:
    """cells (good ones), void (their number), output_tokens_per_second (mean over good cells, all streams together),
    and the latencies of latencies.latencies.
    """
    good = cells.status == "ok"
    own = cells.assign(good=good, void=~good, speed=cells.output_tokens_per_second.where(good))
    found = own.groupby(latencies.POINT, sort=False).agg(
        cells=("good", "sum"), void=("void", "sum"), output_tokens_per_second=("speed", "mean")
    )
    return found.reset_index().merge(latencies.latencies(cells, requests), on=latencies.POINT, how="left")


def _void(cells: pd.DataFrame) -> pd.DataFrame:
    """Reasons that differ in their numbers alone are one kind; the first of each stands for it."""
    rows = []
    for name, own in cells.groupby("configuration", sort=False):
        void = own[own.status != "ok"]
        kinds = void.reason.map(lambda text: re.sub(r"\d[\d.,%]*", "#", text))
        for _, same in void.groupby(kinds, sort=False):
            rows.append({"configuration": name, "cells": len(same), "of": len(own), "reason": same.reason.iloc[0]})
    frame = pd.DataFrame(rows, columns=["configuration", "cells", "of", "reason"])
    return frame.sort_values(["configuration", "cells"], ascending=[True, False], kind="stable")


def text(figures: Figures, only: Collection[str] | None = None) -> str:
    """All of it in paragraphs; `only`: these configurations, without the choice among all."""
    verdict = figures.verdict
    parts = [SIMULATED] if verdict.get("simulated") else []
    if only is None:
        parts += _to_serve(verdict)
    parts += [_pays(verdict, only), _speeds(_chosen(figures.points, only))]
    parts += [_void_lines(_chosen(figures.void, only))]
    missing = [row for row in verdict["not_measured"] if only is None or row["configuration"] in only]
    parts += ["\n".join(f"{row['configuration']}: {NOT_MEASURED} ({row['reason']})" for row in missing)]
    return "\n\n".join(part for part in parts if part)


def _chosen(frame: pd.DataFrame, only: Collection[str] | None) -> pd.DataFrame:
    return frame if only is None else frame[frame.configuration.isin(list(only))]


def _to_serve(verdict: dict) -> list[str]:
    if not verdict["answers"]:
        return [f"What to serve: {NOT_MEASURED}."]
    return ["\n".join(answer_sentence(answer) for answer in verdict["answers"])]


def _pays(verdict: dict, only: Collection[str] | None) -> str:
    """Point by point: the ratio, the answer, tokens per step beside r, and why."""
    points = [p for p in verdict["points"] if only is None or p["configuration"] in only]
    if not points:
        return "" if only else f"Whether speculation pays: {NOT_MEASURED}."
    rows = [
        {
            "configuration": p["configuration"],
            "workload": p["workload"],
            "C": p["concurrency"],
            "throughput / base": triple_text([p["speed_up"], p["speed_up_lo"], p["speed_up_hi"]]),
            "pays": p["pays"],
            "tokens a step": number(p["tokens_per_step"]),
            "r": number(p["step_cost"]),
            "because": p["cause"],
        }
        for p in points
    ]
    table = plain_text.table(pd.DataFrame(rows))
    return table if only else f"{pays_sentence(verdict)}\n\n{table}\n\n{open_sentence(verdict)}"


def _speeds(points: pd.DataFrame) -> str:
    if points.empty:
        return ""
    rows = [
        {
            "configuration": p["configuration"],
            "workload": p["workload"],
            "C": p["concurrency"],
            "cells": p["cells"] if not p["void"] else f"{p['cells']} (and {p['void']} void)",
            "tok/s": number(p["output_tokens_per_second"], 1),
            "requests": number(p["requests"], 0),
        }
        | {title: _percentiles(p, figure) for figure, title in FIGURES.items()}
        for p in points.to_dict("records")
    ]
    note = (
        "Latencies are p50 / p95 / p99 over the requests of good cells; with fewer than 100 p99 is about the slowest."
    )
    return f"{plain_text.table(pd.DataFrame(rows))}\n{note}"


def _percentiles(row: dict, figure: str) -> str:
    return " / ".join(number(row[f"{figure}_p{q}"], 0 if figure == "e2e_ms" else 1) for q in latencies.PERCENTILES)


def _void_lines(void: pd.DataFrame) -> str:
    lines: list[str] = []
    for name, own in void.groupby("configuration", sort=False):
        rows: Sequence[dict] = own.to_dict("records")
        lines.append(f"{name}: {sum(r['cells'] for r in rows)} of {rows[0]['of']} cells are void")
        lines += [f"  {r['cells']}: {r['reason']}" for r in rows[:REASONS]]
        lines += [f"  and {len(rows) - REASONS} other reasons"] if len(rows) > REASONS else []
    return "\n".join(lines)
