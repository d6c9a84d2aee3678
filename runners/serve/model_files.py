"""The target and the drafters as files: fetched by pinned version, checked by hash, made once.

Everything made is kept in the cache outside the checkout, under a name that holds the hash of what it was made from.
"""

from runners.core.errors import UserError
from runners.core.hashes import noted_sha256
from runners.core.progress import Progress, quiet
from runners.engines.engine import Files
from runners.profiles.profile import Profile
from runners.serve import drafter_files, target_files
from runners.serve.made_folder import must_exist


def files(profile: Profile, drafter: str | None = None, progress: Progress = quiet) -> Files:
    """`planned_files`, made if missing.

    UserError when a path is missing or a hash is wrong; EngineUnavailable when the reference environment, which makes
    them, cannot be set up.
    """
    target, planned = profile.target, planned_files(profile, drafter)
    if target.path is None and target.package is None:
        raise UserError(f"Profile {profile.name}: the target's files are not known; set its `path`.")
    if target.path is not None:
        for place in (planned.folder, planned.gguf):
            if place is not None:
                must_exist(place, f"target {target.name}", profile)
    else:
        gguf = target_files.fetch(target, progress)
        if target.dequantised:
            target_files.dequantised(gguf, target, progress)
    if drafter is not None:
        drafter_files.ensure(profile, drafter, planned.gguf, planned.folder, progress)
    return planned


def planned_files(profile: Profile, drafter: str | None = None) -> Files:
    """Every form of the target (and of one drafter) that this profile's engines need, where they are or will be. Makes
    and checks nothing: for a dry run on another machine.
    """
    gguf, folder = target_files.forms(profile.target)
    drafter_folder, drafter_gguf = drafter_files.planned(profile, drafter) if drafter else (None, None)
    return Files(gguf=gguf, folder=folder, drafter_gguf=drafter_gguf, drafter_folder=drafter_folder)


def provenance(files: Files) -> dict[str, str]:
    """SHA-256 of the weights that are served, by role. A folder of many shards is named by its index: to read 547 GB
    would take longer than to load them.
    """
    found = {}
    for role in ("gguf", "drafter_gguf"):
        path = getattr(files, role)
        if path is not None and path.is_file():
            found[role] = noted_sha256(path)
    for role in ("folder", "drafter_folder"):
        folder = getattr(files, role)
        if folder is None or not folder.is_dir():
            continue
        index = folder / "model.safetensors.index.json"
        weights = index if index.is_file() else folder / "model.safetensors"
        if weights.is_file():
            found[role] = noted_sha256(weights)
    return found
