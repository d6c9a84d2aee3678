"""Time to first token, request by request."""

import altair as alt
import pandas as pd

from runners.report.charts.style import nothing


def first_tokens(cells: pd.DataFrame, requests: pd.DataFrame) -> alt.TopLevelMixin:
    """A tick a request: its time to first token, by concurrency; a panel a workload."""
    joined = requests.merge(cells[["key", "attempt", "workload", "concurrency"]], on=["key", "attempt"])
    joined = joined.dropna(subset=["first_token_s"])
    if joined.empty:
        return nothing("Time to first token")
    joined = joined.assign(ttft_ms=(joined.first_token_s - joined.sent_s) * 1e3)
    ticks = alt.Chart(joined[["workload", "concurrency", "prompt_id", "ttft_ms"]].round(1)).mark_tick(thickness=2)
    chart = ticks.encode(
        x=alt.X("ttft_ms:Q", title="TTFT, ms", scale=alt.Scale(type="log")),
        y=alt.Y("concurrency:O", title="concurrency"),
        color=alt.Color("workload:N", title="prompts"),
        row=alt.Row("workload:N", title=None),
        tooltip=["prompt_id", "ttft_ms"],
    )
    return chart.properties(width=560, height=90, title="Time to first token of every request")
