"""One server, as one client is connected to it: opened when it is needed, again when it was lost."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import httpx2
from mcp.shared.exceptions import MCPError

from ..errors import ConnectionError
from ..toolset.connection import Connection
from ..toolset.errors import CONNECTION_CLOSED, INTERNAL_ERROR
from ..toolset.explain import explain
from ..toolset.record import Record, under_way
from ..toolset.session import MAX_PAGES, Protocol, may_be_modern
from .channel import Channel, Client, Passage
from .session import NOT_OPEN, Notice, UpstreamSession
from .upstream import Upstream

__all__ = ["Link", "Lost", "NotBegun"]

T = TypeVar("T")
# Seconds that connecting to a server may take.
CONNECT_SECONDS = 15.0
# What the SDK's transport says of a stream that ended, and of a failure without a JSON-RPC error in it.
_CLOSED = "Connection closed"
_BROKEN = ("SSE stream ", _CLOSED)
_NO_BODY = "Server returned an error response"
# All that a server may tell of by itself; asked for where it does so on request only.
_CHANGES = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}


class Lost(MCPError):
    """The connection ended while a request was under way: whether it was carried out is not known."""


class NotBegun(MCPError):
    """The request did not reach the server."""


class Link:
    """A server's session for one client.

    Args:
        upstream: the server.
        client: whose capabilities are declared to it.
        channel: the client's own connection, for what belongs to no call.
        told: gets the server's notices that belong to no call.
    """

    def __init__(self, upstream: Upstream, client: Client, channel: Channel | None, told: Notice) -> None:
        self.upstream = upstream
        self._client = client
        self._channel = channel
        self._told = told
        self._session: UpstreamSession | None = None
        self._opening = asyncio.Lock()
        self._closed = False
        self._kept: dict[tuple[str, str], Mapping[str, Any]] = {}  # what a session that replaces one is told again
        self._listing: asyncio.Future[Any] | None = None
        self._next: asyncio.Task[dict[str, dict[str, Any]]] | None = None
        self._watching: asyncio.Task[None] | None = None

    # ---- life ------------------------------------------------------------------------------------------------------

    async def session(self) -> UpstreamSession:
        """The open session. Raises MCPError, naming the server and what is wrong."""
        found = self._session
        if found is not None and found.alive:
            return found
        async with self._opening:
            if self._closed:
                raise MCPError(CONNECTION_CLOSED, "the client's connection was closed")
            if self._session is None or not self._session.alive:
                self._session = await self._opened()
            return self._session

    async def _opened(self) -> UpstreamSession:
        connection, record = self.upstream.connection, Record()
        with under_way(record):
            try:
                return await asyncio.wait_for(self._open_any(connection), CONNECT_SECONDS)
            except asyncio.TimeoutError:
                text = f"connecting to {self.upstream.name} took longer than {CONNECT_SECONDS:.0f} s"
            except Exception as error:
                text = str(await explain(error, record, connection, None, doing="connecting to"))
        raise MCPError(INTERNAL_ERROR, f"the gateway can't reach {self.upstream.name}: {text}")

    async def _open_any(self, connection: Connection) -> UpstreamSession:
        """The client's own generation of the protocol first, so that both sides speak the same where they can."""
        generations: list[Protocol] = ["handshake", "2026-07-28"]
        first, other = reversed(generations) if self._client.modern else generations
        try:
            return await self._open(connection, first)
        except Exception as error:
            if not _may_speak_another(error):
                raise
            first_error = error
        with suppress(Exception):
            return await self._open(connection, other)
        raise first_error

    async def _open(self, connection: Connection, protocol: Protocol) -> UpstreamSession:
        session = UpstreamSession(connection, protocol, self._client, self._channel, self._told)
        await session.open()
        for (method, _), params in list(self._kept.items()):
            with suppress(MCPError):
                await session.ask(method, params)
        if session.modern and not self._client.modern:
            self._watching = asyncio.ensure_future(self._watch(session))
        return session

    async def _watch(self, session: UpstreamSession) -> None:
        """Has a server of 2026-07-28 tell of changes, for a client whose connection they come on by themselves."""
        with suppress(MCPError):
            await session.ask("subscriptions/listen", {"notifications": _CHANGES})

    async def close(self) -> None:
        """Ends the session. Idempotent."""
        self._closed = True
        for task in (self._listing, self._next, self._watching):
            if task is not None:
                task.cancel()
        if self._session is not None:
            await self._session.close()

    # ---- requests --------------------------------------------------------------------------------------------------

    async def ask(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        passage: Passage | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Makes a request; one that a server refused because it has forgotten the session is made again on a new one.

        Raises MCPError: the server's own error as it came; Lost when the outcome is not known.
        """
        record = passage or Record(what=method)
        session = await self.session()
        with under_way(record):
            try:
                return await session.ask(method, params, passage, headers)
            except MCPError as error:
                if not _forgotten(record, session):
                    raise await self._told_better(error, session, method, record) from None
            await session.close(forgotten=True)
            record.http_status = None
            session = await self.session()
            try:
                return await session.ask(method, params, passage, headers)
            except MCPError as error:
                raise await self._told_better(error, session, method, record) from None

    async def _told_better(self, error: MCPError, session: UpstreamSession, method: str, record: Record) -> MCPError:
        """The server's own error as it came; what the transport made of a broken connection, by what it means."""
        if error.error.code == CONNECTION_CLOSED and error.error.message == _CLOSED:
            session.lost()
            await session.wait_ended()
            if isinstance(session.failure, httpx2.ConnectError):
                return NotBegun(INTERNAL_ERROR, f"the gateway can't reach {self.upstream.name}: nothing was sent")
        if error.error.message == NOT_OPEN:  # it ended between two steps of this very request
            return NotBegun(INTERNAL_ERROR, f"the connection to {self.upstream.name} ended: nothing was sent")
        if not _is_broken(error, record):
            return error
        return Lost(
            CONNECTION_CLOSED,
            f"the connection to {self.upstream.name} ended while {method} was under way: whether it was carried out is "
            "not known",
        )

    def keep(self, method: str, key: str, params: Mapping[str, Any] | None) -> None:
        """Notes what is to be said again after a reconnection (None: no longer)."""
        if params is None:
            self._kept.pop((method, key), None)
        else:
            self._kept[(method, key)] = params

    async def tell(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Passes on a notification of the client, if there is anybody to tell."""
        if self._session is not None and self._session.alive:
            await self._session.tell(method, params)

    async def pages(self, method: str, key: str) -> list[dict[str, Any]]:
        """All that a listing method lists, as it came. A server that has no such things has none. A list does no harm,
        so one that was lost is asked for again."""
        try:
            return await self._pages(method, key)
        except (Lost, NotBegun):
            return await self._pages(method, key)

    async def _pages(self, method: str, key: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        seen: set[str] = set()
        params: dict[str, Any] = {}
        session = await self.session()
        if method.partition("/")[0] not in session.offers:
            return found
        for _ in range(MAX_PAGES):
            page = await self.ask(method, params)
            found.extend(item for item in page.get(key) or () if isinstance(item, dict))
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str) or not cursor or cursor in seen:
                break
            seen.add(cursor)
            params = {"cursor": cursor}
        return found

    async def tools_now(self) -> dict[str, dict[str, Any]]:
        """The server's tools by name, as it lists them after this was called. Whoever comes while a list is on its
        way waits for the next one, which all who wait then share. Raises MCPError."""
        if self._listing is None or self._listing.done():
            running = self._listing = asyncio.get_running_loop().create_future()
            try:  # not as a task: this is the way of every judged call, and each turn of the loop costs it time
                return await self._list_tools()
            finally:
                running.cancel()  # it is over, however it ended
        if self._next is None or self._next.done():
            self._next = _task(self._list_after(self._listing))
        return await asyncio.shield(self._next)

    async def _list_after(self, running: asyncio.Future[Any]) -> dict[str, dict[str, Any]]:
        await asyncio.wait((running,))
        self._listing, self._next = self._next, None
        return await self._list_tools()

    async def _list_tools(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for tool in await self.pages("tools/list", "tools"):
            name = str(tool.get("name"))
            if found.get(name, tool) != tool:  # which of the two would run is not known: it counts as destructive
                tool = {key: value for key, value in tool.items() if key != "annotations"}
            found[name] = tool
        return found


def _task(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """A task that may fail with nobody left who waits for it."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda done: None if done.cancelled() else done.exception())
    return task


def _is_broken(error: MCPError, record: Record) -> bool:
    """Whether an error is the transport's word for an answer that never came."""
    message = error.error.message
    if error.error.code == CONNECTION_CLOSED:
        return message.startswith(_BROKEN)
    return message == _NO_BODY and (record.http_status or 0) >= 500 and record.http_error is None


def _may_speak_another(refused: Exception) -> bool:
    """Whether the other generation is worth a try: the server answered, and does not want a login."""
    return isinstance(refused, (MCPError, ConnectionError, ValueError)) and may_be_modern(refused)


def _forgotten(record: Record, session: UpstreamSession) -> bool:
    """HTTP 404 for a named session: refused before it began, so nothing ran."""
    return not session.modern and record.http_session and record.http_status == 404
