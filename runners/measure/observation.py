"""What is seen of one cell: the server's counters before and after, the client's loop, the monitors. Judges nothing."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import psutil

from runners.core import gpus, provenance
from runners.measure.cell_context import CellContext
from runners.measure.client import Loop, Result
from runners.measure.monitors import NeighbourMonitor, PeakRunning
from runners.measure.open_loop import measure_rate
from runners.measure.text_gates import Compared, distinct_bigrams
from runners.measure.window import closed_window
from runners.profiles import methods
from runners.profiles.points import Point
from runners.readers.records import Counters
from runners.serve.command import slot_field
from runners.serve.running_server import RunningServer


@dataclass(frozen=True)
class Observation:
    """What was seen of one cell. None: it could not be seen."""

    started_at: str  # UTC, ISO 8601
    loop: Loop  # the client's requests
    before: Counters | None = None  # the server's counters, settled
    after: Counters | None = None
    counts: Counters = field(default_factory=Counters)  # over the cell; empty when they are not known
    count_fault: str | None = None  # why the counts cannot be used
    running_peak: float | None = None  # most requests at once, by the server's own gauge
    server_cores: float | None = None  # CPU of the server's processes; None for an attached server
    neighbour_cores: float = 0.0  # CPU of other processes
    steal_share: float = 0.0  # of all cores' time, given to others by the host of a virtual machine
    gpu: dict[str, float] | None = None  # gpus.Sampler.stop
    attached: bool = False  # a server that is not ours
    death: str | None = None  # why the server did not survive the cell; None when it did
    distinct_bigrams: float | None = None  # text_gates.distinct_bigrams of the answers
    # Each answer beside the base's and the reference model's: judge.compared fills them in.
    to_base: list[Compared] = field(default_factory=list)
    to_reference: list[Compared] = field(default_factory=list)

    @property
    def unseen(self) -> bool:
        """A server that is not ours and shows no counters: it is judged by what the client saw of it."""
        return self.attached and _shows_nothing(self.before) and _shows_nothing(self.after)

    @property
    def results(self) -> list[Result]:
        return self.loop.results

    @property
    def received_tokens(self) -> int:
        """Output tokens of all answers, those of failed requests included: the server counted them too."""
        return sum(r.output_tokens or 0 for r in self.results)


def observe(context: CellContext, server: RunningServer, point: Point) -> Observation:
    """Run the loop of one cell and see what there is to see. Never raises for the server's sake."""
    if point.rate is not None:
        return watched(context, server, lambda: measure_rate(context, server.base_url, point))
    profile = context.profile
    ramp, jobs = context.ramp(point), context.timed(point)
    slot = slot_field(profile, context.name, point.concurrency)
    timeout_s = profile.request_timeout_seconds
    longest_s = profile.preset(context.preset).window_seconds
    return watched(
        context,
        server,
        lambda: closed_window(server.base_url, ramp, jobs, point.requests, longest_s, timeout_s, slot, context.headers),
    )


def watched(context: CellContext, server: RunningServer, load: Callable[[], Loop]) -> Observation:
    """Run any loop of requests, and see what there is to see of the server and the machine meanwhile.

    Inside the timed loop only the gauges are polled; counters are read before and after it.
    """
    # The last step of what ran before must be in `before`, or it would count as the cell's.
    before = context.settled_counters(server.base_url)
    neighbours = NeighbourMonitor(lambda: _own_cpu_seconds(server))
    peak = PeakRunning(lambda: getattr(context.counters(server.base_url), "running", None))
    sampler = gpus.Sampler()
    started_at = provenance.now()
    snapshot_before = server.snapshot()
    # An engine without exported counters is counted from what its log gains from here on.
    log_start = server.log_path.stat().st_size if server.log_path else None
    # The monitors enclose the loop as closely as they can: what runs before and after it is not the cell's.
    sampler.start()
    neighbours.start()
    peak.start()
    loop = load()
    neighbour_cores, steal_share = neighbours.stop()
    running_peak = peak.stop()
    snapshot_after, gpu = server.snapshot(), sampler.stop()
    cores = None
    if snapshot_before and snapshot_after:
        cores = (snapshot_after.cpu_seconds - snapshot_before.cpu_seconds) / max(loop.seconds, 1e-9)
    seen = Observation(
        started_at,
        loop,
        before,
        context.settled_counters(server.base_url),
        running_peak=running_peak,
        server_cores=cores,
        neighbour_cores=neighbour_cores,
        steal_share=steal_share,
        gpu=gpu,
        attached=server.attached,
        distinct_bigrams=distinct_bigrams([r.text for r in loop.results]),
    )
    return replace(_with_counts(seen, context, server, log_start), death=_death(server))


def _shows_nothing(counters: Counters | None) -> bool:
    """No /metrics, or another program's: a gateway in front of an engine may have its own."""
    return counters is None or (counters.running, counters.steps, counters.output_tokens) == (None, None, None)


def _with_counts(seen: Observation, context: CellContext, server: RunningServer, log_start: int | None) -> Observation:
    """The counts over the cell: from the server's counters, or from its log since byte `log_start`."""
    if seen.before is None or seen.after is None:
        return seen
    counts, fault = Counters(), None
    try:
        counts = seen.after.since(seen.before)
    except ValueError as error:  # the server was started again in between
        fault = str(error)
    k = context.chosen.k
    # Of a tree of drafts the log's accept length does not tell how many tokens were drafted.
    if not context.counts_in_metrics and k and log_start is not None and not methods.method(context.method).tree:
        requests, tokens = len(seen.results), seen.received_tokens
        counts = context.reader.counts_from_log(server.log_path, log_start, counts, requests, tokens, k)
    if counts.accepted is not None and counts.drafted is not None and counts.accepted > counts.drafted:
        fault = f"the server counted {counts.accepted} accepted draft tokens, more than the {counts.drafted} drafted"
        counts = replace(counts, drafted=None, accepted=None, accepted_per_position=None)
    return replace(seen, counts=counts, count_fault=fault)


def _death(server: RunningServer) -> str | None:
    if server.alive():
        return None
    return (server.cause() or ("no error in its log", ""))[0]


def _own_cpu_seconds(server: RunningServer) -> float:
    """CPU seconds so far of this process and of the server's, where it is ours."""
    mine = psutil.Process().cpu_times()
    seen = server.snapshot()
    return float(mine.user + mine.system + (seen.cpu_seconds if seen else 0.0))
