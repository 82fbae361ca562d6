"""Loopback addresses of redirect URIs, and the sockets that listen on them (RFC 8252 7.3 and 8.3).

A browser may take "localhost" for 127.0.0.1 or for ::1, so both are bound, on the same port. A machine that has only
one of the two families is fine with one. Nothing but loopback addresses is ever bound.
"""

from __future__ import annotations

import errno
import os
import re
import socket
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import unquote, urlsplit

from .errors import SignInError

__all__ = ["Address", "bind", "parse_address"]

_ATTEMPTS = 20  # to find a port that is free on both families
_NO_SUCH_FAMILY = frozenset((errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT, errno.EPFNOSUPPORT))
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^:\[\]]+)(?::([0-9]{1,5}))?\Z")
_LOOPBACK_NAMES = frozenset(("127.0.0.1", "localhost", "[::1]"))
_EXAMPLE = "for example http://127.0.0.1:8123/callback"


@dataclass(frozen=True, slots=True)
class Address:
    """A redirect URI on this machine. `port` is None when the URI leaves it open."""

    uri: str
    host: str
    port: int | None
    path: str

    def with_port(self, port: int) -> str:
        """The URI to send to the authorization server: as it was given, only the port is filled in."""
        if self.port is not None:
            return self.uri
        scheme, _, rest = self.uri.partition("://")
        end = min(place for place in (rest.find("/"), rest.find("?"), len(rest)) if place >= 0)
        return f"{scheme}://{rest[:end].rstrip(':')}:{port}{rest[end:]}"

    def is_path(self, path: str) -> bool:
        """Whether a request's path (without its query) is the one of this URI."""
        return path == self.path or unquote(path) == unquote(self.path)

    def is_host(self, hosts: list[str], port: int) -> bool:
        """Whether a request's one Host header names this machine and the port. A page elsewhere whose name was made to
        lead to this machine (DNS rebinding) sends its own name."""
        found = _HOST.match(hosts[0].lower()) if len(hosts) == 1 else None
        if found is None:
            return False
        named = f"[{self.host}]" if ":" in self.host else self.host
        return found[1] in (_LOOPBACK_NAMES | {named}) and int(found[2] or 80) == port


def parse_address(redirect_uri: str | None) -> Address:
    """Reads a redirect URI; None means one of our own. Raises SignInError ("misconfigured") when nobody could listen
    there."""
    if redirect_uri is None:
        return Address("http://127.0.0.1/callback", "127.0.0.1", None, "/callback")
    try:
        parts = urlsplit(redirect_uri)
        port, host = parts.port, (parts.hostname or "").lower()
    except ValueError:
        raise _unusable("it is malformed") from None
    if any(ord(letter) <= 32 or ord(letter) > 126 for letter in redirect_uri):
        raise _unusable("it holds a space, a control character or a letter beyond ASCII")
    if parts.scheme.lower() != "http":
        raise _unusable("its scheme is not http, the only one that a program on this machine can listen for")
    if parts.username is not None or parts.password is not None:
        raise _unusable("it has a user name")
    if "#" in redirect_uri:
        raise _unusable("it has a fragment, which a browser does not send")
    if port == 0:
        raise _unusable("its port is 0; leave the port out to have a free one chosen")
    if not _is_loopback(host):
        raise _unusable("its host is not this machine (127.0.0.1, [::1] or localhost)")
    return Address(redirect_uri, host, port, parts.path or "/")


def bind(address: Address) -> list[socket.socket]:
    """Sockets bound to every address that the URI's host stands for, all on one port; not yet listening.

    Raises SignInError ("misconfigured") when the port is taken or may not be used, or there is no loopback."""
    for attempt in range(_ATTEMPTS):
        try:
            return _bound(address.host, address.port or 0)
        except OSError as error:
            if address.port is None and attempt < _ATTEMPTS - 1 and error.errno == errno.EADDRINUSE:
                continue  # free on one family, taken on the other
            raise _not_bound(address, error) from None
    raise AssertionError("the last attempt returns or raises")


def _bound(host: str, port: int) -> list[socket.socket]:
    found: list[socket.socket] = []
    missing: OSError | None = None
    try:
        for family, place in _places(host):
            try:
                found.append(_bind_one(family, place, port))
            except OSError as error:
                if error.errno not in _NO_SUCH_FAMILY:
                    raise
                missing = error
                continue
            port = found[0].getsockname()[1]
    except BaseException:
        for one in found:
            one.close()
        raise
    if not found and missing is not None:
        raise missing
    return found


def _places(host: str) -> list[tuple[int, str]]:
    if host == "localhost":
        return [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
    return [(socket.AF_INET6 if ":" in host else socket.AF_INET, host)]


def _bind_one(family: int, place: str, port: int) -> socket.socket:
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "nt":  # there, SO_REUSEADDR would let another program take the port from under us
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)  # type: ignore[attr-defined, unused-ignore]
        else:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.setblocking(False)
        bound.bind((place, port))
    except BaseException:
        bound.close()
        raise
    return bound


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _unusable(why: str) -> SignInError:
    return SignInError(
        f"The redirect URI for the sign-in can't be used: {why}. Name a loopback address, {_EXAMPLE}, "
        "or leave redirect_uri out.",
        "misconfigured",
    )


def _not_bound(address: Address, error: OSError) -> SignInError:
    why = error.strerror or type(error).__name__
    if address.port is None:
        return SignInError(f"No port could be opened on {address.host} for the sign-in: {why}.", "misconfigured")
    if error.errno == errno.EADDRINUSE:
        why = "another program uses it"
    elif error.errno in (errno.EACCES, errno.EPERM):
        why = "this program may not use it"
    return SignInError(
        f"Port {address.port} of {address.host}, which the redirect URI names, can't be opened for the sign-in: {why}. "
        "End that program, or name another port (it must be registered with the authorization server), or leave the "
        "port out.",
        "misconfigured",
    )
