"""Copy a profile's local runs to data/runs, where they are committed and the book's readers see them."""

import re
import shutil
from pathlib import Path

import nbformat

from runners.analyse import forecasts, sweeps
from runners.analyse.verdict import decide, store
from runners.claims import reproduction
from runners.core import paths
from runners.core.errors import UserError
from runners.measure import campaign_record
from runners.profiles.load import argument
from runners.profiles.profile import Profile
from runners.report.book import ANALYSES, hide_code, title_run
from runners.report.execute import Page, execute

# What a rebuild needs and a reader may want; logs in full and half-written files stay behind.
MEASURED = ("cells.jsonl", "requests.parquet", "environment.json", "timeline.json", "status.json")
PUBLISHED = (*MEASURED, "server.log")


def _forget_paths(path: Path) -> None:
    """papermill notes where it read and wrote; the reader of a published notebook has other folders."""
    notebook = nbformat.read(path, 4)
    for key in ("input_path", "output_path"):
        notebook.metadata.get("papermill", {}).pop(key, None)
    nbformat.write(notebook, path)


def _source(profile: Profile, runs: Path) -> Path:
    """The folder to publish from; UserError for simulated runs, and where there are no runs."""
    if profile.simulated:
        raise UserError(f"{profile.name} is a rehearsal: simulated figures are never published.")
    source = runs / profile.name
    if not source.is_dir():
        raise UserError(
            f"There are no runs of {profile.name} in {runs}; run `make report PROFILE={argument(profile.name)}` first."
        )
    return source


def publish(profile: Profile, runs: Path) -> int:
    """Copy a profile's runs to data/runs and run the analyses on them there. Returns the command's exit status.

    Runs that are published already are only analysed again, for a chapter that is new or changed.
    """
    source, target = _source(profile, runs), paths.PUBLISHED_RUNS / profile.name
    if source.resolve() == target.resolve():
        if not sweeps.is_sweep(profile):
            _analyse(profile, target)
    else:
        _replace(profile, source, target)
    size = sum(f.stat().st_size for f in target.rglob("*") if f.is_file())
    print(f"published {profile.name}: {size / 1e6:.1f} MB in {target.relative_to(paths.ROOT)}")
    return 0


def elsewhere(profile: Profile, runs: Path, machine: str) -> int:
    """Copy what was measured on another machine, without notebooks and logs, to data/elsewhere/<machine>.

    The chapter on reproduction compares these runs with the published ones.
    """
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", machine):
        raise UserError(
            f"`{machine}` cannot name a machine; use lower-case letters, digits and dashes: --machine two-cores."
        )
    source, target = _source(profile, runs), reproduction.ELSEWHERE / machine / profile.name
    part = target.with_name(f".{target.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    _copy_cells(profile, source, part, MEASURED)
    if not part.is_dir():
        raise UserError(f"{source} holds no measured cell of {profile.name}; measure first.")
    for file in [*source.glob(forecasts.FILE), *source.glob(campaign_record.FILE)]:
        shutil.copy2(file, part / file.name)
    shutil.rmtree(target, ignore_errors=True)
    part.rename(target)
    size = sum(f.stat().st_size for f in target.rglob("*") if f.is_file())
    kept = target.relative_to(reproduction.ELSEWHERE.parent.parent)
    print(f"kept {profile.name} of {machine}: {size / 1e6:.1f} MB in {kept}")
    return 0


def _replace(profile: Profile, source: Path, target: Path) -> None:
    before = target.with_name(f".{target.name}.before")
    shutil.rmtree(before, ignore_errors=True)
    if target.is_dir():
        target.rename(before)  # it comes back if anything below fails
    try:
        _copy(profile, source, target)
        if sweeps.is_sweep(profile):
            return shutil.rmtree(before, ignore_errors=True)
        kept = source / "alignment" if (source / "alignment").is_dir() else before / "alignment"
        if kept.is_dir():  # measured by `align`, apart from a report
            shutil.copytree(kept, target / "alignment")
        _analyse(profile, target)
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        if before.is_dir():
            before.rename(target)
        raise
    shutil.rmtree(before, ignore_errors=True)


def _copy_cells(profile: Profile, source: Path, target: Path, names: tuple[str, ...]) -> None:
    """These files of each configuration that has them."""
    for configuration in profile.configurations:
        for name in names:
            file = source / configuration / name
            if file.is_file():
                copy = target / configuration / name
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(file, copy)


def _copy(profile: Profile, source: Path, target: Path) -> None:
    _copy_cells(profile, source, target, PUBLISHED)
    notebooks = target / "notebooks"
    for file in () if sweeps.is_sweep(profile) else source.glob("notebooks/run_campaign.ipynb"):
        notebooks.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, notebooks / file.name)
    for file in [*source.glob("report-*.json"), *source.glob(forecasts.FILE), *source.glob(campaign_record.FILE)]:
        shutil.copy2(file, target / file.name)


def _analyse(profile: Profile, target: Path) -> None:
    """The chapters and run pages on what is published, so that nbval re-executes exactly what is committed."""
    notebooks = target / "notebooks"
    given = {"profile": profile.name, "runs": "published"}
    measured = [name for name in profile.configurations if (target / name).is_dir()]
    pages = [Page(name, name, given) for name in ANALYSES]
    pages += [Page("run_configuration", f"run_{name}", given | {"configuration": name}) for name in measured]
    execute(pages, notebooks)
    for path in notebooks.glob("*.ipynb"):
        _forget_paths(path)
        hide_code(path)
    for path in notebooks.glob("run_*.ipynb"):
        title_run(path)
    store.write("published", profile.name, decide.of("published", profile.name))
