"""`specverdict diagnose --target DIR --drafter DIR`: why a drafter fails that stands in no profile.

The same three kinds of evidence as diagnose.py has: files, what an engine measured (its log or /metrics text), and
replay, where the target fits this machine.
"""

from collections.abc import Iterator
from pathlib import Path

from runners.core import checkpoint
from runners.core.checkpoint import Checkpoint
from runners.core.errors import UserError
from runners.core.finding import Finding
from runners.core.progress import Progress
from runners.drafter import compatibility, layouts, mtp_checks, replay_folders
from runners.drafter.diagnose import Diagnosis, rank
from runners.drafter.layouts import Layout
from runners.drafter.measured import Measured
from runners.engines.registry import all_engines
from runners.readers.together import Together


def look_at(target: Path, drafter: Path | None) -> tuple[Checkpoint, Layout]:
    """(the target, what drafts for it); without a drafter's folder the target's own MTP layers.

    UserError when a folder cannot be read, or when there is nothing that drafts.
    """
    folder = folder_of(target, "--target")
    whole = checkpoint.read(folder)
    if drafter is not None:
        own = folder_of(drafter, "--drafter")
        return whole, layouts.mtp_of(whole) if own == folder else layouts.of(checkpoint.read(own))
    sizes = compatibility.sizes_of(whole.config)
    found = layouts.mtp_of(whole)
    if not mtp_checks.count(sizes) and not any(mtp_checks.is_mtp(n, sizes["num_hidden_layers"]) for n in found.tensors):
        raise UserError(f"{target} has no MTP layers that could draft; give a drafter's folder with --drafter.")
    return whole, found


def folder_of(path: Path, option: str) -> Path:
    """The folder, resolved; UserError for anything else."""
    if path.is_file() or path.suffix == ".gguf":
        raise UserError(f"{option} must be a Hugging Face folder, and {path} is a file; give the folder it came from.")
    if not path.is_dir():
        raise UserError(f"There is no folder {path}; give a model's folder with {option}.")
    return path.resolve()


def diagnose(
    target: Checkpoint,
    head: Layout,
    measured: list[Measured],
    context_length: int | None = None,
    k: int | None = 3,
    say: Progress = print,
) -> Diagnosis:
    """Everything that the folders, the measured acceptance and replay tell. k: drafts of a chain; None: no replay."""
    sizes = compatibility.sizes_of(target.config)
    findings = compatibility.check_layout(head, sizes, context_length, target)
    alternatives: replay_folders.Alternatives = {}
    reason = "it was not asked for"
    if k is not None:
        alternatives, reason = replay_folders.what_if(target, head, k, say)
    return Diagnosis(findings, measured, alternatives, rank(findings, measured, alternatives), reason)


def other_method(head: Layout, server: Together) -> Iterator[Finding]:
    """A warning where a server's texts name another method than the one that the drafter was made for."""
    kind, said = all_engines().get(server.engine), server.drafter.method
    served = kind.known_as(said) if kind and said else None
    if kind and served in layouts.TITLES and served != head.method:
        words = f"the server was started with method {said}, but by its files the drafter is: {head.title}"
        yield Finding("warning", words, f"start it with the method {kind.spellings.get(head.method, head.method)}")
