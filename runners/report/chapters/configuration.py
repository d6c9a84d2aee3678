"""The run page of one configuration: its command, its starts, its cells, its log."""

import html
import shlex
from pathlib import Path

import altair as alt
import pandas as pd
from IPython.display import HTML, Markdown

from runners.analyse import results
from runners.core import redact
from runners.measure.ledger import Ledger
from runners.measure.measure_configuration import Outcome
from runners.profiles.profile import Profile
from runners.serve import model_files
from runners.serve.command import command

COLUMNS = {
    "workload": "prompts",
    "concurrency": "C",
    "repeat": "repeat",
    "status": "status",
    "output_tokens_per_second": "output tok/s",
    "stream_tokens_per_second_p50": "stream tok/s",
    "ttft_ms_p50": "TTFT ms",
    "tpot_ms_p50": "TPOT ms",
    "accept_length": "accept length, drafted steps",
    "seconds": "cell s",
    "reasons": "why void",
}
GATES = {
    "workload": "prompts",
    "concurrency": "C",
    "repeat": "repeat",
    "running_peak": "running at once",
    "reference_share": "equal to reference",
    "equal_prefix_share": "equal to base",
    "distinct_bigram_ratio": "distinct bigrams",
    "neighbour_cores": "neighbours' cores",
    "steal_share": "steal",
    "machine_gflops": "machine GFLOP/s",
    "client_cpu_us_per_token": "client CPU us/token",
}


def command_line(profile: Profile, configuration: str) -> Markdown:
    chosen = profile.configuration(configuration)
    if chosen.attach is not None:
        return Markdown(f"Attached to the server at `{chosen.attach.url}`; it is neither started nor stopped by us.")
    line = command(profile, configuration, model_files.planned_files(profile, chosen.drafter), port=0)
    words = [f"{k}={shlex.quote(v)}" for k, v in redact.masked(line.env).items()]
    argv = [shlex.quote(redact.without_home(w)) for w in redact.masked_argv(line.argv)]
    # One flag a line; port 0 stands for any free port.
    text = " \\\n  ".join([*words, " ".join(argv[:3])] if words else [" ".join(argv[:3])])
    for word in argv[3:]:
        text += (" \\\n  " if word.startswith("--") else " ") + word
    return Markdown(f"```bash\n{text}\n```")


def outcome_sentence(result: Outcome) -> str:
    return f"**{result.status}**" + (f": {redact.without_home(result.reason)}" if result.reason else ".")


def starts(runs: Path, profile: Profile, configuration: str) -> pd.DataFrame | Markdown:
    found = Ledger(runs / profile.name / configuration).starts()
    rows = [
        {"start": n, "phase": p["name"], "from s": p["start_s"], "to s": p["end_s"]}
        for n, start in enumerate(found)
        for p in start["phases"]
    ]
    return plain(pd.DataFrame(rows), 1) if rows else Markdown("No server was started here.")


def cells(runs: Path, profile: Profile, configuration: str) -> pd.DataFrame | Markdown:
    frame = _cells(runs, profile, configuration)
    if frame.empty:
        return Markdown("No cell was measured here.")
    steps = frame["steps"].astype("Float64")
    frame["accept_length"] = (1 + frame["accepted"].astype("Float64") / steps.where(steps > 0)).round(3)
    frame["reasons"] = frame["reasons"].map(lambda found: "; ".join(found) if len(found) else "")
    return plain(frame[list(COLUMNS)].rename(columns=COLUMNS), 2)


def gates(runs: Path, profile: Profile, configuration: str) -> pd.DataFrame | Markdown:
    frame = _cells(runs, profile, configuration)
    if frame.empty:
        return Markdown("No cell was measured here.")
    return plain(frame[list(GATES)].rename(columns=GATES), 2)


def latency_chart(runs: Path, profile: Profile, configuration: str) -> alt.Chart | Markdown:
    """Each request's time to first token and its stream speed, by concurrency."""
    frame = _cells(runs, profile, configuration)
    requests = results.requests(runs, profile.name, configuration)
    if frame.empty or requests.empty:
        return Markdown("No request was measured here.")
    joined = requests.merge(frame[["key", "attempt", "workload", "concurrency"]], on=["key", "attempt"])
    joined = joined.dropna(subset=["first_token_s"]).assign(ttft_ms=lambda f: (f.first_token_s - f.sent_s) * 1e3)
    shown = joined[["workload", "concurrency", "prompt_id", "ttft_ms"]].round(1)
    return (
        alt.Chart(shown, title="Time to first token of every request")
        .mark_tick(thickness=2)
        .encode(
            x=alt.X("ttft_ms:Q", title="TTFT, ms", scale=alt.Scale(type="log")),
            y=alt.Y("concurrency:O", title="concurrency"),
            color=alt.Color("workload:N", title="prompts"),
            row=alt.Row("workload:N", title=None),
            tooltip=["prompt_id", "ttft_ms"],
        )
        .properties(width=560, height=90)
    )


def log(runs: Path, profile: Profile, configuration: str) -> HTML | Markdown:
    path = runs / profile.name / configuration / "server.log"
    if not path.is_file():
        return Markdown("There is no log.")
    return HTML(f'<pre class="server-log">{html.escape(path.read_text())}</pre>')


def _cells(runs: Path, profile: Profile, configuration: str) -> pd.DataFrame:
    frame = results.cells(runs, profile.name)
    return frame[frame["configuration"] == configuration].sort_values(["workload", "concurrency", "repeat"])


def plain(frame: pd.DataFrame, decimals: int) -> pd.DataFrame:
    """Numbers rounded, no index worth reading."""
    return frame.round(decimals).reset_index(drop=True)
