"""Copy a profile's local runs to data/runs, where they are committed and the book's readers see them."""

import shutil
from pathlib import Path

from runners import paths
from runners.errors import UserError
from runners.profile import Profile

# What a rebuild needs and a reader may want; logs in full and half-written files stay behind.
PUBLISHED = ("cells.jsonl", "requests.parquet", "server.log", "environment.json", "timeline.json", "status.json")


def publish(profile: Profile, runs: Path) -> int:
    source, target = runs / profile.name, paths.PUBLISHED_RUNS / profile.name
    if not source.is_dir():
        raise UserError(f"There are no runs of {profile.name} in {runs}; run `make report PROFILE={profile.name}` first.")
    if source.resolve() == target.resolve():
        raise UserError(f"{source} is the published folder already; name another one with --runs.")
    shutil.rmtree(target, ignore_errors=True)
    for configuration in profile.configurations:
        for name in PUBLISHED:
            file = source / configuration / name
            if file.is_file():
                place = target / configuration / name
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(file, place)
    for file in [*source.glob("notebooks/*.ipynb"), *source.glob("*.json")]:
        place = target / file.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, place)
    size = sum(f.stat().st_size for f in target.rglob("*") if f.is_file())
    print(f"published {profile.name}: {size / 1e6:.1f} MB in {target.relative_to(paths.ROOT)}")
    return 0
