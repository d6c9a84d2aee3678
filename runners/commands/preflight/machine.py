"""Pre-flight of the machine: cores, memory, disk, GPUs and the paths between them, compared with the profile's."""

import os
import shutil
from collections.abc import Iterator

import psutil

from runners.core import gpus, paths
from runners.core.finding import Finding
from runners.profiles.profile import Profile

ROOM = 1.05  # weights take a little more memory than disk: buffers, alignment


def check(profile: Profile) -> Iterator[Finding]:
    """Findings of this machine against the profile's `hardware` and the size of its target."""
    hardware, here = profile.hardware, gpus.found()
    weights_gib = profile.target.bytes_on_disk * ROOM / 2**30
    if hardware.gpus:
        yield from _gpus(hardware, here, weights_gib)
    elif here:
        yield Finding("note", f"{len(here)} GPUs are here; this profile does not use them")
    if hardware.cpu_cores and (os.cpu_count() or 0) < hardware.cpu_cores:
        words = f"{os.cpu_count()} cores, the profile expects {hardware.cpu_cores}"
        yield Finding("warning", words, "figures will not compare with the published ones")
    free = psutil.virtual_memory().available / 2**30
    if not hardware.gpus and free < 8 * weights_gib:
        # INT4 weights become eight times as large in fp32, which vLLM's CPU build serves.
        words = f"{free:.1f} GiB of memory are free; about {8 * weights_gib:.1f} are needed to serve in fp32"
        yield Finding("warning" if free > 4 * weights_gib else "blocker", words, "close other programs")
    room = shutil.disk_usage(paths.ROOT).free / 2**30
    if room < 5:
        yield Finding("warning", f"{room:.1f} GiB of disk are free; environments and runs take about 5", "free some")


def _gpus(hardware, here: list[gpus.Gpu] | None, weights_gib: float) -> Iterator[Finding]:
    if here is None:
        yield Finding(
            "blocker",
            f"no GPU can be looked at here; the profile expects {hardware.gpus} x {hardware.gpu_name or 'any'}",
            "run this on the box; its memory, paths and driver could not be looked at",
        )
        return
    if len(here) < hardware.gpus:
        yield Finding("blocker", f"{len(here)} GPUs, the profile expects {hardware.gpus}", "use another profile")
    if hardware.gpu_name and not any(hardware.gpu_name.lower() in g.name.lower() for g in here):
        words = f"the GPUs are {here[0].name}, the profile expects {hardware.gpu_name}"
        yield Finding("warning", words, "figures will not compare")
    used = here[: hardware.gpus]
    free, total = sum(g.free_gib for g in used), sum(g.memory_gib for g in used)
    if weights_gib > total:
        words = f"the weights need {weights_gib:.0f} GiB, {len(used)} GPUs have {total:.0f}"
        yield Finding("blocker", words, "more GPUs, or a smaller precision")
    elif weights_gib > free:
        words = f"the weights need {weights_gib:.0f} GiB, {free:.0f} of {total:.0f} are free"
        yield Finding("blocker", words, "end the processes that hold GPU memory (nvidia-smi lists them)")
    else:
        yield Finding(
            "note", f"{weights_gib:.0f} GiB of weights in {free:.0f} GiB free; {used[0].name}, driver {used[0].driver}"
        )
    joined = gpus.paths()
    kinds = sorted({how for pair, how in joined.items() if max(pair) < hardware.gpus})
    if kinds:
        yield Finding("note", f"GPU to GPU: {'; '.join(kinds)}")
    if any("no peer access" in how for how in kinds):
        words = "some pairs have no peer access: all-reduce goes through host memory"
        yield Finding("warning", words, "see the platform's IOMMU and ACS settings")
