"""Why an engine died: the first real exception of any process, told apart from the wrappers around it.

Engines of many processes print the same death several times: the failing rank's traceback, the launcher's
"see the error above", and whatever the other ranks say when their peer is gone, not always in that order
(SGLang's launcher may announce the signal before the rank's own traceback is written). So every error gets a
weight, and the first of the greatest weight is the cause.
"""

import re
from collections.abc import Callable

ROOT, PEER, WRAPPER, REQUEST = 4, 3, 2, 1
DEAD_MID_RUN, OTHER = "engine dead mid-run", "other"

# In order: the first that is found names the kind. Texts are those of PyTorch, the three engines and libc.
_KINDS = [
    (
        "port in use",
        r"[Aa]ddress already in use|Errno 98|couldn't bind HTTP server socket|[Pp]ort \d+ is (?:already )?in use",
    ),
    (
        "killed",
        r"exit(?:ed with)? ?code:? -9\b|died unexpectedly \(exit code: None\)|^Killed$|SIGKILL\)? ?received",
    ),
    (
        "gpu out of memory",
        r"CUDA out of memory|HIP out of memory|torch\.(?:cuda\.)?OutOfMemoryError|increase --mem-fraction-static"
        r"|No available memory for the cache blocks|KV cache is needed, which is larger than|Free memory on device|CUBLAS_STATUS_ALLOC_FAILED"
        r"|cudaMalloc failed|cudaErrorMemoryAllocation|(?:failed|unable) to allocate (?:CUDA|ROCm|Vulkan|Metal)\w* buffer",
    ),
    (
        "host out of memory",
        r"\bMemoryError\b|Cannot allocate memory|std::bad_alloc|can't allocate memory|Errno 12\b"
        r"|(?:failed|unable) to allocate (?:CPU\w* |host )?buffer|out of memory: Killed",
    ),
    (
        "rank time-out",
        r"collective operation timeout|[Tt]imed out (?:waiting|after|in)|DistStoreError|[Ww]ait timeout"
        r"|Timeout waiting for|watchdog timeout|\bTimeoutError\b|monitoredBarrier|Watchdog caught",
    ),
    ("vocabulary mismatch", r"\bvocab(?:ulary)?\b|\bd2t\b|\bt2d\b|hot_token"),
    (
        "context overrun",
        r"greater than the derived|maximum context length|max_model_len|exceeds the available context size"
        r"|Context size has been exceeded|larger than the max context size|context_length|max_position_embeddings",
    ),
    ("dtype", r"\bdtypes?\b|scalar type|same dtype|BFloat16|unsupported data ?type"),
    (
        "draft load",
        r"\b[Dd]raft(?:er)?\b.*(?:model|load|weight|layer|hidden)|speculative decoding context|eagle|EAGLE"
        r"|embed_and_head|layers_to_capture",
    ),
]
KINDS = [(kind, re.compile(pattern)) for kind, pattern in _KINDS]

ADVICE = {
    "port in use": "Stop the other server on that port, or give this configuration another one.",
    "killed": "Signal 9 without a traceback is most likely the kernel's out-of-memory killer: look at `dmesg -T`, "
    "free host memory or load with fewer processes.",
    "gpu out of memory": "Lower the share of GPU memory for weights and KV cache, the cap on running requests or "
    "the context length, and check that no other process holds GPU memory.",
    "host out of memory": "Free host memory, or lower the KV cache size or the number of loading processes.",
    "rank time-out": "One rank did not answer in time: look for the rank that stopped first, then test a two-rank "
    "all-reduce before loading the model again.",
    "vocabulary mismatch": "Check the drafter against the target: vocabulary size, the map from draft to target "
    "ids, the tokenizer it was made for.",
    "context overrun": "A context is longer than the model or the drafter says it can take: shorten the prompts or "
    "the server's context length, or allow the longer one explicitly.",
    "dtype": "Give target and drafter the same data type, and one that the hardware has.",
    "draft load": "Check the drafter: its files, the method it is for, its layer ids and hidden size against the "
    "target's.",
    DEAD_MID_RUN: "The engine died while serving: everything it answered afterwards is void; look at the request it "
    "was working on.",
    OTHER: "Read the log around the quoted line.",
}

TRACEBACK = "Traceback (most recent call last):"
_EXCEPTION = re.compile(r"(?!(?:INFO|WARNING|ERROR|DEBUG):)(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?::\s|:?$)")
_WRAPPER = re.compile(
    r"Engine core initialization failed|See stack trace|EngineDeadError|WorkerProc initialization failed"
    r"|error messages above|^EOFError|BrokenPipeError|ConnectionRefusedError|^RuntimeError: cancelled|CancelledError"
    r"|^KeyboardInterrupt|^SystemExit|Failed to init server|See root cause above|ProcessRaisedException"
    r"|scheduler (?:is dead|died during)|zmq\.error|[Ss]igquit|SIGQUIT"
)
_PEER = re.compile(
    r"[Cc]onnection (?:closed|reset) by (?:remote )?peer|remote process (?:has )?(?:exited|terminated)"
    r"|unhandled system error|[Tt]imed? ?out|TimeoutError|DistStoreError"
)
_DRAFT_FRAME = re.compile(r'File "[^"]*(?:speculative|spec_decode|eagle|draft)')
_RANK = re.compile(r"\[rank(\d+)\]: ?")
_PROCESS = re.compile(r"Process ([\w.:-]+):$")


def kind_of(text: str) -> str:
    """The kind of an error text; "other" when none is recognised."""
    for kind, pattern in KINDS:
        if pattern.search(text):
            return kind
    return OTHER


def weight_of(text: str) -> int:
    if kind_of(text) == "killed":
        return ROOT
    if _WRAPPER.search(text):
        return WRAPPER
    return PEER if _PEER.search(text) else ROOT


class _Open:
    """A traceback that has begun and whose exception line is still to come."""

    __slots__ = ("who", "drafter", "silent")

    def __init__(self, who: str, silent: bool):
        self.who, self.drafter, self.silent = who, False, silent


class Errors:
    """Collects errors of one log; `cause()` picks the real one.

    Tracebacks of several processes may be interleaved line by line: those with a prefix of their own are followed
    by it (`source`), those without (source "") close in the order they opened. `phase()` gives the load phase of
    the moment, for the sentence.
    """

    def __init__(self, engine: str, phase: Callable[[], str | None]):
        self.engine, self._phase = engine, phase
        self.fatal = False
        self.stopping = False  # an orderly stop: what is said on the way down is no cause
        self._uncaught = False
        self._fatal_ready = False
        self._best: tuple[int, str, str] | None = None  # weight, sentence, kind
        self._open: dict[str, list[_Open]] = {}
        self._detail: dict[str, tuple[_Open, str]] = {}
        self._silent_next = False
        self._process = ""

    @property
    def busy(self) -> bool:
        """True while a traceback is open, so that the next lines have to be fed whatever they look like."""
        return bool(self._open or self._detail)

    def mark_fatal(self, ready: bool) -> None:
        """This log says that the engine is dead; ready: it had been serving."""
        if not self.stopping:
            self.fatal, self._fatal_ready = True, self._fatal_ready or ready

    def add(self, text: str, who: str = "", weight: int | None = None, drafter: bool = False) -> None:
        """One error: its exception line (or log message) and the process that said it."""
        if self.stopping:
            return
        weight = weight_of(text) if weight is None else weight
        if self._best is not None and self._best[0] >= weight:
            return
        kind = kind_of(text)
        if kind == OTHER and drafter:
            kind = "draft load"
        text = " ".join(text.split())
        text = text if len(text) <= 400 else text[:397] + "..."
        phase = self._phase()
        during = {None: "", "ready": " while serving", "restarted": " after a restart"}.get(
            phase, f" while {phase}"
        )
        verb = "refused a request" if weight == REQUEST else "failed"
        self._best = (weight, f"{who or self.engine} {verb}{during}: {text}", kind)

    def feed(self, body: str, source: str = "", who: str = "", silent: bool = False) -> bool:
        """One line without its log prefix; True if it belonged to a traceback. silent: of a mere warning."""
        rank = _RANK.match(body)
        if rank:
            source, who, body = f"rank{rank[1]}", f"rank {rank[1]}", body[rank.end() :]
        if source in self._detail:  # the line after "1 validation error for X": what was wrong
            opened, text = self._detail.pop(source)
            self._close(opened, text + " " + body.strip())
            return True
        if body.endswith(TRACEBACK):
            silent = silent or self._silent_next
            self._silent_next = False
            self._open.setdefault(source, []).append(_Open(who or self._process, silent))
            return True
        waiting = self._open.get(source)
        if not waiting:
            process = _PROCESS.match(body)
            if process:
                self._process = process[1]
            self._silent_next = body.startswith("Exception ignored")  # in a destructor: life goes on
            return False
        if not body or body[0] in " \t|+":
            if _DRAFT_FRAME.search(body):
                for opened in waiting:
                    opened.drafter = True
            return True
        if not _EXCEPTION.match(body):
            return False
        opened = waiting.pop(0)
        self._uncaught = self._uncaught or not (source or opened.silent or self.stopping)
        if not waiting:
            del self._open[source]
        if re.search(r"validation errors? for \w+$|:$", body):
            self._detail[source] = (opened, body)
        else:
            self._close(opened, body)
        return True

    def _close(self, opened: _Open, text: str) -> None:
        if not opened.silent:
            self.add(text, opened.who, drafter=opened.drafter)

    def cause(self) -> tuple[str, str] | None:
        """(sentence, kind) of the real error, or None."""
        for opened, text in self._detail.values():  # the log ended right after the exception line
            self._close(opened, text)
        self._detail.clear()
        if self._best is None:
            return None
        _, sentence, kind = self._best
        if kind == OTHER and self._fatal_ready:
            kind = DEAD_MID_RUN
        return sentence, kind

    def conclude(self, reading, tracker, served: bool):
        """Write outcome, phases, cause and advice into a `LogReading`; returns it."""
        found = self.cause()
        if found:
            reading.cause, reading.cause_kind = found
            reading.advice = ADVICE[reading.cause_kind]
        # An exception that nobody caught (no log prefix) in a start that never got ready: dead, whether or not a
        # launcher said so.
        if self.fatal or (self._uncaught and not tracker.ready and not served):
            reading.outcome = "dead"
        else:
            reading.outcome = "served" if served else "ready" if tracker.ready else "starting"
        reading.phases = tracker.phases
        return reading
