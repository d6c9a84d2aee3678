"""GPUs through NVML (nvidia-ml-py): what is there, how they reach each other, and what they do during a cell.

Without a GPU, a driver or the library nothing here fails: the answer is None or empty. Memory in GiB, power in watts,
clocks in MHz.
"""

import functools
import importlib
import threading
from dataclasses import dataclass
from typing import Any

from runners.core.errors import UserError

PERIOD_S = 0.5
DRIVER_TIMEOUT_S = 60.0
# NVML's levels of the nearest common ancestor of two GPUs (nvmlGpuTopologyLevel_t).
PATHS = {0: "same board", 10: "one PCIe switch", 20: "several PCIe switches", 30: "one CPU's PCIe root"}
PATHS |= {40: "one NUMA node", 50: "between CPU sockets"}


@dataclass(frozen=True)
class Gpu:
    """One GPU as its driver names it."""

    name: str
    memory_gib: float
    free_gib: float
    driver: str


@functools.cache
def _library() -> Any:
    """pynvml, initialised; None without the library, the driver or a GPU. It has no types: hence Any.

    UserError when the driver does not answer: a broken GPU is not a machine without GPUs.
    """
    ready: list[Any] = []

    def initialise() -> None:
        try:
            pynvml = importlib.import_module("pynvml")
            pynvml.nvmlInit()
        except Exception:  # the library raises its own kinds, and ImportError where it is not installed
            ready.append(None)
        else:
            ready.append(pynvml)

    # A hung driver never returns from the kernel: the thread is left behind, and must not keep us from ending.
    thread = threading.Thread(target=initialise, daemon=True)
    thread.start()
    thread.join(DRIVER_TIMEOUT_S)
    if not ready:
        raise UserError(f"The GPU driver has not answered for {DRIVER_TIMEOUT_S:.0f} s; repair it and run again.")
    return ready[0]


def found() -> list[Gpu] | None:
    """Every GPU, in the driver's order; None when none can be seen."""
    nv = _library()
    if nv is None:
        return None
    driver = _text(nv.nvmlSystemGetDriverVersion())
    gpus = []
    for i in range(nv.nvmlDeviceGetCount()):
        handle = nv.nvmlDeviceGetHandleByIndex(i)
        memory = nv.nvmlDeviceGetMemoryInfo(handle)
        gpus.append(Gpu(_text(nv.nvmlDeviceGetName(handle)), memory.total / 2**30, memory.free / 2**30, driver))
    return gpus


def paths() -> dict[tuple[int, int], str]:
    """How each pair of GPUs (i < j) is joined; empty where the driver does not tell."""
    nv = _library()
    if nv is None:
        return {}
    handles = [nv.nvmlDeviceGetHandleByIndex(i) for i in range(nv.nvmlDeviceGetCount())]
    joined = {}
    for i, a in enumerate(handles):
        for j in range(i + 1, len(handles)):
            try:
                level = nv.nvmlDeviceGetTopologyCommonAncestor(a, handles[j])
                reads = nv.nvmlDeviceGetP2PStatus(a, handles[j], nv.NVML_P2P_CAPS_INDEX_READ)
            except nv.NVMLError:
                continue
            # Without peer access tensor-parallel ranks exchange through the host's memory, which is far slower.
            peer = "peer access" if reads == nv.NVML_P2P_STATUS_OK else "no peer access"
            joined[i, j] = f"{PATHS.get(level, f'level {level}')}, {peer}"
    return joined


class Sampler:
    """Samples every GPU until `stop`, in a thread of its own: the timed loop must not wait for the driver."""

    def __init__(self, period_s: float = PERIOD_S):
        self._nv, self._period = _library(), period_s
        self._rows: list[tuple[float, float, float]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True) if self._nv else None

    def start(self) -> None:
        """Begin; does nothing without a GPU."""
        if self._thread:
            self._thread.start()

    def _run(self) -> None:
        nv = self._nv
        handles = [nv.nvmlDeviceGetHandleByIndex(i) for i in range(nv.nvmlDeviceGetCount())]
        while not self._over.wait(self._period):
            try:
                watts = sum(nv.nvmlDeviceGetPowerUsage(h) for h in handles) / 1000
                used = sum(nv.nvmlDeviceGetMemoryInfo(h).used for h in handles) / 2**30
                clock = sum(nv.nvmlDeviceGetClockInfo(h, nv.NVML_CLOCK_SM) for h in handles) / max(len(handles), 1)
            except nv.NVMLError:  # a GPU that fell off the bus: its engine will report it
                continue
            self._rows.append((watts, used, clock))

    def stop(self) -> dict[str, float] | None:
        """{power_w (all GPUs, mean), memory_gib (peak), sm_clock_mhz (mean)}; None without a GPU or a sample."""
        if not self._thread:
            return None
        self._over.set()
        self._thread.join()
        if not self._rows:
            return None
        watts, used, clocks = zip(*self._rows, strict=True)
        n = len(watts)
        facts = {"power_w": sum(watts) / n, "memory_gib": max(used), "sm_clock_mhz": sum(clocks) / n}
        return {name: round(value, 1) for name, value in facts.items()}


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
