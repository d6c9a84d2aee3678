"""Who can reach a server that we start."""

import ipaddress
from collections.abc import Sequence

KEY_FLAG = "--api-key"  # of all engines; also --api-key-file


def warning(name: str, host: str, argv: Sequence[str]) -> str | None:
    """A sentence where a server listens beyond this machine and asks for no key; None elsewhere. host: an address or
    a name, as the profile has it.
    """
    if _only_here(host) or any(word.startswith(KEY_FLAG) for word in argv):
        return None
    return (
        f"warning: {name} listens at {host}: whoever reaches this machine can use it, without a key; leave `host` out "
        "of the profile's engine, or set its flag `api-key` where you only serve."
    )


def _only_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
