"""Pre-flight of a configuration's port: is it free, and is it its own among the servers that are alive together?"""

from collections.abc import Iterator

from runners.core.errors import UserError
from runners.core.finding import Finding
from runners.profiles import points
from runners.profiles.profile import Profile
from runners.serve.planned_start import PlannedStart
from runners.serve.ports import check_port


def check(start: PlannedStart) -> Iterator[Finding]:
    """Findings of a configuration's address; none of its port where it takes any free one."""
    if start.host not in ("127.0.0.1", "localhost", "::1"):
        yield Finding("warning", f"it will listen on {start.host}: others can reach it", "set host to 127.0.0.1")
    if start.port is None:
        return
    try:
        check_port(start.host, start.port)
    except UserError as error:
        yield Finding("blocker", str(error), "stop it, or leave `port` out: any free one is taken then")
    for other in _together(start.profile, start.configuration):
        words = f"{other} is alive at the same time and has the same port {start.port}"
        yield Finding("blocker", words, "leave `port` out: any free one is taken then; or set servers_at_once to 1")


def _together(profile: Profile, name: str) -> list[str]:
    """The bases that stand beside a configuration on the same port."""
    if profile.hardware.servers_at_once < 2:
        return []
    port = profile.engines[profile.configuration(name).engine].port
    compared = points.comparisons(profile, list(profile.configurations))
    bases = [c.base for c in compared if c.other == name and profile.configuration(c.base).attach is None]
    return [b for b in bases if profile.engines[profile.configuration(b).engine].port == port]
