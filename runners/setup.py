"""`python -m runners setup`: environments and model, before anything is measured."""

from runners import environments, model
from runners.profile import Profile


def setup(profile: Profile, only: list[str] | None) -> int:
    """Make what this profile needs; an engine that cannot be installed is an error here, since it was asked for."""
    wanted = only or [s.environment for s in profile.engines.values() if s.environment]
    if profile.target.dequantised and not only:
        wanted.append("reference")
    for name in wanted:
        print(f"{name}: {environments.ensure(name, print)}")
    if profile.target.package and not only:
        for drafter in [None, *(n for n, d in profile.drafters.items() if d.made)]:
            model.files(profile, drafter, print)
    return 0
