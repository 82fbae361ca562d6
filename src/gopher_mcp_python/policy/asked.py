"""A request as a policy looks at it: whose it is, of which mode, to which host."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit

from ..elicitation import GopherAgentElicitationRequest
from ..errors import UnsafeUrlError
from ..hostnames import is_ip_address, is_local
from ..weburl import WebUrl, parse_web_url

__all__ = ["CONFIRMATION", "Asked", "Identity", "asked_of", "identity_of", "is_confirmation", "plain_host"]

#: In the `_meta` of a form by which a gateway asks whether a call may be made.
CONFIRMATION = "gopher-mcp/confirmation"
_REMEDY = 'give its URL, its command (["program", "argument"]), a mapping with "url" or "command", or its connection'


@dataclass(frozen=True, slots=True)
class Identity:
    """Which server it is: equal for the same URL, or the same command with the same arguments and folder.

    Attributes:
        address: for people: scheme, host and port, or the program's name; nothing that could be a secret.
        digest: of everything that makes it that server (SHA-256, hexadecimal).
    """

    address: str
    digest: str


@dataclass(frozen=True, slots=True)
class Asked:
    """One request with what rules look at. `page`: None for a form, and for a URL that must not be opened."""

    request: GopherAgentElicitationRequest = field(repr=False)
    server: str | None
    identity: Identity | None
    mode: str
    page: WebUrl | None = None
    has_userinfo: bool = False

    @property
    def digest(self) -> str | None:
        return None if self.identity is None else self.identity.digest

    @property
    def host(self) -> str | None:
        return None if self.page is None else self.page.host

    @property
    def is_sound(self) -> bool:
        """Whether nothing but its host speaks against accepting the page unseen: no text before an @ sign, and what
        is typed there can't be read on the way."""
        page = self.page
        return page is not None and not self.has_userinfo and (page.scheme == "https" or is_local(page.host))


def asked_of(request: GopherAgentElicitationRequest, server: str | None, identity: Identity | None) -> Asked:
    """The request of that server. Raises nothing for what a server sends."""
    mode = request.mode
    if mode != "url":
        return Asked(request, server, identity, mode)
    try:
        page = parse_web_url(request.url or "")
        has_userinfo = "@" in urlsplit(request.url or "").netloc
        if page.host.rstrip(".").rpartition(".")[2][:1].isdigit() and not is_ip_address(page.host):
            raise UnsafeUrlError("the address is a number in an unusual spelling, which no rule can be about")
    except (UnsafeUrlError, ValueError):
        return Asked(request, server, identity, mode)
    return Asked(request, server, identity, mode, page, has_userinfo)


def is_confirmation(request: GopherAgentElicitationRequest) -> bool:
    """Whether the form asks for the approval of a call, which only a person can give."""
    raw = request.raw_params_json
    if not isinstance(raw, str):
        return False
    try:
        params = json.loads(raw)  # always: the mark may be written with escapes
        return CONFIRMATION in params["_meta"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return CONFIRMATION in raw  # it names the mark and can't be read


def plain_host(host: str) -> str:
    """The one spelling of an ASCII host by which it is compared where a refusal must not be got round."""
    bare = host.strip("[]")
    if not is_ip_address(bare):
        return host.rstrip(".")
    shown = ip_address(bare).compressed
    return f"[{shown}]" if ":" in shown else shown


def identity_of(server: Any) -> Identity | None:
    """The identity of a server as a program names it; None for None.

    Raises ValueError, which never shows the URL or the command, since they may hold secrets.
    """
    if server is None:
        return None
    url, command, args, cwd = _facts(server)
    if url is not None:
        return _of_url(url)
    if not isinstance(command, str) or not command or not all(isinstance(one, str) for one in args):
        raise ValueError(f"a policy's server is neither a URL nor a command: {_REMEDY}")
    return Identity(PurePath(command).name or "command", _digest("command", command, *args, "" if cwd is None else cwd))


def _facts(server: Any) -> tuple[str | None, Any, Sequence[Any], Any]:
    """Its URL; or its command, arguments and folder."""
    if isinstance(server, str):
        return (server, None, (), None) if "://" in server else (None, server, (), None)
    if isinstance(server, Sequence) and not isinstance(server, bytes):
        return None, server[0] if server else None, server[1:], None
    if isinstance(server, Mapping):
        found = {name: server.get(name) for name in ("url", "command", "args", "cwd")}
    else:
        found = {name: getattr(server, name, None) for name in ("url", "command", "args", "cwd")}
    url, args = found["url"], found["args"]
    if not isinstance(args, Sequence) or isinstance(args, (str, bytes)):
        args = () if args is None else (None,)
    return url if isinstance(url, str) else None, found["command"], args, found["cwd"]


def _of_url(url: str) -> Identity:
    try:
        parts = urlsplit(url.strip())
        scheme, host, port = parts.scheme.lower(), (parts.hostname or "").lower(), parts.port
    except ValueError:
        scheme, host, port = "", "", None
    if scheme not in ("http", "https") or not host:
        raise ValueError(f"a policy's server has a URL that is no http or https URL with a host: {_REMEDY}")
    shown = f"[{host}]" if ":" in host else host
    address = f"{scheme}://{shown}" + ("" if port is None else f":{port}")
    return Identity(address, _digest("url", address, parts.netloc.rpartition("@")[0], parts.path, parts.query))


def _digest(*facts: object) -> str:
    from ..toolset.canonical import canonical_json

    return hashlib.sha256(canonical_json([str(fact) for fact in facts]).encode()).hexdigest()
