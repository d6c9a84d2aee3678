"""A server that runs already: the section `attach` of a configuration, and what need not be said of such servers."""

from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from runners.profiles.request_fields import RequestFields
from runners.profiles.strict import Strict

VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"
HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")]
HeaderValue = Annotated[str, Field(pattern=r"^[^\x00\r\n]*$")]
ANY_MACHINE = {"description": "servers that run already", "servers_at_once": 2}


class Attach(Strict):
    """A server that runs already: it is measured in the same way, and never started or stopped by us.

    url: http://host:port or, as clients are given it, .../v1. No secret stands in a profile: `api_key_env` names the
    environment variable that holds the key, and a header's value may name variables as ${NAME}
    (serve/attached_server.py reads them). body: fields that this server's requests have beside the usual ones.
    """

    url: str
    model: str | None = None  # its name in requests, where that is not the target's
    api_key_env: Annotated[str, Field(pattern=VARIABLE)] | None = None
    headers: dict[HeaderName, HeaderValue] = Field(default_factory=dict)
    body: RequestFields = Field(default_factory=dict)

    @field_validator("url")
    @classmethod
    def reachable(cls, url: str) -> str:
        parts = urlsplit(url)  # a port out of range raises a ValueError when it is asked for
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
            raise ValueError(f"`url: {url}` must be an address such as http://127.0.0.1:8000")
        if parts.username is not None or parts.password is not None:
            raise ValueError("`url` must hold no user and no password; name the key's variable in `api_key_env`")
        if parts.query or parts.fragment:
            raise ValueError("`url` must be an address without a query, such as http://127.0.0.1:8000")
        return url.rstrip("/").removesuffix("/v1").rstrip("/")


def filled_in(content: Any) -> Any:
    """A profile's content with what need not be said: the section of the engine of a server that stands alone, and,
    where no server is started, the machine. Both servers of a comparison are there at once then.
    """
    if not isinstance(content, dict) or not isinstance(content.get("configurations"), dict):
        return content
    chosen = [c for c in content["configurations"].values() if isinstance(c, dict)]
    attached = [c for c in chosen if c.get("attach") is not None]
    alone = [c for c in chosen if c.get("attach") is not None or c.get("command") is not None]
    if not alone:
        return content
    engines = content.get("engines") or {}
    if isinstance(engines, dict):
        names = [c["engine"] for c in alone if isinstance(c.get("engine"), str)]
        content = content | {"engines": {name: {} for name in names} | engines}
    if len(attached) == len(chosen):
        content = {"hardware": ANY_MACHINE} | content
        if isinstance(content["hardware"], dict):
            content["hardware"] = {"servers_at_once": 2} | content["hardware"]
    return content
