"""One cell as a typed row of cells.jsonl: its fields, their units, and what each may hold.

Raw counts are stored and rates derived on read (accept length = 1 + accepted / steps). A name, once written, stays:
other tools read these files. A row may hold fields that this version does not know; they are kept.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from runners.core.validation import first_fault

SCHEMA_VERSION: Literal[1] = 1

Count = Annotated[int, Field(ge=0, le=2**63 - 1)]  # what a table column can hold
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]  # a whole number is an amount too
Number = Annotated[float, Field(allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]


class CellRow(BaseModel):
    """One attempt at one cell. What could not be measured is None; fields newer than the row are absent.

    Speculation's fields are None without speculation. The order of the fields is the order in the file.
    """

    # Strict: "4" is not a count, and neither is true. Extra fields are kept: a newer release may have written the row.
    model_config = ConfigDict(extra="allow", frozen=True, strict=True)

    # Which cell this is.
    schema_version: Literal[1] = SCHEMA_VERSION
    key: str  # hash of all that determines the cell (cell_key.py)
    attempt: Count = 0  # a void cell is measured again under the same key
    profile: str | None = None
    configuration: str
    engine: str
    engine_version: str | None = None
    method: str  # how it drafts; "none" without speculation
    k: Count | None = None  # draft tokens a step (K)
    workload: str  # the prompt set
    concurrency: Annotated[int, Field(ge=1)]  # requests in flight (C)
    repeat: Count
    round: Count | None = None  # the server start it belongs to
    campaign: str | None = None  # the stretch of measuring that it belongs to
    start: Count | None = None  # of the campaign: rows of one start were measured by servers of the same life
    block: Count | None = None  # of the campaign: the sides of a block were measured within seconds of each other
    order: Count | None = None  # place in the block: 0 was measured first
    settings: str | None = None  # hash of all that determines the cell but its place in a campaign
    load: Literal["closed", "open"] = "closed"
    rate: Amount | None = None  # open loop: requests a second that were intended
    depth: str | None = None  # the preset, under the name that it had when rows were first written
    forced_accept_length: Amount | None = None  # synthetic acceptance: tokens a step that the engine was set to
    simulated: bool = False  # measured against a stand-in engine
    max_running_requests: Count | None = None  # the server's cap on running requests
    output_tokens_per_request: Count | None = None  # requested in each request's `max_tokens`
    requests: Count | None = None

    # What the client saw; percentiles (p50, p95, p99) are over requests.
    context_tokens: Amount | None = None  # prompt tokens a request, mean
    output_tokens: Count | None = None  # of all answers without an error
    seconds: Amount | None = None  # of the window; before there were windows: of the whole cell
    occupancy: Amount | None = None  # mean requests in flight in the window over C
    output_tokens_per_second: Amount | None = None  # of all streams together
    stream_tokens_per_second_p50: Amount | None = None  # of one stream, after its first token
    ttft_ms_p50: Amount | None = None  # time to first token, milliseconds
    ttft_ms_p95: Amount | None = None
    ttft_ms_p99: Amount | None = None
    tpot_ms_p50: Amount | None = None  # time per output token after the first, milliseconds
    tpot_ms_p95: Amount | None = None
    tpot_ms_p99: Amount | None = None
    itl_ms_p50: Amount | None = None  # between two chunks of a stream, milliseconds
    itl_ms_p95: Amount | None = None
    itl_ms_p99: Amount | None = None
    e2e_ms_p50: Amount | None = None  # from when a request was intended to its last token, milliseconds
    e2e_ms_p95: Amount | None = None
    e2e_ms_p99: Amount | None = None
    decode_seconds: Amount | None = None  # of all streams in the window, after each one's first token, summed
    decode_tokens: Count | None = None  # that arrived in them
    count_source: str | None = None  # where token counts come from: "usage"
    client_cpu_us_per_token: Amount | None = None  # the client's own CPU time, microseconds

    # What the cell is good for.
    status: Literal["ok", "void"]
    reasons: list[str] | None = None  # why it is void; empty when it is ok

    # What the server counted over the cell.
    steps: Count | None = None  # verification steps, summed over requests
    drafted: Count | None = None  # draft tokens
    accepted: Count | None = None  # draft tokens accepted; the bonus token is never counted
    accepted_per_position: list[Count] | None = None  # accepted tokens at draft position 0, 1, ... (survival)
    server_output_tokens: Count | None = None
    requests_begun: Count | None = None  # requests with a first token in these counts, the ramp's and the cut ones too
    gauges: dict[str, Number | None] | None = None  # momentary values by name: shown, never averaged
    started_at: str | None = None  # UTC, ISO 8601

    # What the gates looked at, so that a reader can set other limits.
    running_peak: Amount | None = None  # most requests that the server ran at once
    capped_at: Count | None = None  # the server's cap where it is below the concurrency
    equal_prefix_share: Share | None = None  # of the base's answer (its first 256 characters), mean over answers
    answers_compared: Count | None = None  # answers of which a text of the base is known
    answers_that_differ: Count | None = None  # of those: anywhere up to where the shorter one ends
    early_differences: Count | None = None  # of those: within the first 20 characters
    reference_share: Share | None = None  # of the reference model's answer, mean over answers
    distinct_bigram_ratio: Share | None = None  # 1: no pair of words stands twice in an answer
    neighbour_cores: Amount | None = None  # cores used by other processes
    steal_share: Amount | None = None  # CPU time that the host gave to others, of all cores' time
    machine_gflops: Amount | None = None  # speed of the machine just before this server started
    warm_up_requests: Count | None = None
    gpu: dict[str, Number] | None = None  # power_w, memory_gib, sm_clock_mhz (core/gpus.py)
    acceptance_source: str | None = None  # the metric, or the log lines, that the counts come from
    not_seen: list[str] | None = None  # of a server that is not ours: what it did not show, so that no gate judged it

    @model_validator(mode="after")
    def at_most_drafted(self) -> "CellRow":
        if self.drafted is not None and self.accepted is not None and self.accepted > self.drafted:
            raise ValueError(f"`accepted` ({self.accepted}) must be <= `drafted` ({self.drafted})")
        return self

    def as_json(self) -> dict[str, Any]:
        """The row as it is written: the schema version and the fields that were given, in the order above."""
        given = {"schema_version": SCHEMA_VERSION} | self.model_dump(exclude_unset=True)
        if "running_peak" not in given:  # a cell that was never measured: written in this order since the first release
            given |= {name: given.pop(name) for name in ("status", "reasons", "started_at") if name in given}
        return given


def fault(row: dict[str, Any]) -> str | None:
    """What keeps a row of cells.jsonl from being a cell, in words; None for a good one."""
    try:
        CellRow.model_validate(row)
    except ValidationError as error:
        return first_fault(error, CellRow, "the row").rstrip(".")
    return None
