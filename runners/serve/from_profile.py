"""A configuration's server from its profile: files, port and command line, ready to be asked."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runners.core import progress
from runners.engines import environments
from runners.engines.registry import engine
from runners.profiles.profile import Profile
from runners.readers.registry import reader
from runners.serve import exposure, model_files, target_files
from runners.serve.attached_server import attach, request_headers
from runners.serve.planned_start import planned_start
from runners.serve.ports import check_port, free_port
from runners.serve.running_server import RunningServer
from runners.serve.server import serve
from runners.serve.server_process import Launch


@contextmanager
def running(profile: Profile, name: str, log: Path) -> Iterator[RunningServer]:
    """The configuration's server, ready. Ours is brought down afterwards, an attached one is left running.

    Raises what `attach` and `serve` do, and UserError when a file is missing or the port is in use.
    """
    chosen = profile.configuration(name)
    module, log_reader = engine(chosen.engine), reader(chosen.engine)
    if chosen.attach is not None:
        headers = request_headers(chosen.attach)
        with attach(chosen.attach.url, module.health_path, progress.say, headers) as attached:
            yield attached
        return
    spec = profile.engines[chosen.engine]
    if spec.environment:
        environments.ensure(spec.environment, progress.say)
    if not chosen.stands_alone:
        model_files.files(profile, chosen.drafter, progress.say)  # made, if missing
    start = planned_start(profile, name)
    port = start.port or free_port()
    check_port(start.host, port)
    line = start.command(port)
    if warned := exposure.warning(name, start.host, line.argv):
        progress.say(warned)
    log.parent.mkdir(parents=True, exist_ok=True)
    launch = Launch(
        name=name,
        argv=line.argv,
        env=line.env,
        log_path=log,
        host=start.host,
        port=port,
        phase_of=log_reader.phase_of,
        first_error=log_reader.first_error,
        health_path=module.health_path,
        budgets=profile.budgets.get(chosen.engine, {}),
        stall_seconds=profile.stall_seconds,
        livelock_seconds=profile.livelock_seconds,
        expected_bytes=target_files.bytes_of(profile.target, module.serves) or None,
    )
    with serve(launch, progress.say) as launched:
        yield launched
