"""SGLang's published wheel in the cache, where it was fetched."""

import zipfile
from pathlib import Path

from runners.core import paths


def wheel_of(version: str) -> Path | None:
    """SGLang's wheel in the cache; None where it was not fetched."""
    found = sorted((paths.cache() / "wheels").glob(f"sglang-{version}-*.whl"))
    return found[0] if found and zipfile.is_zipfile(found[0]) else None
