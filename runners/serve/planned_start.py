"""What a configuration is started with: files, address and command line. Plan, pre-flight and start resolve them here,
so that the plan shows what will run and the pre-flight meets what a start would.
"""

from dataclasses import dataclass

from runners.engines.engine import Files
from runners.profiles.profile import Profile
from runners.serve import model_files
from runners.serve.command import Command, command


@dataclass(frozen=True)
class PlannedStart:
    """files: where they are or will be. port: None where any free one is taken."""

    profile: Profile
    configuration: str
    files: Files
    host: str
    port: int | None

    def command(self, port: int | None = None) -> Command:
        """The command line; `port`: the one that is taken where the profile names none (0 stands for any).

        UserError where the engine cannot serve these files.
        """
        return command(self.profile, self.configuration, self.files, port or self.port or 0)


def planned_start(profile: Profile, configuration: str) -> PlannedStart:
    """Of a configuration that is not attached. Makes and checks nothing."""
    chosen = profile.configuration(configuration)
    spec = profile.engines[chosen.engine]
    files = Files() if chosen.stands_alone else model_files.planned_files(profile, chosen.drafter)
    return PlannedStart(profile, configuration, files, spec.host, spec.port)
