"""The run page of one configuration: its command, its starts, its cells, what the gates looked at, its log."""

import html
import shlex
from pathlib import Path

import pandas as pd

from runners.analyse import results
from runners.core import redact
from runners.core.acceptance_math import accept_length
from runners.measure.ledger import Ledger
from runners.profiles.profile import Profile
from runners.report import markdown
from runners.serve import model_files
from runners.serve.command import command

COLUMNS = {
    "workload": "prompts",
    "concurrency": "C",
    "start": "start",
    "repeat": "block",
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
    "start": "start",
    "repeat": "block",
    "occupancy": "places taken",
    "running_peak": "running at once",
    "reference_share": "equal to reference",
    "equal_prefix_share": "equal to base",
    "distinct_bigram_ratio": "distinct bigrams",
    "neighbour_cores": "neighbours' cores",
    "steal_share": "steal",
    "machine_gflops": "machine GFLOP/s",
    "client_cpu_us_per_token": "client CPU us/token",
}


def command_text(profile: Profile, configuration: str) -> str:
    """The command line as Markdown, secrets and the home folder masked; or the address of a server that was running."""
    chosen = profile.configuration(configuration)
    if chosen.attach is not None:
        url = markdown.code_span(chosen.attach.url)
        return f"Attached to the server at {url}; it is neither started nor stopped by us."
    line = command(profile, configuration, model_files.planned_files(profile, chosen.drafter), port=0)
    words = [f"{k}={shlex.quote(v)}" for k, v in redact.masked(line.env).items()]
    argv = [shlex.quote(redact.without_home(w)) for w in redact.masked_argv(line.argv)]
    # One flag a line; port 0 stands for any free port.
    text = " \\\n  ".join([*words, " ".join(argv[:3])])
    for word in argv[3:]:
        text += (" \\\n  " if word.startswith("--") else " ") + word
    return markdown.fenced(text, "bash")


def status_sentence(runs: Path, profile: Profile, configuration: str) -> str:
    """Measured or not, with the reason; it may quote the engine's log, so it is escaped."""
    found = results.statuses(runs, profile.name)
    row = found[found["configuration"] == configuration].iloc[0]
    return f"**{row.status}**" + (f": {markdown.escaped(row.reason)}" if row.reason else ".")


def starts_table(runs: Path, profile: Profile, configuration: str) -> pd.DataFrame:
    """The load phases of every start, in seconds from the start of the process."""
    rows = [
        {"start": n, "phase": p["name"], "from s": p["start_s"], "to s": p["end_s"]}
        for n, start in enumerate(Ledger(runs / profile.name / configuration).starts())
        for p in start["phases"]
    ]
    return pd.DataFrame(rows).round(1)


def own_cells(runs: Path, profile: Profile, configuration: str) -> pd.DataFrame:
    """The cells of this configuration alone, void ones included (`results.cells`)."""
    frame = results.cells(runs, profile.name)
    return frame[frame["configuration"] == configuration].sort_values(["workload", "concurrency", "repeat"])


def cells_table(cells: pd.DataFrame) -> pd.DataFrame:
    """What was measured, a row a cell."""
    lengths = [accept_length(s, a) for s, a in zip(cells["steps"], cells["accepted"], strict=True)]
    frame = cells.assign(accept_length=pd.array(lengths, dtype="Float64").round(3))
    frame["reasons"] = frame["reasons"].map(lambda found: "; ".join(found) if len(found) else "")
    return frame.reindex(columns=list(COLUMNS)).rename(columns=COLUMNS).round(2)


def gates_table(cells: pd.DataFrame) -> pd.DataFrame:
    """What the gates looked at, a row a cell."""
    return cells.reindex(columns=list(GATES)).rename(columns=GATES).round(2)


def log_html(runs: Path, profile: Profile, configuration: str) -> str | None:
    """The server's log as HTML, escaped: an engine may write anything. None where there is none."""
    path = runs / profile.name / configuration / "server.log"
    return f'<pre class="server-log">{html.escape(path.read_text())}</pre>' if path.is_file() else None
