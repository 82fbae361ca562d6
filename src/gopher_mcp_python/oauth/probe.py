"""Asking a server whether it demands a sign-in, for an engine that can't be told so in the middle of its work.

With the standard library: a native agent whose servers demand nothing needs neither the MCP SDK nor its HTTP client.
"""

from __future__ import annotations

import json
from functools import partial
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

from ..awaiting import on_a_thread
from ..errors import ApiKeyError
from ..toolset.connection import GOODBYE_SECONDS, SESSION_HEADER, HttpConnection, place
from ..toolset.errors import refused_text
from .challenge import Challenge, challenge_of
from .errors import SignInError, Unreachable
from .signin import MOST_TRIES, Attempt

if TYPE_CHECKING:
    from .signin import ServerSignIn

__all__ = ["probed"]

_PROTOCOL = "2025-11-25"
_SECONDS = 15.0  # for a server that says nothing; its client will say so
_INITIALIZE = {
    "protocolVersion": _PROTOCOL,
    "capabilities": {},
    "clientInfo": {"name": "gopher-mcp-python", "version": "0"},
}


async def probed(connection: HttpConnection, sign_in: ServerSignIn) -> str | None:
    """The token for a server, after a sign-in where it demands one; None: it demands none, or can't be reached now.

    Raises SignInError; ApiKeyError when the server refuses and offers no sign-in.
    """
    grant, failure = None, None
    try:
        grant = await sign_in.current()
    except SignInError as error:
        failure = error
    attempt = Attempt(interactive=True)
    for _ in range(MOST_TRIES):
        token = None if grant is None else grant.token
        challenge = await on_a_thread(partial(_ask, connection, token))  # a daemon: exit does not wait for it
        if challenge is None:
            break
        if failure is not None and not isinstance(failure, Unreachable):
            raise failure
        grant = await sign_in.renewed(token, challenge, attempt)
        if grant is None:  # the library takes three seconds to find out, and does not say what
            raise ApiKeyError(refused_text(f"connecting to {place(connection)}", challenge.status))
    return None if grant is None else grant.token


def _ask(connection: HttpConnection, token: str | None) -> Challenge | None:
    """As its client will ask it: some servers refuse only the second request. None where nothing can be learned, as
    the engine will meet the same trouble and can say more."""
    server = _Server(connection, token)
    try:
        if connection.transport == "sse":
            return server.send("GET", None)
        found = server.send("POST", _message("initialize", _INITIALIZE))
        if found is None and server.answered:
            found = server.send("POST", _message("tools/list", {}))
    except (OSError, HTTPException, ValueError):
        return None
    finally:
        server.leave()
    return found


def _message(method: str, params: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()


class _Stay(HTTPRedirectHandler):
    """The token is for this server, and its client does not follow it anywhere else."""

    def redirect_request(self, *args: Any) -> None:
        return None


class _Server:
    """One server for the time of the question; only the heads of its answers are read."""

    def __init__(self, connection: HttpConnection, token: str | None) -> None:
        self._url = connection.url
        self._headers = {
            **connection.headers,
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": _PROTOCOL,
            **({} if token is None else {"Authorization": f"Bearer {token}"}),
        }
        self._opener: OpenerDirector = build_opener(_Stay)
        self._session: str | None = None
        self.answered = False  # the last request was taken

    def send(self, method: str, body: bytes | None, seconds: float = _SECONDS) -> Challenge | None:
        headers = {**self._headers, **({} if self._session is None else {SESSION_HEADER: self._session})}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            with self._opener.open(Request(self._url, body, headers, method=method), timeout=seconds) as answer:
                self._session = answer.headers.get(SESSION_HEADER, self._session)
                self.answered = True
                return None
        except HTTPError as error:
            with error:
                self.answered = False
                return challenge_of(error.code, error.headers.get_all("WWW-Authenticate") or [])

    def leave(self) -> None:
        if self._session is not None:
            try:
                self.send("DELETE", None, GOODBYE_SECONDS)
            except (OSError, HTTPException, ValueError):
                pass
