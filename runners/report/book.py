"""The book from data: stage a source tree for one profile's runs, build it, return its first page.

The committed chapters name one profile's notebooks by path, because that is how MyST glues a figure across
pages (`../data/runs/<profile>/notebooks/verdict.ipynb::key`). Staging another profile rewrites that one path
segment in the copied chapters. A neutral fixed path would be simpler, but then a page's address, which
readers pass on, would no longer say which machine it is about, and the plain `jupyter-book build .` would
need staging too.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from runners.core import files, paths, progress
from runners.core.errors import UserError
from runners.core.format import SIMULATED
from runners.measure.ledger import ledger_lines
from runners.profiles import load
from runners.report import pictures

SOURCE = paths.ROOT / "book"
CONFIG = paths.ROOT / "_config.yml"
NOTEBOOKS = re.compile(r"data/runs/([^/\s]+)/notebooks/")
GLUED = re.compile(r"\{glue(?::\w+)?\}`{1,2}[^`]*?notebooks/(\w+)\.ipynb::(\w+)")
ANALYSES = ("comparison", "acceptance", "drafter", "alignment", "payoff", "verdict", "claims", "reproduction")


def build_folder(simulated: bool = False) -> Path:
    """The folder the book is built in; a rehearsal's book has its own, so that it never replaces the real one."""
    return paths.BUILD / "rehearsal" / "book" if simulated else paths.BUILD / "book"


def committed_profile() -> str:
    """The profile the committed chapters and contents name, which is the published one."""
    found = NOTEBOOKS.search((SOURCE / "_toc.yml").read_text(encoding="utf-8"))
    if not found:
        raise UserError("book/_toc.yml names no data/runs/<profile>/notebooks/; restore it from the repository.")
    return found.group(1)


def run_notebooks(folder: Path, order: Sequence[str] = ()) -> list[Path]:
    """The executed run_<configuration>.ipynb of a folder, in the profile's order, then by name."""
    rank = {name: i for i, name in enumerate(("campaign", *order))}
    found = folder.glob("run_*.ipynb")
    return sorted(found, key=lambda p: (rank.get(p.stem.removeprefix("run_"), len(rank)), p.stem))


def contents(profile: str, runs: Sequence[Path]) -> dict:
    """The contents for a profile: the committed ones with its folder, and `runs` where they have a glob.

    A part whose only entry was that glob disappears when there are no runs to show.
    """
    text = (SOURCE / "_toc.yml").read_text(encoding="utf-8")
    toc = yaml.safe_load(NOTEBOOKS.sub(f"data/runs/{profile}/notebooks/", text))
    for part in toc["parts"]:
        chapters = []
        for entry in part["chapters"]:
            folder = Path(entry["glob"]).parent if "glob" in entry else None
            chapters += [{"file": str(folder / run.stem)} for run in runs] if folder else [entry]
        part["chapters"] = chapters
    toc["parts"] = [part for part in toc["parts"] if part["chapters"]]
    return toc


def asked_names(notebook: str, chapters: Path = SOURCE) -> set[str]:
    """The names of figures that the book's pages ask of a notebook (`{glue:text}` with its path)."""
    texts = (page.read_text(encoding="utf-8") for page in chapters.glob("*.md"))
    return {name for text in texts for asked, name in GLUED.findall(text) if asked == notebook}


def glued_names(notebook: Path) -> set[str]:
    """The names an executed notebook has glued."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    outputs = (output for cell in cells for output in cell.get("outputs", []))
    names = (output.get("metadata", {}).get("scrapbook", {}).get("name") for output in outputs)
    return {name for name in names if name}


def unglued(chapters: Path, notebooks: Path) -> Iterator[tuple[str, str, str]]:
    """(chapter, notebook, name) for each figure a chapter asks for that the notebook does not hold."""
    held = {name: glued_names(notebooks / f"{name}.ipynb") for name in ANALYSES}
    for chapter in sorted(chapters.glob("*.md")):
        for notebook, name in GLUED.findall(chapter.read_text(encoding="utf-8")):
            if name not in held.get(notebook, ()):
                yield chapter.name, notebook, name


def hide_code(notebook: Path) -> None:
    """Keep code off a page, but for a chapter's own calculation.

    papermill adds a cell with its parameters, which no source can tag; run pages that an earlier version measured have
    the tag `hide-input`, which leaves a bar to click on.
    """
    content = json.loads(notebook.read_text(encoding="utf-8"))
    for cell in content["cells"]:
        tags = cell["metadata"].get("tags", [])
        if {"injected-parameters", "parameters", "hide-input"} & set(tags):
            cell["metadata"]["tags"] = [t for t in tags if t not in ("hide-input", "remove-input")] + ["remove-input"]
    files.write_text(notebook, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def title_run(notebook: Path) -> None:
    """Give an executed run notebook the name of its configuration: pages with one title cannot be told apart."""
    text = notebook.read_text(encoding="utf-8")
    title = f"# Run: {notebook.stem.removeprefix('run_')}"
    text = text.replace("# Run a campaign", title, 1).replace("# Run one configuration", title, 1)
    files.write_text(notebook, text)


def stage(runs_root: Path, profile: str, build_dir: Path, order: Sequence[str] = ()) -> Path:
    """Write the source tree of the book for `profile` into `build_dir`/source and return that folder.

    `order` gives the configurations in the order the appendix should list them. Raises UserError when an
    analysis notebook is missing, stopped at an error or does not hold a figure that a chapter glues.
    """
    folder = Path(runs_root) / profile / "notebooks"
    _refuse_unfinished(folder, profile)
    tree = Path(build_dir) / "source"
    if tree.exists():
        shutil.rmtree(tree)
    shutil.copytree(SOURCE, tree / "book", ignore=shutil.ignore_patterns("__pycache__", "_build", "_toc.yml"))
    shutil.copytree(paths.DATA / "reported", tree / "data" / "reported")
    shutil.copy(paths.DATA / "inference_summary.csv", tree / "data")  # the page on the method shows it
    (tree / "data" / "prompts").mkdir()
    shutil.copy(paths.DATA / "prompts" / "README.md", tree / "data" / "prompts")  # the guide quotes it
    shutil.copy(CONFIG, tree / CONFIG.name)

    runs = run_notebooks(folder, order)
    pages = tree / "data" / "runs" / profile / "notebooks"
    pages.mkdir(parents=True)
    for notebook in [*(folder / f"{name}.ipynb" for name in ANALYSES), *runs]:
        hide_code(Path(shutil.copy(notebook, pages / notebook.name)))
    for notebook in runs:
        title_run(pages / notebook.name)
    pictures.grid(Path(runs_root), profile, tree / "book" / "images" / pictures.GRID)
    if is_simulated(folder.parent):
        mark_simulated(tree, pages)
    for chapter in (tree / "book").glob("*.md"):
        text = chapter.read_text(encoding="utf-8")
        files.write_text(chapter, NOTEBOOKS.sub(f"data/runs/{profile}/notebooks/", text))

    for page, source, name in unglued(tree / "book", pages):
        raise UserError(
            f"book/{page} shows {name!r}, which {folder / source}.ipynb does not hold; "
            f"run that notebook again: make report PROFILE={load.argument(profile)}"
        )
    toc = yaml.safe_dump(contents(profile, runs), sort_keys=False, allow_unicode=True)
    files.write_text(tree / "book" / "_toc.yml", toc)
    return tree


def _refuse_unfinished(folder: Path, profile: str) -> None:
    """UserError for an analysis notebook that is missing, is not a notebook, or stopped at an error."""
    missing = [name for name in ANALYSES if not (folder / f"{name}.ipynb").is_file()]
    if missing:
        raise UserError(
            f"{folder} holds no executed {', '.join(missing)} notebook; measure first: "
            f"make report PROFILE={load.argument(profile)}"
        )
    advice = f"run it again: make report PROFILE={load.argument(profile)}"
    for name in ANALYSES:
        notebook = files.read_json(folder / f"{name}.ipynb", dict, advice)
        if not {"metadata", "cells"} <= set(notebook):
            raise UserError(f"{folder / name}.ipynb is not a notebook; {advice}.")
        if notebook["metadata"].get("papermill", {}).get("exception"):
            raise UserError(f"{folder / name}.ipynb stopped at an error; {advice}")


def is_simulated(folder: Path) -> bool:
    """Do these runs come from a rehearsal? The cells themselves say so."""
    return any(row.get("simulated") for path in folder.glob("*/cells.jsonl") for row in ledger_lines(path))


def mark_simulated(tree: Path, notebooks: Path) -> None:
    """A banner on every page and a line on top of every notebook: nobody may take a rehearsal for a measurement."""
    settings = tree / CONFIG.name
    config = yaml.safe_load(settings.read_text(encoding="utf-8"))
    theme = config.setdefault("sphinx", {}).setdefault("config", {}).setdefault("html_theme_options", {})
    theme["announcement"] = SIMULATED
    files.write_text(settings, yaml.safe_dump(config, sort_keys=False))
    for path in notebooks.glob("*.ipynb"):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        line = {"cell_type": "markdown", "id": "simulated", "metadata": {}, "source": [f"**{SIMULATED}**"]}
        notebook["cells"].insert(1, line)
        files.write_text(path, json.dumps(notebook, indent=1))


def build(runs_root: Path, profile: str, out: Path) -> Path:
    """Build the book for `profile` into `out` and return its index.html.

    Every warning fails the build: a dangling reference or a figure that was not glued must not be published.
    Raises UserError with the first warnings.
    """
    out = Path(out).resolve()
    script = Path(sys.executable).parent / "jupyter-book"
    if not script.is_file():
        raise UserError(f"jupyter-book is not installed beside {sys.executable}; install requirements.txt there.")
    plan = load.load_if_known(profile)
    order = list(plan.configurations) if plan else ()
    tree = stage(runs_root, profile, out, order)
    shutil.rmtree(out / "_build", ignore_errors=True)
    # By the interpreter: a script names the one of the folder that it was installed in.
    command = [sys.executable, script, "build", tree, "--config", tree / CONFIG.name]
    command += ["--toc", tree / "book" / "_toc.yml", "--path-output", out, "-W", "-n", "--keep-going", "--all"]
    with progress.span("book"):
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd=tree)
    log = out / "book.log"
    files.write_text(log, done.stdout + done.stderr)
    index = out / "_build" / "html" / "index.html"
    if done.returncode != 0 or not index.is_file():
        raise UserError(f"the book was not built ({log}): {first_faults(done.stdout + done.stderr, tree)}")
    return index


def first_faults(text: str, tree: Path, at_most: int = 3) -> str:
    """The first warning or error lines of a build, without the staging folder and the terminal's colours."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text).replace(f"{tree}/", "")
    lines = list(dict.fromkeys(line.strip() for line in plain.splitlines() if line.strip()))
    faults = [line for line in lines if re.search(r"\b(WARNING|ERROR|CRITICAL)\b|Error:|Exception", line)]
    return " | ".join((faults or lines[-at_most:])[:at_most])
