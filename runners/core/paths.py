"""Where things are on disk: the checkout, the cache outside it, published and local runs."""

import os
from pathlib import Path

import platformdirs

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "data"
PROFILES = ROOT / "runners" / "profiles"
ENGINES = ROOT / "runners" / "engines"
SCRIPTS = ROOT / "runners" / "scripts"  # run in other environments, by path: they cannot import us

# Published runs are committed. Local runs are this machine's own and git ignores them: a new measurement must never
# overwrite what the book published.
PUBLISHED_RUNS = DATA / "runs"
LOCAL_RUNS = ROOT / "local" / "runs"
# Profiles that a command wrote for this machine, beside the shipped ones.
LOCAL_PROFILES = ROOT / "local" / "profiles"
BUILD = ROOT / "build"


def cache() -> Path:
    """The cache outside the checkout: SPECVERDICT_CACHE, else the user's (on Linux XDG_CACHE_HOME or ~/.cache)."""
    # Read at each call, not once: tests and notebooks set the variable after the import.
    named = os.environ.get("SPECVERDICT_CACHE")
    if named:
        return Path(named).expanduser().resolve()
    return platformdirs.user_cache_path("specverdict")


def runs_root(where: str | Path = "published") -> Path:
    """The folder of runs: `published`, `local`, or any folder that holds <profile>/<configuration>/cells.jsonl."""
    if str(where) == "published":
        return PUBLISHED_RUNS
    if str(where) == "local":
        return LOCAL_RUNS
    path = Path(where)
    return path if path.is_absolute() else ROOT / path
