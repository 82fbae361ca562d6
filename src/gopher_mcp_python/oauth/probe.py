"""Asking a server whether it demands a sign-in, as its client will ask it: there are servers that refuse only later."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import httpx2

from ..toolset.connection import SESSION_HEADER, Farewell, HttpConnection, http_client
from ..toolset.record import Record, under_way
from .auth import auth_for

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

    Raises SignInError.
    """
    record, farewell = Record(), Farewell()
    with under_way(record):
        async with http_client(replace(connection, auth=auth_for(connection, sign_in)), farewell.note) as client:
            client.timeout = httpx2.Timeout(_SECONDS)
            with suppress(httpx2.HTTPError, httpx2.InvalidURL):  # the engine will meet it too and can say more
                if connection.transport == "sse":
                    async with client.stream("GET", connection.url, headers={"Accept": "text/event-stream"}):
                        pass
                elif await _post(client, connection.url, "initialize", _INITIALIZE, None):
                    await _post(client, connection.url, "tools/list", {}, farewell.session_id)
            await farewell.say(client, connection.url)
    if record.sign_in_error is not None:
        raise record.sign_in_error
    grant = await sign_in.current()
    return None if grant is None else grant.token


async def _post(client: httpx2.AsyncClient, url: str, method: str, params: dict[str, Any], session: str | None) -> bool:
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": _PROTOCOL}
    if session is not None:
        headers[SESSION_HEADER] = session
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    async with client.stream("POST", url, json=message, headers=headers) as response:
        return response.is_success
