"""Why an engine died: the first real exception of any process, and not one of the wrappers around it.

Engines of many processes print the same death several times: the failing rank's traceback, the launcher's "see the
error above", and whatever the other ranks print when their peer is gone. They are not always in that order: SGLang's
launcher may report the signal before the rank's own traceback is written. So every error gets a weight, and the first
of the greatest weight is the cause.
"""

import re
from collections.abc import Callable

from runners.readers.error_kinds import ADVICE, DEAD_MID_RUN, FAILED_REQUEST, KILLED, MODEL_FILES, OTHER, STALL, kind_of
from runners.readers.records import NOT_TOLD, LogReading, PhaseTracker

# Weights: the cause itself; an error that stands alone, without its traceback; what other ranks print when their peer
# is gone; what only repeats that something failed; an error of one request, which the engine survives.
ROOT, ALONE, PEER, WRAPPER, REQUEST = 5, 4, 3, 2, 1

TRACEBACK = "Traceback (most recent call last):"
_EXCEPTION = re.compile(r"(?!(?:INFO|WARNING|ERROR|DEBUG):)(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?::\s|:?$)")
# What can be seen to be an error without a traceback before it: an exception by its name, a known message by its words.
_RAISED = r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)(?:: |$)"
_KNOWN_WORDS = (
    r"mat1 and mat2 |expected (?:mat1|scalar type)|(?:CUDA|HIP) out of memory|Cannot find the config file for "
    r"|TP rank \d+ could finish the model loading|No available memory for the cache blocks"
    r"|Timed out waiting for engines to send|draft model (?:vocab|bos|eos)\b.* must "
    r"|Out of memory: Killed process \d|Killed$"
)
STANDS_ALONE = rf"^(?:{_RAISED}|{_KNOWN_WORDS})"
_STANDS_ALONE = re.compile(STANDS_ALONE)
_BY_NAME = re.compile(_RAISED)
_WRAPPER = re.compile(
    r"Engine core initialization failed|See (?:stack trace|root cause)|EngineDeadError"
    r"|WorkerProc initialization failed|error messages above|Failed to init server|ProcessRaisedException"
    r"|^EOFError|^KeyboardInterrupt|^SystemExit|^RuntimeError: cancelled|CancelledError|BrokenPipeError"
    r"|ConnectionRefusedError|zmq\.error|scheduler (?:is dead|died during)|[Ss]igquit|SIGQUIT"
)
_PEER = re.compile(
    r"[Cc]onnection (?:closed|reset) by (?:remote )?peer|remote process (?:has )?(?:exited|terminated)"
    r"|unhandled system error|[Tt]imed? ?out|TimeoutError|DistStoreError|could finish the model loading"
)
_DRAFT_FRAME = re.compile(r'File "[^"]*(?:speculative|spec_decode|eagle|draft)')
_RANK = re.compile(r"\[rank(\d+)\]: ?")
_PROCESS = re.compile(r"Process ([\w.:-]+):$")
_DETAIL_FOLLOWS = re.compile(r"validation errors? for \w+$|:$")


def weight_of(text: str) -> int:
    """How likely this error is the cause of the others."""
    if kind_of(text) == KILLED:
        return ROOT
    if _WRAPPER.search(text):
        return WRAPPER
    return PEER if _PEER.search(text) else ROOT


class _Open:
    """A traceback that has begun and whose exception line is still to come."""

    __slots__ = ("who", "drafter", "silent")

    def __init__(self, who: str, silent: bool):
        self.who, self.drafter, self.silent = who, False, silent


# What a server says that could not do what a request asked, and had no reason to refuse it.
_ITS_FAULT = re.compile(r"\bfail|inconsistent|Compute error|[Ii]nvalid input batch")

# How the command line's own parser (argparse) ends a start, after its usage.
REFUSED = r"^[\w.-]+: error: "
_REFUSED = re.compile(REFUSED)


class Errors:
    """Collects the errors of one log; `cause()` chooses the real one.

    Tracebacks of several processes may be interleaved line by line. Those with a prefix of their own are followed by it
    (`source`); those without (source "") close in the order they opened. `phase()` gives the present load phase, for
    the sentence.
    """

    def __init__(self, engine: str, phase: Callable[[], str | None]):
        self.engine, self._phase = engine, phase
        self.fatal = False
        self.stopping = False  # an orderly stop: errors on the way down are not a cause
        self._uncaught = False  # an exception without a log prefix: nobody caught it
        self._raised_in: list[str | None] = []  # the phase of a process's last uncaught exception without a traceback
        self._fatal_ready = False  # it had been serving when it died
        self._best: tuple[tuple[bool, int], str, str] | None = None  # rank among errors, sentence, kind
        self._switch = ""  # an environment variable that the message itself proposes
        self._open: dict[str, list[_Open]] = {}  # by source
        self._detail: dict[str, tuple[_Open, str]] = {}  # exception lines whose next line tells what was wrong
        self._silent_next = False  # the next traceback is of an exception that Python ignored
        self._process = ""  # the name in the last "Process NAME:" line

    @property
    def busy(self) -> bool:
        """True while a traceback is open: the next lines must be fed, whatever they look like."""
        return bool(self._open or self._detail)

    def restart(self) -> None:
        """The engine was started again into the same log; the earlier cause stays known."""
        self.fatal = self.stopping = self._uncaught = self._fatal_ready = False
        self._raised_in = []
        self._open.clear()

    def mark_fatal(self, ready: bool) -> None:
        """The log tells that the engine is dead. ready: it had been serving."""
        if not self.stopping:
            self.fatal, self._fatal_ready = True, self._fatal_ready or ready

    def add(self, text: str, who: str = "", weight: int | None = None, drafter: bool = False) -> None:
        """One error: its exception line (or log message) and the process that printed it."""
        if self.stopping:
            return
        weight = weight_of(text) if weight is None else weight
        phase, kind = self._phase(), kind_of(text)
        if kind == KILLED:
            self.mark_fatal(phase == "ready")
        # What a start survived is not why the engine died later: errors while serving rank above those of the start.
        key = (phase == "ready" and weight > REQUEST, weight)
        if self._best is not None and self._best[0] >= key:
            return
        text = " ".join(text.split())
        switch = re.search(r"set the env var ([A-Z_]+=1)", text)
        self._switch = f" The message proposes {switch[1]}." if switch else ""
        text = text if len(text) <= 400 else text[:397] + "..."
        if kind in (OTHER, MODEL_FILES) and drafter and phase != "ready":
            kind = "draft load"  # not while serving: every step runs through the drafter's code then
        during = f" while {phase}" if phase else ""
        during = {" while ready": " while serving", " while restarted": " after a restart"}.get(during, during)
        verb = "failed"
        if weight == REQUEST:
            verb = "failed at a request" if _ITS_FAULT.search(text) else "refused a request"
            kind = FAILED_REQUEST if kind == OTHER and _ITS_FAULT.search(text) else kind
        self._best = (key, f"{who or self.engine} {verb}{during}: {text}", kind)

    def feed(
        self, body: str, source: str = "", who: str = "", silent: bool = False, logged: bool | None = None
    ) -> bool:
        """One line without its log prefix; True if it belonged to a traceback or is an error by itself.

        who: the process for the sentence. silent: the line is of a warning, so an error that it begins is none. logged:
        whether the line has the prefix of a logger, so that somebody caught the exception; by default, whether it has a
        source.
        """
        rank = _RANK.match(body)
        if rank:
            source, who, body = f"rank{rank[1]}", f"rank {rank[1]}", body[rank.end() :]
        if logged is None:
            logged = bool(source.strip("rank0123456789"))
        if source in self._detail:  # the line after "1 validation error for X" tells what was wrong
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
            return self._feed_alone(body, source, who, silent, logged)
        if not body or body[0] in " \t|+":
            if _DRAFT_FRAME.search(body):
                for opened in waiting:
                    opened.drafter = True
            return True
        if not _EXCEPTION.match(body):
            return False
        opened = waiting.pop(0)
        self._uncaught = self._uncaught or not (logged or opened.silent or self.stopping)
        if not waiting:
            del self._open[source]
        if _DETAIL_FOLLOWS.search(body):
            self._detail[source] = (opened, body)
        else:
            self._close(opened, body)
        return True

    def _feed_alone(self, body: str, source: str, who: str, silent: bool, logged: bool) -> bool:
        """A line outside of any traceback."""
        if _REFUSED.match(body):
            self.add(body)
            return True
        if not silent and _STANDS_ALONE.match(body):
            who = who or self._process
            if source and not logged and _BY_NAME.match(body) and not self.stopping:
                self._raised_in = [self._phase()]
            if "validation error" in body and _DETAIL_FOLLOWS.search(body):
                self._detail[source] = (_Open(who, False), body)
            else:  # a serving engine logs what was wrong with a request
                of_request = logged and self._phase() == "ready"
                self.add(body, who, REQUEST if of_request else min(weight_of(body), ALONE))
            return True
        process = _PROCESS.match(body)
        if process:
            self._process = process[1]
        self._silent_next = body.startswith("Exception ignored")  # in a destructor: Python goes on
        return False

    def _close(self, opened: _Open, text: str) -> None:
        """A traceback's exception line has come."""
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

    def conclude(self, reading: LogReading, tracker: PhaseTracker, served: bool) -> LogReading:
        """Write outcome, phases, cause and advice into `reading`, and return it.

        served: the log has a sign of requests answered, be its start there or not.
        """
        found = self.cause()
        if found:
            reading.cause, reading.cause_kind = found
            reading.advice = ADVICE[reading.cause_kind] + self._switch
        reading.phases, reading.excerpt = tracker.phases, not tracker.began
        reading.outcome = self._outcome(tracker, served, reading.lines)
        return reading

    def _outcome(self, tracker: PhaseTracker, served: bool, lines: int) -> str:
        """The last state that the log shows."""
        # An exception that nobody caught in a start that never became ready: dead, whether or not a launcher reported
        # it. One that stood alone may have been printed by somebody who went on: then a later phase follows.
        uncaught = self._uncaught or self._raised_in == [tracker.current]
        if self.fatal or (uncaught and not tracker.ready and not served):
            return "dead"
        if self.stopping:
            return "stopped"
        if served and (tracker.phases or lines > 1):  # a single line tells of its moment alone
            return "served"
        if tracker.ready:
            return "ready"
        return "starting" if tracker.phases else NOT_TOLD


def advise_stall(reading: LogReading) -> LogReading:
    """Write what to do about a suspected stall, where no error says more, into `reading`, and return it."""
    if reading.no_progress_since and not reading.cause:
        reading.advice = ADVICE[STALL]
    return reading
