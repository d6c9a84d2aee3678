"""Was the machine quiet? Each value against the campaign's own, and the profile's ceilings as long as there are few."""

import pytest

from runners.measure.machine_state import NOT_QUIET, MachineState, spread
from runners.profiles.gate_limits import Gates

LIMITS = Gates(neighbour_cores_ceiling=0.1, steal_ceiling=0.05)


def after(cells=(), starts=(), limits=LIMITS):
    state = MachineState(limits)
    for cores, steal in cells:
        state.cell("c", cores, steal)
    for seconds, gflops in starts:
        state.started("c", "vllm", seconds, gflops)
    return state


def test_ceilings_hold_as_long_as_little_was_seen():
    state = after()
    assert state.cell("c", 0.1, 0.05) is None
    assert state.cell("c", 0.5, 0.0) == f"{NOT_QUIET}: other work used 0.5 cores, ceiling 0.1 cores"
    assert state.cell("c", 0.0, 0.2) == f"{NOT_QUIET}: steal 20%, ceiling 5%"
    assert after(limits=Gates(check_neighbours=False)).cell("c", 0.5, 0.2) is None


QUIET = [(0.01, 0.001)] * 5


@pytest.mark.parametrize(
    ("earlier", "cores", "steal", "reason"),
    [
        (QUIET, 0.01, 0.001, None),
        (QUIET, 0.05, 0.025, None),  # unusual, and too little to show in any figure
        (QUIET, 0.07, 0.0, "other work used 0.07 cores, limit 0.06 cores where 0.01 cores is usual"),
        (QUIET, 0.0, 0.03, "steal 3%, limit 2.6% where 0.1% is usual"),
        # A host that always takes some of the machine: its usual level is above the ceiling.
        ([(0.01, s / 100) for s in (5, 6, 7, 6, 6)], 0.01, 0.08, None),
        ([(0.01, s / 100) for s in (5, 6, 7, 6, 6)], 0.01, 0.11, "steal 11%, limit 8.5% where 6% is usual"),
        # Somebody who works on it all the time is no usual state.
        ([(1.0, 0.0)] * 9, 1.0, 0.0, "other work used 1 cores, limit 0.2 cores"),
    ],
)
def test_a_cell_is_judged_against_the_campaigns_own_spread(earlier, cores, steal, reason):
    found = after(earlier).cell("c", cores, steal)
    assert found is None if reason is None else found.startswith(f"{NOT_QUIET}: {reason}")


def test_a_noisy_cell_does_not_make_noise_usual():
    state = after([*QUIET, (2.0, 0.5), (2.0, 0.5)])
    assert state.cell("c", 0.5, 0.0) is not None


STARTS = [(20.0, 220.0), (21.0, 230.0), (20.0, 225.0), (19.0, 228.0), (20.0, 222.0)]


@pytest.mark.parametrize(
    ("seconds", "gflops", "reason"),
    [
        (20.0, 225.0, None),
        (29.0, 190.0, None),
        (20.0, 150.0, "matrix products ran at 150 GFLOP/s before this start, usually at 225"),
        (60.0, 225.0, "this start took 60 s, usually 20 s with this engine"),
        (60.0, None, "this start took 60 s"),
    ],
)
def test_a_start_on_a_slow_machine_voids_its_cells_until_the_next_start(seconds, gflops, reason):
    state = after(starts=STARTS)
    found = state.started("slow", "vllm", seconds, gflops)
    assert found is None if reason is None else found.startswith(f"{NOT_QUIET}: {reason}")
    assert state.cell("slow", 0.0, 0.0) == found
    assert state.cell("c", 0.0, 0.0) is None, "the other server of the visit started well"
    state.started("slow", "vllm", 20.0, 225.0)
    assert state.cell("slow", 0.0, 0.0) is None


def test_few_starts_and_starts_of_another_engine_are_not_compared():
    assert after(starts=STARTS[:4]).started("c", "vllm", 90.0, 50.0) is None
    assert after(starts=STARTS).started("c", "llamacpp", 90.0, 225.0) is None
    seconds = MachineState(LIMITS)
    assert [seconds.started("c", "llamacpp", s, None) for s in (0.8, 0.8, 1.1, 1.1, 0.8, 2.0)] == [None] * 6


def test_spread():
    assert spread([1, 2, 3, 4, 100]) == (3, 1)
