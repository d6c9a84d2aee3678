"""Pre-flight of the machine: cores, memory, disk, GPUs and the paths between them, compared with the profile's."""

import os
import re
import shutil
from collections.abc import Iterator, Sequence

import psutil

from runners.core import gpus, paths
from runners.core.finding import Finding
from runners.engines.registry import engine
from runners.profiles.profile import Profile
from runners.serve import target_files

ROOM = 1.05  # weights take a little more memory than disk: buffers, alignment


def check(profile: Profile, names: Sequence[str] | None = None) -> Iterator[Finding]:
    """Findings of this machine against the profile's `hardware` and what these configurations (all) put into memory."""
    hardware, here = profile.hardware, gpus.found()
    weights_gib = profile.target.bytes_on_disk * ROOM / 2**30
    if hardware.gpus:
        yield from _gpus(hardware, here, weights_gib)
    elif here:
        yield Finding("note", f"{len(here)} GPUs are here; this profile does not use them")
    if hardware.cpu_cores and (os.cpu_count() or 0) < hardware.cpu_cores:
        words = f"{os.cpu_count()} cores, the profile expects {hardware.cpu_cores}"
        yield Finding("warning", words, "figures will not compare with the published ones")
    if not hardware.gpus:
        yield from _memory(profile, names)
    room = shutil.disk_usage(paths.ROOT).free / 2**30
    if room < 5:
        yield Finding("warning", f"{room:.1f} GiB of disk are free; environments and runs take about 5", "free some")


def _memory(profile: Profile, names: Sequence[str] | None) -> Iterator[Finding]:
    """Do the weights of the servers that are alive together fit?"""
    started = [n for n in names or profile.configurations if not profile.configuration(n).stands_alone]
    needed = sorted((served_gib(profile, name) for name in started), reverse=True)[: profile.hardware.servers_at_once]
    free = psutil.virtual_memory().available / 2**30
    if free < sum(needed):
        words = f"{free:.1f} GiB of memory are free; the weights of {len(needed)} servers take about {sum(needed):.1f}"
        short = "blocker" if needed and free < needed[0] else "warning"
        yield Finding(short, words, "close other programs, set servers_at_once to 1, or serve a smaller precision")


def served_gib(profile: Profile, name: str) -> float:
    """Memory that a configuration's weights take on a CPU, in GiB; 0 where their size is not known.

    A GGUF file is served as it is. A folder becomes larger where it is served in fp32, which vLLM's CPU build does.
    """
    form, chosen = engine(profile.configuration(name).engine).serves, profile.configuration(name)
    gib = target_files.bytes_of(profile.target, form) * ROOM / 2**30
    dtype = (profile.engines[chosen.engine].flags | chosen.flags).get("dtype")
    if form == "gguf" or not (profile.target.dequantised or dtype in ("float32", "float")):
        return gib
    return gib * 32 / bits(profile.target.precision)


def bits(precision: str) -> int:
    """Bits of a weight, by the name of its precision; 16 where the name does not tell.

    >>> bits("BF16"), bits("Q4_1"), bits("float32"), bits("fp8")
    (16, 4, 32, 8)
    """
    found = re.search(r"32|16|[2-8]", precision)
    return int(found[0]) if found else 16


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
