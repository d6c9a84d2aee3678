"""A plausible ledger of the lab's six configurations, made from numbers chosen here, for the analysis tests.

It is a fixture, never published: the shape is the real ledger's, the values are invented. One configuration
is "not measured here", one cell is void for good, one was void and then repeated.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd

PROFILE = "lab-cpu"
WORKLOADS = ("chat", "edit")
CONCURRENCIES = (1, 4, 16)
OUTPUT_TOKENS = 64
K = {"none": None, "ngram": 4, "eagle3": 3}
# Milliseconds of a plain decode step at C = 1, 4, 16: one engine batches well, the other hardly at all.
PLAIN_STEP_MS = {"llamacpp": (9.0, 30.0, 105.0), "vllm": (48.0, 62.0, 115.0)}
# (cost of a speculative step in plain steps, chance that the next drafted token is accepted)
COST = {
    ("llamacpp", "eagle3"): 3.4,
    ("llamacpp", "ngram"): 1.25,
    ("vllm", "eagle3"): 1.6,
    ("vllm", "ngram"): 1.05,
}
ACCEPT = {"eagle3": {"chat": 0.0, "edit": 0.0}, "ngram": {"chat": 0.15, "edit": 0.6}}
# Share of decode steps for which the drafter proposes anything.
DRAFTED_STEPS = {"eagle3": 1.0, "ngram": 0.4}

CONFIGURATIONS = {
    f"{engine}-{name}": (engine, method)
    for engine in ("llamacpp", "vllm")
    for name, method in (("base", "none"), ("ngram", "ngram"), ("eagle3-untrained", "eagle3"))
}


def _counts(rng, method, workload, tokens, requests):
    """Steps with a draft, drafted, accepted, accepted per position and all decode steps of one cell."""
    decode_tokens = tokens - requests
    k = K[method]
    if k is None:
        return None, None, None, None, decode_tokens
    a, share = ACCEPT[method][workload], DRAFTED_STEPS[method]
    survival = np.array([a ** (i + 1) for i in range(k)])
    steps_all = decode_tokens / (1 + share * survival.sum())
    steps = int(round(steps_all * share))
    positions = np.minimum.accumulate(rng.binomial(steps, survival)) if a else np.zeros(k, dtype=int)
    accepted = int(positions.sum())
    return steps, steps * k, accepted, [int(p) for p in positions], decode_tokens - accepted


def _cell(rng, configuration, workload, c, repeat, prompts):
    engine, method = CONFIGURATIONS[configuration]
    drift = 1 + 0.01 * rng.standard_normal()
    tokens = prompts * OUTPUT_TOKENS
    steps, drafted, accepted, positions, decode_steps = _counts(rng, method, workload, tokens, prompts)
    plain = PLAIN_STEP_MS[engine][CONCURRENCIES.index(c)] / 1000
    step = plain * COST.get((engine, method), 1.0) * drift
    tpot = step * decode_steps / (tokens - prompts)
    key = f"{configuration}-{workload}-c{c}-r{repeat}"
    rows, free = [], [0.0] * c
    for i in range(prompts):
        slot = int(np.argmin(free))
        sent = free[slot]
        first = sent + 0.03 * c**0.5 * (1 + 0.1 * rng.random())
        last = first + tpot * (OUTPUT_TOKENS - 1) * (1 + 0.03 * rng.standard_normal())
        free[slot] = last
        rows.append(
            dict(key=key, attempt=1, prompt_id=f"{workload}-{i:03d}", intended_s=sent, sent_s=sent,
                 first_token_s=first, last_token_s=last, prompt_tokens=80, output_tokens=OUTPUT_TOKENS,
                 finish_reason="length", error=None, text="text")
        )  # fmt: skip
    frame = pd.DataFrame(rows)
    seconds = float(max(free))
    decode = frame.last_token_s - frame.first_token_s
    cell = dict(
        schema_version=1, key=key, profile=PROFILE, configuration=configuration, engine=engine,
        engine_version="1.0", method=method, k=K[method], workload=workload, concurrency=c,
        context_tokens=80.0, repeat=repeat, forced_accept_length=None, status="ok", reasons=[], requests=prompts,
        output_tokens=tokens, seconds=seconds, output_tokens_per_second=tokens / seconds,
        stream_tokens_per_second_p50=float(((OUTPUT_TOKENS - 1) / decode).median()),
        ttft_ms_p50=float(1000 * (frame.first_token_s - frame.sent_s).median()),
        tpot_ms_p50=float(1000 * (decode / (OUTPUT_TOKENS - 1)).median()),
        steps=steps, drafted=drafted, accepted=accepted, accepted_per_position=positions,
        max_running_requests=16, count_source="usage", started_at="2026-01-01T00:00:00Z", depth="full",
        round=repeat, attempt=1, running_peak=c, capped_at=None, equal_prefix_share=0.99,
        reference_share=0.97, distinct_bigram_ratio=0.8, neighbour_cores=0.02, steal_share=0.0,
        client_cpu_us_per_token=40.0,
        output_tokens_per_request=OUTPUT_TOKENS, warm_up_requests=c,
    )  # fmt: skip
    return cell, frame


def write(root: Path, repeats: int = 5, prompts: int = 32, missing=("vllm-eagle3-untrained",), seed: int = 7) -> Path:
    """Write `<root>/lab-cpu/<configuration>/...` and return `root`."""
    rng = np.random.default_rng(seed)
    for configuration in CONFIGURATIONS:
        folder = Path(root) / PROFILE / configuration
        folder.mkdir(parents=True, exist_ok=True)
        if configuration in missing:
            reason = "the engine could not be installed"
            (folder / "status.json").write_text(json.dumps({"status": "not measured here", "reason": reason}))
            continue
        lines, frames = [], []
        for workload in WORKLOADS:
            for c in CONCURRENCIES:
                for repeat in range(repeats):
                    cell, frame = _cell(rng, configuration, workload, c, repeat, prompts)
                    point = (configuration, workload, c, repeat)
                    if point == ("llamacpp-ngram", "edit", 16, 1):
                        cell |= {"status": "void", "reasons": ["machine busy: 0.8 cores of other work"]}
                        cell["output_tokens_per_second"] /= 3
                    if point == ("vllm-base", "chat", 4, 0):
                        lines.append(cell | {"status": "void", "reasons": ["31 of 32 requests completed"]})
                        frames.append(frame)
                        cell, frame = cell | {"attempt": 2}, frame.assign(attempt=2)
                    lines.append(cell)
                    frames.append(frame)
        (folder / "cells.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        pd.concat(frames, ignore_index=True).to_parquet(folder / "requests.parquet")
        (folder / "status.json").write_text(json.dumps({"status": "measured", "reason": None}))
    return Path(root)
