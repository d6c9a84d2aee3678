"""The servers that `specverdict ask` starts itself (--base-command, --spec-command): each once, to look at it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runners.core import progress
from runners.core.errors import UserError
from runners.engines.registry import all_engines
from runners.profiles import whole_command
from runners.readers.registry import reader
from runners.serve.ports import free_port
from runners.serve.running_server import RunningServer
from runners.serve.server import serve
from runners.serve.server_process import Launch
from runners.serve.wait_until_ready import ServerDied, ServerStalled


@contextmanager
def started(option: str, command: str, log: Path) -> Iterator[RunningServer]:
    """The command's server, ready, and stopped afterwards. option: the command's option, for the sentence of a
    UserError, which names the first error of its log.
    """
    port = free_port()
    words, variables = whole_command.split(command, port)
    # Whose lines its log holds is only guessed here: what answers is asked once it is up.
    known = next((reader(name) for name in all_engines() if any(name in word for word in words)), None)
    log.parent.mkdir(parents=True, exist_ok=True)
    launch = Launch(
        name=option,
        argv=words,
        env=variables,
        log_path=log,
        port=port,
        phase_of=known.phase_of if known else lambda _: None,
        first_error=known.first_error if known else lambda _: None,
    )
    progress.say(f"{option}: starting it once to look at it (log: {log})")
    try:
        with serve(launch, progress.say) as server:
            yield server
    except (ServerDied, ServerStalled) as error:
        raise UserError(f"{error} (log: {log}).") from error
