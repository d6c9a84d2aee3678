"""Pre-flight of a server that runs already: does it answer now? It is asked nothing but its health."""

import os
from collections.abc import Iterator
from pathlib import Path

from runners.core.errors import UserError
from runners.core.finding import Finding
from runners.profiles.profile import Profile
from runners.serve.from_profile import running


def check(profile: Profile, name: str) -> Iterator[Finding]:
    """Findings of an attached configuration, met as `measure` would meet them."""
    try:
        with running(profile, name, Path(os.devnull)) as server:
            found = Finding("note", f"{server.base_url} answers; its own process is not checked")
    except UserError as error:
        found = Finding("blocker", str(error))
    yield found
