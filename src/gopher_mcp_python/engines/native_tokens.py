"""Tokens of the servers that a native agent works on. The library can't sign in; it is given them when it is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import stopping
from ..errors import AgentError
from ..ffi import _bridge
from .base import CreateSpec

if TYPE_CHECKING:
    from ..oauth.signin import ServerSignIn
    from ..toolset.connection import HttpConnection

__all__ = ["NativeTokens", "tokens_for"]

Check = Callable[[], None]


def tokens_for(spec: CreateSpec) -> NativeTokens | None:
    """None where nobody signs in, or no server is known that could demand it."""
    text = spec.known_servers or (spec.target if spec.factory in ("url", "json") else None)
    if spec.sign_ins is None or not text:
        return None
    from ..toolset.configuration import from_url
    from ..toolset.connection import HttpConnection
    from .native_config import named

    headers = spec.options.headers
    try:
        found = [("", one) for one in from_url(text, headers)] if spec.factory == "url" else named(text, headers)
    except AgentError:
        return None  # the library says what is wrong with it
    servers = [
        _Server(name, one, spec.sign_ins.to(one.url, one.label))
        for name, one in found
        if isinstance(one, HttpConnection) and not one.has_authorization
    ]
    return NativeTokens(servers) if servers else None


class _Server(NamedTuple):
    name: str  # by which the library knows it
    connection: HttpConnection
    sign_in: ServerSignIn


class NativeTokens:
    """One token for each server that wants one.

    Attributes:
        known: whether the servers were asked whether they want one.
        servers: the tokens, as the library takes them.
    """

    def __init__(self, servers: list[_Server]) -> None:
        self._servers = servers
        self.known = False
        self.servers: tuple[_bridge.ServerOptions, ...] = ()

    def obtain(self, check: Check) -> None:
        """Asks each server, and signs in to those that refuse without a token. Blocks; `check` may raise, to leave.

        Raises SignInError.
        """
        from ..oauth.probe import probed

        self._take(self._wait(lambda: [probed(one.connection, one.sign_in) for one in self._servers], check))
        self.known = True

    def renew(self, check: Check, *, suspect: bool) -> bool:
        """Renews tokens that are over, and those that their servers refuse. Whether one has changed since the agent was
        made. Raises SignInError.

        Args:
            suspect: whether one may be refused though its time is not over; then each server is asked.
        """
        if not self.servers:
            return False
        before = [server.access_token for server in self.servers]
        if not suspect:
            self._take(self._wait(lambda: [_current(one.sign_in) for one in self._servers], check))
            suspect = len(self.servers) < len(before)  # one could not be renewed: what does its server want now?
        if suspect:
            self.obtain(check)
        return before != [server.access_token for server in self.servers]

    def _wait(self, work: Callable[[], list[Any]], check: Check) -> list[str | None]:
        import asyncio

        from ..oauth import flights

        async def all_of_them(flight: flights.Flight) -> list[str | None]:
            return list(await asyncio.gather(*work()))

        def look() -> None:
            check()
            stopping.check("the sign-in")

        found: list[str | None] = flights.join_blocking(("native", id(self)), all_of_them, look)
        return found

    def _take(self, tokens: list[str | None]) -> None:
        self.servers = tuple(
            _bridge.ServerOptions(server_name=one.name or None, access_token=token)
            for one, token in zip(self._servers, tokens, strict=True)
            if token is not None
        )


async def _current(sign_in: ServerSignIn) -> str | None:
    grant = await sign_in.current()
    return None if grant is None else grant.token
