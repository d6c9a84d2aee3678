"""SGLang's decode line: its fields, in any order, and the records made of them.

What the printed accept rate means can be seen only from all lines of a server together (accept_rates.py), so records
are completed at the end (`settle`). log.py names the releases whose forms these are.
"""

import re
from collections.abc import Callable
from typing import Protocol

from runners.readers.accept_rates import UNKNOWN_DEFINITION, infer, recomputed
from runners.readers.records import AcceptanceRecord, blank_record

BEGIN = "Decode batch"
# Data-parallel rank (None without one), then as printed: running requests, accept length, accept rate, output tokens/s,
# queued requests.
Fields = tuple[str | None, str, str | None, str | None, str, str]
BareFields = tuple[str | None, str | None, str | None, str | None, str | None]  # the same, any of them missing


class _UsualMatch(Protocol):
    """A match of USUAL: its groups are the fields."""

    def groups(self) -> Fields: ...


MatchUsual = Callable[[str], _UsualMatch | None]


# The usual form in one scan; any other order or selection of fields goes through `fields_of`.
USUAL = re.compile(
    r"\[\d[^\]D\r]{6,70}+(?:(DP\d{1,4}+)[^\]\r]{0,30}+)?+\] Decode batch(?: \[\d+\])?[.,] #running-req: (\d++), "
    r"(?:#token: \d++, token usage: [\d.]++, |(?:[#tfsm][^,\r]*+, )*+)"
    r"(?:accept len: (\d++\.\d++), accept rate: (\d++\.\d++), )?+(?:[a-z]++ graph: \w++, )?+"
    r"gen throughput \(token/s\): (\d++\.\d++), #queue-req: (\d++)(?:, [^\r]*)?$"
)
_DP_RANK = re.compile(r"\[\d[^\]D\r]*+(DP\d{1,4})")
_BARE = re.compile(r"(?:\.{3} *)?(?:Decode batch(?: \[\d+\])?[.,] |accept len: \d)")
_BARE_FIELDS = tuple(
    re.compile(rf"(?:^|[,.] +){name}: (\d+{decimals})(?![\d.])")
    for name, decimals in (
        ("#running-req", ""),
        ("accept len", r"\.\d+"),
        ("accept rate", r"\.\d+"),
        (r"gen throughput \(token/s\)", r"\.\d+"),
        ("#queue-req", ""),
    )
)


def body_at(line: str) -> int:
    """The index at which the message of a line with a log prefix begins; -1 without a prefix."""
    at = line.find("] ", 8, 120) + 2
    return at if at > 1 and line[0] == "[" and line[1].isdigit() else -1


def dp_rank_of(line: str) -> str | None:
    """The data-parallel rank in a line's prefix, such as "DP1"; None without one."""
    found = _DP_RANK.match(line)
    return found[1] if found else None


def fields_of(line: str) -> Fields | None:
    """The fields of a decode line by name, in any order; None if one is missing or not a number (an unknown form)."""
    # With the comma: newer lines also have "block accept len".
    length, rate = _value(line, ", accept len: "), _value(line, ", accept rate: ")
    running, queued = _value(line, "#running-req: "), _value(line, ", #queue-req: ")
    throughput = _value(line, ", gen throughput (token/s): ")
    if running is None or queued is None or throughput is None or (length is None and rate is not None):
        return None
    try:
        int(running), int(queued), float(throughput)
        for printed in (length, rate):
            if printed is not None:  # an empty text is not a number either
                float(printed)
    except ValueError:
        return None
    return dp_rank_of(line), running, length, rate, throughput, queued


def bare_fields_of(line: str) -> BareFields | None:
    """The fields of a decode line that somebody cut out of a log: without its time, and any field may be missing.

    None without both running requests and an accept length. A whole log may hold such a line as an echoed prompt, so
    `read_log` uses it only where no line has SGLang's prefix.
    """
    if not _BARE.match(line):
        return None
    running, length, rate, throughput, queued = (
        found[1] if (found := field.search(line)) else None for field in _BARE_FIELDS
    )
    return None if running is None and length is None else (running, length, rate, throughput, queued)


class Load:
    """The most requests that ran at the same time, from lines that each tell of one data-parallel rank.

    Between two lines of a rank the others print theirs: those lines together are the load of that moment. A rank that
    printed nothing meanwhile had nothing to run.
    """

    def __init__(self) -> None:
        self._lines = 0
        self._last: dict[str, tuple[int, int]] = {}  # rank -> (number of its last line, requests)
        self.most: int | None = None

    def add(self, rank: str, running: int) -> None:
        """One more line."""
        self._lines += 1
        before = self._last[rank][0] if rank in self._last else 0
        self._last[rank] = self._lines, running
        total = sum(requests for number, requests in self._last.values() if number > before)
        self.most = total if self.most is None else max(self.most, total)


class Records:
    """The records of a log's decode lines that have an accept length, in the order of the lines.

    Both are printed with two decimals, so there are few different pairs of accept length and rate: what belongs to a
    pair is computed once. plain_throughputs: output tokens/s of the lines without speculation, idle ones left out.
    """

    def __init__(self) -> None:
        self.records: list[AcceptanceRecord] = []
        self.plain_throughputs: list[float] = []
        self._of_pair: dict[tuple[str, str | None], tuple[float, float | None, list[AcceptanceRecord]]] = {}

    def add(self, line: str, fields: Fields, idle: bool) -> None:
        """One more line and its fields. Without an accept length (no speculation) it makes no record."""
        _, running, length, rate, throughput, queued = fields
        if length is None:
            if not idle:
                self.plain_throughputs.append(float(throughput))
            return
        if (known := self._of_pair.get((length, rate))) is None:
            known = float(length), None if rate is None else float(rate), []
            self._of_pair[length, rate] = known
        record = blank_record()
        record.line = line
        record.accept_length, record.printed_rate, of_pair = known
        record.definition = UNKNOWN_DEFINITION
        record.accepted = record.drafted = record.per_position = None  # the line has no counts
        record.recomputed_rate = None
        record.running = int(running)
        record.queued = int(queued)
        record.throughput = float(throughput)
        record.idle = idle
        self.records.append(record)
        of_pair.append(record)

    def add_bare(self, line: str, fields: BareFields, idle: bool) -> None:
        """The same for a line of which fields are missing."""
        running, length, rate, throughput, queued = fields
        if length is None and throughput is None:
            return
        self.add(line, (None, running or "0", length, rate, throughput or "0", queued or "0"), idle)
        if length is None:
            return
        record = self.records[-1]
        if running is None:
            record.running = None
        if throughput is None:
            record.throughput = None
        if queued is None:
            record.queued = None

    def settle(self, num_draft_tokens: int | None = None, definition: str | None = None) -> str:
        """Set `definition` and `recomputed_rate` of every record; returns the definition.

        definition: the meaning of the printed rate; num_draft_tokens: drafts plus one. Each is inferred from all
        records unless it is given.
        """
        rated = [(length, rate) for length, rate, _ in self._of_pair.values() if rate is not None]
        inferred, number = infer(rated, num_draft_tokens)
        definition = definition or (inferred if rated else UNKNOWN_DEFINITION)
        for length, rate, of_pair in self._of_pair.values():
            share = recomputed(length, rate, definition, number)
            for record in of_pair:
                record.definition, record.recomputed_rate = definition, share
        return definition

    @property
    def rated(self) -> bool:
        """Whether any line has an accept rate."""
        return any(rate is not None for _, rate, _ in self._of_pair.values())


def _value(line: str, name: str) -> str | None:
    """The value of a `name: value` field of a decode line. `name` includes what must come before it."""
    at = line.find(name)
    if at < 0:
        return None
    at += len(name)
    end = line.find(",", at)
    return line[at:] if end < 0 else line[at:end]


def acceptance_of(
    line: str, num_draft_tokens: int | None = None, definition: str | None = None
) -> AcceptanceRecord | None:
    """The record of a decode line with speculation, or None for any other line.

    The definition is inferred from this line alone unless given; `read_log` infers it from all lines.
    """
    line = line.rstrip()
    at = body_at(line)
    fields = fields_of(line) if at >= 0 and line.startswith(BEGIN, at) else None
    if fields is None or fields[2] is None:
        return None
    one = Records()
    one.add(line, fields, idle=False)
    one.settle(num_draft_tokens, definition)
    return one.records[0]
