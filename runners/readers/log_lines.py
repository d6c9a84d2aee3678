"""The lines of a log without what collectors wrote in front of them, taken off once for all engines.

docker compose, Kubernetes, journald, Ray, mpirun, a logging service's JSON, a terminal's colours: which of them a log
has is decided from its first lines. A line that is not in that form passes unchanged.
"""

import itertools
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator

SAMPLE = 4000  # lines that are enough to see whose log it is and who collected it
DEPTH = 4  # collectors in front of one another, as in a journal of docker compose with times
FEW, MOST = 0.02, 0.6  # share of the lines that must have a form: one that no engine writes itself; any other

_DAY, _CLOCK, _ZONE, _END = r"\d{4}-\d\d-\d\d", r"\d\d:\d\d:\d\d(?:[.,]\d+)?", r"(?:Z|[+-]\d\d:?\d\d)", r"(?:[ \t]|$)"
_MONTH = r"[A-Z][a-z]{2} [ \d]\d"
# Processes that vLLM names itself: its reader needs them to tell the ranks' tracebacks apart.
_OF_VLLM = (
    r"(?:(?:API|Api)Server|EngineCore|Worker|VllmWorker|RayWorkerWrapper|DPCoordinator)"
    r"(?:_\w+)?(?: [\w=]+)? pid="
)

# Each form has at most one group: the collector's time.
_COLLECTORS = [
    rf"({_DAY}T{_CLOCK}{_ZONE}) std(?:out|err) [FP]{_END}",  # Kubernetes' files
    rf"({_MONTH} {_CLOCK}|{_DAY}[ T]{_CLOCK}{_ZONE}?|[A-Z][a-z]{{2}} {_DAY} {_CLOCK} \S+|\[ *\d+\.\d+\]) "
    rf"\S+ (?:[^\s\[\]:]+\[\d+\]|kernel):{_END}",  # journald in each of its formats, syslog
    rf"({_DAY}[ T]{_CLOCK}{_ZONE}?) +\|{_END}",
    rf"(?:({_CLOCK}) )?(?:(?=[\w.@/-]*[A-Za-z])[\w.@/-]++|\[[^\]\s]+\]) +\|{_END}",  # docker compose, foreman
    rf"\[?({_DAY}T{_CLOCK}{_ZONE})\]?{_END}",  # docker logs -t, kubectl --timestamps
    rf"\[?pod/[\w./-]+\]?{_END}",  # kubectl --prefix
    r"> ",  # quoted in a mail or an issue
    rf"[A-Za-z][\w.@-]*\[\d+\]:{_END}",  # journald without a time
    rf"\((?!{_OF_VLLM})[A-Za-z_][\w.:-]* pid=\d+(?:, ip=[\w.:]+)?\){_END}",  # Ray
    r"\[\d+,\d+\]<std(?:out|err)>:",  # mpirun
    r"\[default\d+\]:",  # torchrun
    rf"\[({_DAY} {_CLOCK})\] (?=\(\w+ pid=|[A-Z]+ \d\d-\d\d |\d+\.\d\d\.\d{{3}}\.\d{{3}} )",  # not before SGLang's
    r"(?:- )?[\w.]+ - (?:DEBUG|INFO|WARNING|ERROR) - |[\w.]+:[\w.<>]+:\d+ - ",  # Python's logging, loguru
]
# A time alone may be another program's own: most lines must begin with it.
_TIMES = [rf"({_MONTH} {_CLOCK}) ", rf"({_DAY} {_CLOCK})(?: ?{_ZONE})? ", rf"({_CLOCK}) "]
_LABELS = [
    r" *\d+: ",  # srun --label
    r"[A-Za-z][\w.-]*\d: ",  # pdsh, by host
    r"\[[A-Za-z][\w./-]*\] ",
    r"[a-z][a-z0-9.-]*-(?:\d+|[a-z0-9]{5}) [a-z][a-z0-9-]* ",  # stern: pod and container
]
_COLOUR = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07)")
# Colours whose escape byte was lost, or is spelled out.
_RESET = re.compile(r"(?<!\x1b)\[0(?:;\d{1,3})*m")
_LOST_COLOUR = re.compile(r"(?:\^\[|#033|\\x1b|\\u001b|\\033|\\e|\u241b|\ufffd)?\[\d{1,3}(?:;\d{1,3})*m")
_REPEATED = re.compile(r" *\[repeated \d+x across cluster\].*")  # Ray, behind a line of several processes
# A logging service's JSON, a line each: the keys of the text and of the time.
_TEXT = ("log", "message", "msg", "MESSAGE", "textPayload", "line")
_TIME = ("time", "timestamp", "@timestamp", "ts")


class LogLines:
    """The lines of a log in their order, to be read once.

    raw: the lines as they stand in the file. raw_sample: the first of them; sample: the same without prefixes. at: the
    collector's time of the line handed out last, as text; None without a collector.
    """

    def __init__(self, raw: Iterable[str]) -> None:
        self._rest = iter(raw)
        self.raw_sample = list(itertools.islice(self._rest, SAMPLE))
        self._of_json: str | None = None
        self._found: re.Match[str] | None = None
        self._is_json = _share(self.raw_sample, lambda line: line[:1] == "{" and _unwrap(line) is not None) >= MOST
        plain = [_text_of(line) for line in self.raw_sample] if self._is_json else self.raw_sample
        self._lost = any(_RESET.search(line) for line in plain)
        self._repeated = any("x across cluster]" in line for line in plain)
        plain = [self._plain(line) for line in plain]
        levels = _levels(plain)
        self._prefix = re.compile("".join(f"(?:{level})?" for level in levels)) if levels else None
        self.sample = [line[m.end() :] if self._prefix and (m := self._prefix.match(line)) else line for line in plain]

    def __iter__(self) -> Iterator[str]:
        lines: Iterator[str] = itertools.chain(self.raw_sample, self._rest)
        if self._is_json:
            lines = self._unwrapped(lines)
        if self._lost or self._repeated:
            lines = map(self._plain, lines)
        if self._prefix is None:
            for line in lines:
                yield _COLOUR.sub("", line) if "\x1b" in line else line
            return
        match = self._prefix.match
        for line in lines:
            if "\x1b" in line:
                line = _COLOUR.sub("", line)
            self._found = found = match(line)
            yield line[found.end() :] if found else line

    @property
    def at(self) -> str | None:
        """The collector's time of the line handed out last."""
        for at in self._found.groups() if self._found else ():
            if at:
                return str(at)
        return self._of_json

    def _plain(self, line: str) -> str:
        """The line without colours and without what Ray adds behind it."""
        if "\x1b" in line:
            line = _COLOUR.sub("", line)
        if self._lost:
            line = _LOST_COLOUR.sub("", line)
        return _REPEATED.sub("", line) if self._repeated else line

    def _unwrapped(self, lines: Iterator[str]) -> Iterator[str]:
        """The text in each line of JSON; a line that is not JSON as it is."""
        for line in lines:
            text, self._of_json = _unwrap(line) or (line, None)
            yield text


def clock_of(lines: Iterable[str]) -> Callable[[], str | None]:
    """A function that tells the collector's time of the line being read; None where no collector wrote one."""
    if not isinstance(lines, LogLines):
        return lambda: None
    log = lines
    return lambda: log.at


def _unwrap(line: str) -> tuple[str, str | None] | None:
    """(text, time) of a line that a logging service wrote as JSON, or None."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    text = next((found[key] for key in _TEXT if isinstance(found.get(key), str)), None)
    at = next((str(found[key]) for key in _TIME if found.get(key)), None)
    return None if text is None else (text, at)


def _text_of(line: str) -> str:
    return (_unwrap(line) or (line, None))[0]


def _share(lines: list[str], test: Callable[[str], bool]) -> float:
    """The share of lines that pass; blank lines are not counted."""
    whole = [line for line in lines if line.strip()]
    return sum(map(test, whole)) / len(whole) if whole else 0.0


def _levels(lines: list[str]) -> list[str]:
    """The patterns of the prefixes that stand one behind the other, outermost first."""
    lines = [line for line in lines if line.strip()]
    levels: list[str] = []
    while len(levels) < DEPTH and (level := _level(lines)):
        levels.append(level)
        form = re.compile(level)
        lines = [line[found.end() :] if (found := form.match(line)) else line for line in lines]
    return levels


def _level(lines: list[str]) -> str:
    """The pattern of the outermost prefix of these lines, or "" when they have none."""

    def with_form(form: str) -> int:
        match = re.compile(form).match
        return sum(match(line) is not None for line in lines)

    if not lines:
        return ""
    if found := [form for form in _COLLECTORS if with_form(form) >= max(1, FEW * len(lines))]:
        return "|".join(found)
    indent = os.path.commonprefix([line[: len(line) - len(line.lstrip())] for line in lines if line.strip()])
    if indent:
        return re.escape(indent)
    # One or two lines are too few to tell a label from the line's own first word.
    forms = [*_TIMES, *_LABELS] if len(lines) >= 3 else _TIMES
    return next((form for form in forms if with_form(form) >= MOST * len(lines)), "")
