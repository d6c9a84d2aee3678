"""One cell: warm-up, counters before, the closed loop, counters after, the gates, the row."""

import time
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import httpx
import numpy as np
import psutil

from runners.core import gpus, progress, provenance, redact
from runners.engines.registry import engine
from runners.measure import cell_key, gates, monitors
from runners.measure.client import Job, Loop, Result, body, closed_loop
from runners.measure.estimate import WARM_UP_TOKENS
from runners.measure.ledger import Ledger
from runners.profiles import methods, points
from runners.profiles.points import Point
from runners.profiles.profile import Profile
from runners.profiles.prompts import Prompt, PromptSet
from runners.readers.records import Counters
from runners.serve.command import slot_field
from runners.serve.running_server import RunningServer

SETTLE_SECONDS = 5.0
TOKENS_APART = 0.05  # engines count a token or two beside what they send; another client's load is more


@dataclass
class CellContext:
    """What one configuration's cells are measured with."""

    sets: dict[str, PromptSet]
    expected: dict[str, list[str]]  # prompt id -> the reference model's answer
    base: str | None  # the same engine without speculation
    base_texts: dict[str, list[str]]  # prompt id -> its distinct answers
    reader: ModuleType
    extra: dict[str, Any]  # request fields of this engine
    model: str | None = None  # an attached server's own name for the target
    death: str | None = None
    machine_gflops: float | None = None  # machine_speed.gflops, before this server started
    # Shares of equal prefix of every answer so far.
    to_base: list[float] = field(default_factory=list)
    to_reference: list[float] = field(default_factory=list)
    # One client for all polls: making one costs as much CPU as several tokens of a small model.
    _client: httpx.Client = field(default_factory=lambda: httpx.Client(timeout=5, trust_env=False), repr=False)

    def jobs(self, profile: Profile, asked: list[Prompt], tokens: int) -> list[Job]:
        """A request for each prompt, in this engine's form."""
        model = self.model or profile.target.name
        made = []
        for prompt in asked:
            request = body(model, list(prompt.messages), tokens, profile.workload.temperature, self.extra)
            made.append(Job(prompt.id, request))
        return made

    def warm_up(self, profile: Profile, live: RunningServer, point: Point) -> str | None:
        """Short answers at the cell's concurrency, so that the first timed request pays for nothing new.

        Returns the first error when not one request was answered.
        """
        n = point.concurrency
        prompt_set = self.sets[point.workload]
        # From the set's end: not the prompts that are timed next.
        jobs = self.jobs(profile, prompt_set.take(n, len(prompt_set) - n), WARM_UP_TOKENS)
        loop = closed_loop(live.base_url, jobs, n, profile.request_timeout_seconds)
        return loop.results[0].error if all(r.error for r in loop.results) else None

    def counters(self, base_url: str) -> Counters | None:
        """The engine's counters now; None when it does not answer."""
        try:
            answer = self._client.get(f"{base_url}/metrics", headers={"Connection": "close"})
            return self.reader.read_counters(answer.text) if answer.status_code == 200 else None
        except httpx.HTTPError:
            return None

    def settled(self, base_url: str) -> Counters | None:
        """Counters once nothing runs and nothing waits: the last step of the last request is in them."""
        until = time.monotonic() + SETTLE_SECONDS
        found = self.counters(base_url)
        while found is not None and (found.running or found.queued) and time.monotonic() < until:
            time.sleep(0.1)
            found = self.counters(base_url)
        return found


def measure(
    profile: Profile,
    name: str,
    point: Point,
    depth: str | None,
    ledger: Ledger,
    tools: CellContext,
    live: RunningServer,
) -> tuple[dict[str, Any], list[Result]]:
    """Measure one cell and judge it; the row is complete, void or not. Never raises for the server's sake."""
    chosen = profile.configuration(name)
    method, in_metrics = profile.method_of(name), engine(chosen.engine).counters_in_metrics
    drafts = method != "none"
    tokens = profile.workload.output_tokens
    label = points.label(name, point)
    progress.emit("cell", label=label, state="begins", configuration=name)
    jobs = tools.jobs(profile, point.prompts(tools.sets[point.workload]), tokens)
    place = slot_field(profile, name, point.concurrency)
    before = tools.settled(live.base_url)
    quiet = monitors.NeighbourMonitor(lambda: _own_cpu_seconds(live))
    peak = monitors.PeakRunning(lambda: getattr(tools.counters(live.base_url), "running", None))
    started_at = provenance.now()
    own_before = live.snapshot()
    log_at = live.log_path.stat().st_size if live.log_path else None
    sampler = gpus.Sampler()
    sampler.start()
    quiet.start()
    peak.start()
    loop = closed_loop(live.base_url, jobs, point.concurrency, profile.request_timeout_seconds, place)
    quiet.stop()
    running_peak = peak.stop()
    own_after, gpu = live.snapshot(), sampler.stop()
    cores = (own_after.cpu_seconds - own_before.cpu_seconds) / max(loop.seconds, 1e-9) if own_after else None
    after = tools.settled(live.base_url)

    reasons: list[str | None] = []
    counts = Counters()
    if before is None or after is None:
        reasons.append("the server's counters could not be read")
    else:
        try:
            counts = after.since(before)
        except ValueError as error:
            reasons.append(str(error))
        # An engine without counters in /metrics (SGLang) refreshes its gauge only when it schedules: an idle server may
        # still show the last cell's number.
        if in_metrics and (before.running or before.queued):
            reasons.append(f"the queue was not empty before the cell: {before.running or 0:.0f} running")
        sent = sum(r.output_tokens or 0 for r in loop.results)
        if not in_metrics and chosen.k and log_at is not None and not methods.method(method).tree:
            counts = tools.reader.counts_from_log(live.log_path, log_at, counts, len(loop.results), sent, chosen.k)
        if counts.output_tokens is not None and abs(counts.output_tokens - sent) > TOKENS_APART * sent:
            reasons.append(f"the server counted {counts.output_tokens} output tokens, the client {sent}")
    if not live.alive():
        cause = (live.cause() or ("no error in its log", ""))[0]
        reasons.append(f"the server died: {redact.without_home(cause)}")
    results = loop.results
    held, capped_at = gates.held_concurrency(running_peak, point.concurrency, chosen.max_running_requests)
    ratio = gates.distinct_bigrams([r.text for r in results])
    to_base = gates.equal_shares(results, tools.base_texts)
    to_reference = gates.equal_shares(results, tools.expected)
    tools.to_base += to_base
    tools.to_reference += to_reference
    limits, pretended = profile.gates, chosen.forced_accept_length is not None
    reasons += [
        gates.completed(results, len(jobs)),
        gates.spoke(results, cores) if live.alive() else None,
        gates.counted([r for r in results if r.error is None], tokens),
        held,
        None if profile.simulated else gates.client_kept_up(loop.client_cpu_s, loop.seconds),
        gates.synthetic_accept_length_held(chosen.forced_accept_length, counts.steps, counts.accepted),
        *([] if pretended else _text_gates(profile, tools, ratio)),
        # An attached server's processes are not ours to know: its own work would count as a neighbour's.
        None if live.attached else quiet.reason(limits),
    ]
    if methods.method(method).every_step and in_metrics and not counts.drafted:
        # llama.cpp serves on, healthy and without speculation, when it cannot use the drafter.
        reasons.append("no token was drafted: the server does not speculate")
    if drafts and not pretended and not to_base and limits.equal_to_reference_floor is None:
        reasons.append("there is no base answer and no reference to compare with: measure the base first")
    if _figures(loop)["tpot_ms_p50"] is None and tokens > 1:
        reasons.append("no time passed between the first and the last token")
    found = [r for r in reasons if r]
    row = _frame(profile, name, point, depth, ledger) | _figures(loop) | {
        "status": "void" if found else "ok",
        "reasons": found,
        "steps": counts.steps if drafts else None,
        "drafted": counts.drafted if drafts else None,
        "accepted": counts.accepted if drafts else None,
        "accepted_per_position": counts.accepted_per_position if drafts else None,
        "server_output_tokens": counts.output_tokens,
        # Momentary values an engine prints instead of counts (SGLang's accept length): never averaged, only shown.
        "gauges": {k: _round(v) for k, v in counts.gauges.items()},
        "started_at": started_at,
        "running_peak": running_peak,
        "capped_at": capped_at,
        "equal_prefix_share": _round(np.mean(to_base)) if to_base else None,
        "reference_share": _round(np.mean(to_reference)) if to_reference else None,
        "distinct_bigram_ratio": _round(ratio),
        "neighbour_cores": None if live.attached else _round(quiet.neighbour_cores),
        "steal_share": _round(quiet.steal_share),
        "machine_gflops": _round(tools.machine_gflops, 1),
        "warm_up_requests": point.concurrency,
        "gpu": gpu,
        "acceptance_source": counts.source if drafts else None,
    }  # fmt: skip
    progress.emit("cell", label=label, state="ends", configuration=name, seconds=loop.seconds, status=row["status"])
    progress.emit("span", what="cell", seconds=loop.seconds, configuration=name)
    for reason in found:
        progress.say(f"{label}: void: {reason}")
    return row, results


def _text_gates(profile: Profile, tools: CellContext, ratio: float | None) -> list[str | None]:
    """Is the output language, the base's and the reference model's? Not asked where acceptance is pretended."""
    limits = profile.gates
    return [
        gates.language(ratio, limits.distinct_bigram_floor),
        gates.same_text(tools.to_base, limits.equal_to_base_floor, f"{tools.base}'s"),
        gates.same_text(tools.to_reference, limits.equal_to_reference_floor, "the reference model's"),
    ]


def void_row(
    profile: Profile, name: str, point: Point, depth: str | None, ledger: Ledger, reason: str
) -> dict[str, Any]:
    """The row of a cell that was never measured because its server could not be kept alive."""
    return _frame(profile, name, point, depth, ledger) | _figures(Loop([], 0.0, 0.0)) | {
        **dict.fromkeys(("steps", "drafted", "accepted", "accepted_per_position")),
        "status": "void",
        "reasons": [redact.without_home(reason)],
        "started_at": provenance.now(),
    }  # fmt: skip


def _frame(profile: Profile, name: str, point: Point, depth: str | None, ledger: Ledger) -> dict[str, Any]:
    """Who and where: the fields that hold before anything is measured."""
    chosen = profile.configuration(name)
    key = cell_key.key(profile, name, point)
    return {
        "key": key,
        "attempt": ledger.attempts(key),
        "profile": profile.name,
        "configuration": name,
        "engine": chosen.engine,
        "engine_version": profile.engines[chosen.engine].version,
        "method": profile.method_of(name),
        "k": chosen.k,
        "workload": point.workload,
        "concurrency": point.concurrency,
        "repeat": point.repeat,
        "round": point.round,
        "depth": depth or profile.workload.default_depth,
        "forced_accept_length": chosen.forced_accept_length,
        "simulated": profile.simulated,
        "max_running_requests": chosen.max_running_requests,
        "output_tokens_per_request": profile.workload.output_tokens,
        "requests": point.requests,
    }


def _figures(loop: Loop) -> dict[str, Any]:
    """Speeds of the answers that came; None where there is none. Milliseconds and tokens per second."""
    good = [r for r in loop.results if r.error is None and r.output_tokens and r.first_token_s is not None]
    total = sum(r.output_tokens or 0 for r in good)
    many = [r for r in good if (r.output_tokens or 0) > 1 and r.last_token_s > r.first_token_s]
    gaps = [(r.last_token_s - r.first_token_s) / (r.output_tokens - 1) for r in many]
    sources = {r.count_source for r in good}
    return {
        "context_tokens": _round(np.mean([r.prompt_tokens for r in good]), 1) if good else None,
        "output_tokens": total,
        "seconds": _round(loop.seconds, 4),
        "output_tokens_per_second": _round(total / loop.seconds, 3) if total else None,
        "stream_tokens_per_second_p50": _round(1 / np.median(gaps), 3) if gaps else None,
        "ttft_ms_p50": _round(1e3 * np.median([r.first_token_s - r.sent_s for r in good]), 3) if good else None,
        "tpot_ms_p50": _round(1e3 * np.median(gaps), 4) if gaps else None,
        "count_source": sources.pop() if len(sources) == 1 else None,
        "client_cpu_us_per_token": _round(1e6 * loop.client_cpu_s / total, 1) if total else None,
    }


def _own_cpu_seconds(live: RunningServer) -> float:
    mine = psutil.Process().cpu_times()
    evidence = live.snapshot()
    return mine.user + mine.system + (evidence.cpu_seconds if evidence else 0.0)


def _round(value: float | None, digits: int = 4) -> float | None:
    return None if value is None else round(float(value), digits)
