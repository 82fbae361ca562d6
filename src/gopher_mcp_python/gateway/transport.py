"""The way to a server. Over streamable HTTP its connection is used again for the next request.

The SDK's transport closes a response as soon as its last message is there, a moment before the server ends it; an HTTP
client can use such a connection no more. Here what is left of the response, nothing as a rule, is read first, which
saves the next request a connection of its own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import httpx2

from ..sdk_import import load
from ..toolset.connection import (
    HTTP_TIMEOUT_SECONDS,
    MAX_EVENT_BYTES,
    Connection,
    Farewell,
    HttpConnection,
    limit_receipt,
    note_status,
)
from ..toolset.connection import open_transport as open_any
from ..toolset.tls import shared_context

__all__ = ["open_transport"]

# Seconds for which an idle connection is used again. Servers close idle ones after 5 at the earliest (uvicorn, Node),
# and of a request that meets the close nobody knows whether it was carried out.
IDLE_SECONDS = 2.0
# Seconds that the end of a response may take to come after its last message, and what may still come, in bytes.
END_SECONDS = 0.1
MAX_REST = 4096


@asynccontextmanager
async def open_transport(connection: Connection, farewell: Farewell) -> AsyncIterator[tuple[Any, Any]]:
    """As the toolset's. Raises what it raises."""
    if not isinstance(connection, HttpConnection) or connection.transport != "streamable-http":
        async with open_any(connection, farewell) as streams:
            yield streams
        return
    load("mcp.client.streamable_http")
    from mcp.client.streamable_http import streamable_http_client

    async with _http_client(connection, farewell) as client:
        async with streamable_http_client(
            connection.url, http_client=client, terminate_on_close=False, max_sse_event_size=MAX_EVENT_BYTES
        ) as streams:
            yield streams
        await farewell.say(client, connection.url)


def _http_client(connection: HttpConnection, farewell: Farewell) -> httpx2.AsyncClient:
    """As the toolset's, with connections that are used again."""
    return httpx2.AsyncClient(
        headers=[(name.encode(), value.encode()) for name, value in connection.headers.items()],
        auth=connection.auth,
        verify=shared_context(),
        timeout=httpx2.Timeout(HTTP_TIMEOUT_SECONDS, read=None),
        limits=httpx2.Limits(keepalive_expiry=IDLE_SECONDS),
        event_hooks={"request": [limit_receipt], "response": [note_status, farewell.note, _read_to_the_end]},
    )


async def _read_to_the_end(response: httpx2.Response) -> None:
    """Has the response of a request read to its end when it is closed."""
    streamed = response.headers.get("content-type", "").startswith("text/event-stream")
    if streamed and response.request.method == "POST" and isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _ToTheEnd(response.stream)


class _ToTheEnd(httpx2.AsyncByteStream):
    """A response's body that is read to its end, if that is near, before it is closed."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream
        self._parts = stream.__aiter__()
        self._ended = self._failed = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            return await self._parts.__anext__()
        except StopAsyncIteration:
            self._ended = True
            raise
        except BaseException:
            self._failed = True
            raise

    async def aclose(self) -> None:
        if not self._ended and not self._failed:
            rest = 0
            with suppress(Exception), anyio.move_on_after(END_SECONDS):
                async for part in self:
                    rest += len(part)
                    if rest > MAX_REST:
                        break
        await self._stream.aclose()
