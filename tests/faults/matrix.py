"""Every fault that is tried on purpose, with the state in which it must end. The tests of this folder are made from
these rows, so that none stands here untried.

name: of faulty.py's answer, or of what is damaged; said: words of the reason or of the sentence.
"""

from dataclasses import dataclass

VOID, WORKS, REFUSED, UNKNOWN, AGAIN, SAID = "void", "works", "refused", "unknown", "measured again", "said"


@dataclass(frozen=True)
class Fault:
    """end: VOID (that request, with its reason, and all else kept), WORKS, REFUSED (one sentence, exit code 2),
    UNKNOWN (the figure is not known, and nothing is guessed), AGAIN (set aside and measured again), SAID (counted on,
    and said).
    """

    kind: str
    name: str
    end: str
    said: str = ""


def rows(kind: str, end: str, said: dict[str, str]) -> list[Fault]:
    return [Fault(kind, name, end, words) for name, words in said.items()]


ODD = rows(
    "odd replies",
    VOID,
    {
        "choices-of-texts": "choices[0] must be an object, and it is 'x'",
        "choices-an-object": "choices must be a list",
        "choices-a-text": "choices must be a list",
        "delta-a-text": "choices[0].delta must be an object",
        "delta-a-list": "choices[0].delta must be an object",
        "content-a-number": "a piece of the answer must be a text, and it is 7",
        "content-of-numbers": "a piece of the answer must be a text",
        "content-true": "a piece of the answer must be a text",
        "thought-a-number": "a piece of the answer must be a text",
        "calls-of-texts": "a tool call must be an object",
        "calls-an-object": "tool_calls must be a list",
        "function-a-text": "a called function must be an object",
        "finish-a-list": "choices[0].finish_reason must be a text",
        "usage-a-list": "usage must be an object",
        "usage-a-text": "usage must be an object",
        "usage-of-texts": "usage.completion_tokens must be a whole number",
        "usage-fraction": "usage.completion_tokens must be a whole number",
        "usage-huge": "usage.completion_tokens must be a whole number",
        "usage-nan": "usage.completion_tokens must be a whole number",
        "usage-infinite": "usage.completion_tokens must be a whole number",
        "usage-true": "usage.completion_tokens must be a whole number",
        "usage-negative": "usage.completion_tokens must be a whole number",
        "prompt-negative": "usage.prompt_tokens must be a whole number",
        "usage-of-digits": "is no JSON object",
        "brackets": "is no JSON object",
        "deep": "is no JSON object",
        "no-json": "is no JSON object: {oops",
        "a-list": "is no JSON object",
        "lone-surrogate": "half of a character",
        "error-event": "out of memory  [31m",
        "error-of-lists": "[['x']]",
        "empty": "the stream ended early",
        "page": "the stream ended early",
        "cut": "the stream ended early",
        "error-500": "HTTP 500: </script><img src=x> [31m went wrong",
        "error-500-endless": "HTTP 500: no no",
        "moved": "HTTP 302: elsewhere",
        "compressed": "the server compressed its answer (gzip)",
        "torn-chunks": "",
        "short-body": "",
    },
)
ENDLESS = rows(
    "requests without an end",
    VOID,
    {
        "pings": "no token for 1 s",
        "silent": "no byte for 1 s",
        "pings-after-tokens": "the answer did not end within",
        "silent-after-tokens": "no byte for 1 s",
        "tokens-for-ever": "the answer did not end within",
    },
)
BOMBS = rows("bombs", VOID, {"one-long-line": "the server's answer is longer than"})
LEGAL = rows(
    "legal streams",
    WORKS,
    dict.fromkeys(
        (
            *("good", "crlf", "cr", "spaces", "no-space", "other-fields", "byte-order-mark", "comments"),
            *("several-lines", "byte-by-byte", "halves", "merged", "stays-open", "compresses-if-offered"),
        ),
        "",
    ),
)
METRICS = rows(
    "odd /metrics",
    UNKNOWN,
    dict.fromkeys(
        (
            *("position-raised", "position-bomb", "position-of-digits", "position-a-word"),
            *("counter-infinite", "counter-nan", "counter-negative", "counter-huge"),
            *("metrics-a-page", "metrics-json", "metrics-brackets", "metrics-empty", "metrics-words"),
            "metrics-endless",
        ),
        "",
    ),
)
REQUESTS = [
    Fault("damaged ledgers", "torn", AGAIN, "requests.parquet cannot be read"),
    Fault("damaged ledgers", "empty", AGAIN, "requests.parquet cannot be read"),
    Fault("damaged ledgers", "lacks a column", AGAIN, "requests.parquet lacks the column `text`"),
    Fault("damaged ledgers", "a folder", AGAIN, "requests.parquet is a folder and no file"),
    Fault("damaged ledgers", "gone", SAID, "requests.parquet lacks some"),
    Fault("damaged ledgers", "lacks rows", SAID, "requests.parquet lacks some"),
]
VERDICTS = rows(
    "odd verdicts",
    REFUSED,
    {
        "an earlier form": "must have schema_version 2",
        "serve is a list": "key `answers.0.serve` must be a valid string",
        "unknown use": "must be one of single_stream, throughput, goodput",
        "answer without its choice": "answer 1: key `reason` is missing",
        "points of texts": "key `points.0` must be a valid dictionary",
        "no text": "key `text` is missing",
        "step cost of 0": "key `points.0.step_cost` must be greater than 0",
        "nested": "is not JSON (it is nested deeper than 100 levels)",
        "number of 5,000 digits": "is not JSON (it holds a number of too many digits)",
    },
)
NESTED = [
    Fault("nesting and numbers", f"{what} of {file}", REFUSED, said)
    for file, what, said in (
        ("profile", "nesting", "is nested too deeply"),
        ("profile", "digits", "is not valid YAML: Exceeds the limit"),
        ("profile", "aliases of aliases", "more than 1,000,000 values or 50 levels"),
        ("profile", "an alias within itself", "more than 1,000,000 values or 50 levels"),
        ("ledger", "nesting", "line 1 is not JSON (it is nested deeper than 100 levels)"),
        ("ledger", "digits", "line 1 is not JSON (it holds a number of too many digits)"),
        ("timeline", "nesting", "is not JSON (it is nested deeper than 100 levels)"),
        ("config", "nesting", "cannot be read (it is nested deeper than 100 levels)"),
        ("prompts", "nesting", "not valid JSON (it is nested deeper than 100 levels)"),
    )
]
ARCHIVES = rows(
    "archives",
    REFUSED,
    {
        "many files": "holds more than 5,000 files or 2 GB",
        "large file": "holds more than 5,000 files or 2 GB",
        "a name with ESC": "which no runs have",
        "a name with a line end": "which no runs have",
        "a name with a script": "which no runs have",
        "a hidden name": "which no runs have",
        "a deep folder": "which no runs have",
        "a long header": "cannot be unpacked (a header of",
        "a link": "holds other things than runs",
        "a path out of it": "which no runs have",
    },
)
EXPOSED = [
    *rows(
        "open servers",
        SAID,
        {host: "whoever reaches this machine can use it" for host in ("0.0.0.0", "::", "192.168.0.7", "box.example")},
    ),
    *rows("open servers", WORKS, dict.fromkeys(("127.0.0.1", "localhost", "::1", "127.8.0.1"), "")),
]
ADDRESSES = rows(
    "addresses",
    REFUSED,
    {
        "http://me:hush-hush@127.0.0.1:8000": "must hold no user and no password",
        "http://127.0.0.1:99999": "range 0-65535",
        "http://127.0.0.1:8000?key=hush-hush": "without a query",
        "file:///etc/passwd": "must be an address such as",
        "http://": "must be an address such as",
    },
)
SAYINGS = [
    *rows("what a server says of itself", UNKNOWN, {"a version of lists": "", "a length of words": ""}),
    *rows("what a server says of itself", UNKNOWN, {"caps of texts": "", "a name with ESC": ""}),
    *rows(
        "what a server says of itself",
        REFUSED,
        dict.fromkeys(("models of texts", "models that are a number", "brackets"), "lists no model"),
    ),
]
FOLDERS = rows(
    "hostile folders",
    REFUSED,
    {
        "a shape of words": "says nothing possible of tensor 'fc.weight'",
        "a negative shape": "says nothing possible of tensor 'fc.weight'",
        "one offset": "says nothing possible of tensor 'fc.weight'",
        "a dtype of lists": "says nothing possible of tensor 'fc.weight'",
        "a header of 2**60 bytes": "its header is too long",
        "a config of many bytes": "must be a config of at most 10,000,000 bytes",
        "an index that leads out": "must name files of that folder, not '../../secret.safetensors'",
        "an index with a path": "must name files of that folder, not '/etc/passwd'",
        "an index of numbers": "cannot be read",
    },
)
OF_FILES = [*REQUESTS, *VERDICTS, *NESTED, *ARCHIVES, *FOLDERS]
ALL = [*ODD, *ENDLESS, *BOMBS, *LEGAL, *METRICS, *OF_FILES, *EXPOSED, *ADDRESSES, *SAYINGS]
