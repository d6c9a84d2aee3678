"""Rows of cells in blocks and starts, made from numbers chosen here."""

import math

METHODS = {"b": "none", "x": "eagle3", "y": "eagle3"}


def rows(configuration, speeds, campaign=None, workload="chat", concurrency=1, most=None, engine="e"):
    """speeds: (start, block, tokens per second)."""
    name = configuration
    return [
        dict(key=f"{campaign}{name}{workload}{concurrency}{start}.{block}", configuration=name, engine=engine)
        | dict(method=METHODS.get(name, "none"), workload=workload, concurrency=concurrency, status="ok", repeat=block)
        | dict(output_tokens_per_second=speed, stream_tokens_per_second_p50=speed, tpot_ms_p50=1000 / speed)
        | dict(ttft_ms_p50=10.0, steps=50, drafted=150, accepted=50, output_tokens=101, requests=1)
        | dict(accepted_per_position=[30, 15, 5], k=3, round=start, campaign=campaign, start=start, block=block)
        | dict(most_starts=most)
        for start, block, speed in speeds
    ]


def series(factor, starts=3, drift=(1.0, 1.4, 0.7), noise=0.0):
    return [(s, s, 100 * factor * drift[s % 3] * math.exp(noise * (-1) ** s)) for s in range(starts)]
