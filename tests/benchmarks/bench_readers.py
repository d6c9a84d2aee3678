"""How fast the log readers are, in megabytes a second, on logs of a busy server; the last line is one JSON object.

    .venv/bin/python tests/benchmarks/bench_readers.py [--megabytes 50]
Not a test: no speed is asserted anywhere. The three readers are timed in turn, three times, in one run, each also
behind LogLines, from a log without a collector's prefix and from one of docker compose. Beside them stands what merely
splitting the same text into lines takes, which is the floor of any reader.
"""

import argparse
import json
import statistics
import time

from runners.readers.log_lines import LogLines
from runners.readers.registry import reader

_SLOT = "I slot print_timing: id  {n} | task {t} | "
# What a busy server of each engine writes over and over in its pinned release.
LINES = {
    "sglang": [
        "[2026-02-01 12:{m:02d}:{s:02d} TP0] Decode batch, #running-req: {n}, #token: {t}, token usage: 0.11, "
        "accept len: {al:.2f}, accept rate: {rate:.2f}, cuda graph: True, gen throughput (token/s): {tp:.2f}, "
        "#queue-req: 0",
    ],
    "vllm": [
        "(APIServer pid=7) INFO 02-01 12:{m:02d}:{s:02d} [loggers.py:271] Engine 000: Avg prompt throughput: 12.5 "
        "tokens/s, Avg generation throughput: {tp:.1f} tokens/s, Running: {n} reqs, Waiting: 0 reqs, GPU KV cache "
        "usage: 1.5%, Prefix cache hit rate: 0.0%",
        "(APIServer pid=7) INFO 02-01 12:{m:02d}:{s:02d} [metrics.py:120] SpecDecoding metrics: Mean acceptance "
        "length: {al:.2f}, Accepted throughput: {tp:.2f} tokens/s, Drafted throughput: 90.00 tokens/s, Accepted: {n} "
        "tokens, Drafted: {t} tokens, Per-position acceptance rate: 0.500, 0.300, 0.100, Avg Draft acceptance rate: "
        "{pc:.1f}%",
    ],
    "llamacpp": [
        "1.{m:02d}.{s:02d}0.648 I slot get_availabl: id  {n} | task -1 | selected slot by LRU, t_last = 47639534356",
        "1.{m:02d}.{s:02d}1.648 I slot launch_slot_: id  {n} | task {t} | processing task, is_child = 0",
        "1.{m:02d}.{s:02d}2.648 " + _SLOT + "prompt eval time =    1033.15 ms /    62 tokens "
        "(   16.66 ms per token,    60.01 tokens per second)",
        "1.{m:02d}.{s:02d}2.648 " + _SLOT + "       eval time =    3558.69 ms /    64 tokens "
        "(   56.49 ms per token,    {tp:.2f} tokens per second)",
        "1.{m:02d}.{s:02d}2.649 " + _SLOT + "      total time =    4591.85 ms /   126 tokens",
        "1.{m:02d}.{s:02d}2.650 " + _SLOT + "   graphs reused =        669",
        "1.{m:02d}.{s:02d}2.651 " + _SLOT + "draft acceptance = {rate:.5f} (   {n} accepted /   "
        "{t} generated), mean len =  {al:.2f}",
        "1.{m:02d}.{s:02d}2.652 I slot      release: id  {n} | task {t} | stop processing: n_tokens = 125, "
        "truncated = 0",
    ],
}


def text_of(kind: str, megabytes: float) -> list[str]:
    lines, size, i = [], 0, 0
    while size < megabytes * 1e6:
        al = 1.2 + (i % 160) / 100
        figures = {"m": i // 60 % 60, "s": i % 60, "n": 1 + i % 48, "t": 100 + i % 9000, "al": al, "rate": al / 4}
        for form in LINES[kind]:
            line = form.format(**figures, tp=300 + i % 700, pc=25 + i % 60)
            lines.append(line)
            size += len(line) + 1
        i += 1
    return lines


def seconds(work) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--megabytes", type=float, default=50)
    size = p.parse_args().megabytes
    lines = {kind: text_of(kind, size) for kind in LINES}
    joined = {kind: "\n".join(part) for kind, part in lines.items()}
    found: dict[str, list[float]] = {kind: [] for kind in LINES}
    floor: dict[str, list[float]] = {kind: [] for kind in LINES}
    layer: dict[str, list[float]] = {kind: [] for kind in LINES}
    with_prefix: dict[str, list[float]] = {kind: [] for kind in LINES}
    collected = {kind: [f"{kind}-1  | {line}" for line in part] for kind, part in lines.items()}
    for _ in range(3):
        for kind in LINES:
            megabytes = len(joined[kind]) / 1e6
            floor[kind].append(megabytes / seconds(lambda kind=kind: joined[kind].split("\n")))
            found[kind].append(megabytes / seconds(lambda kind=kind: reader(kind).read_log(lines[kind])))
            layer[kind].append(megabytes / seconds(lambda k=kind: reader(k).read_log(LogLines(lines[k]))))
            with_prefix[kind].append(megabytes / seconds(lambda k=kind: reader(k).read_log(LogLines(collected[k]))))
    result = {}
    for kind in LINES:
        rate, split, behind, off = (statistics.median(times[kind]) for times in (found, floor, layer, with_prefix))
        result[kind] = round(rate, 1)
        print(f"{kind:9} {rate:6.0f} MB/s ({len(lines[kind]):,} lines; splitting alone {split:,.0f} MB/s)")
        print(f"{'':9} {behind:6.0f} MB/s behind the layer, {off:.0f} MB/s with a prefix taken off")
    print(json.dumps({"megabytes": size, "megabytes_per_second": result}))


if __name__ == "__main__":
    main()
