"""The tools of one MCP server, with everything that its server may ask of the user on the way.

**Which protocol is spoken.** A session negotiated at 2026-07-28 has no way back to the client: a tool that asks with
`elicitation/create` fails there with -32600, when it may already have done half its work. A session made by the older
handshake has that way back, but a tool that asks through its result (`InputRequiredResult`) can't do so there. Servers
built with the current SDKs speak both generations, and nothing that they publish says which way a tool asks. So:

1. The handshake (2025-11-25 and older) comes first. It serves every tool of an older server and every tool that asks
   with `elicitation/create`, each run exactly once. It is also the faster one (no probe before it).
2. A server that refuses the handshake is asked for 2026-07-28.
3. A tool that asks through its result, called on a handshake session of a server that speaks both, comes back as -32603
   "Handler returned an invalid result": it ended by asking, before doing anything (the protocol has such a tool entered
   anew for each round of questions). That call alone is made again on a second session, at 2026-07-28, and the tool is
   called there from then on. It is not made again when the tool had asked anybody anything, when it is marked as
   destructive and not idempotent, or when the server does not speak 2026-07-28; the error then names the remedy.

A request that was refused before it began (HTTP 404 for a forgotten session, error -32042) may be made again; one whose
outcome is not known never is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from .. import __version__
from .alarm import limited
from .clock import PausableClock
from .connection import Connection
from .elicitation import Asker
from .errors import INTERNAL_ERROR, ElicitationHandlerError, ElicitationRequiredError, ToolsetError
from .explain import explain
from .record import Record, under_way
from .required import MAX_ROUNDS, find_required, read_required
from .rounds import call_with_rounds
from .session import Protocol, Session

_INVALID_RESULT = "Handler returned an invalid result"


class Toolset:
    """Lists and calls the tools of one server. Use it from one event loop; calls may run at the same time.

    Args:
        connection: where the server is.
        asker: who answers elicitations; None: nothing is declared to the server.
        protocol: "auto" (see the module), "handshake" or "2026-07-28".
    """

    def __init__(self, connection: Connection, asker: Asker | None = None, *, protocol: Protocol = "auto") -> None:
        self.connection = connection
        self._asker = asker
        self._protocol: Protocol = protocol
        self._main: Session | None = None
        self._second: Session | None = None
        self._open_sessions: set[Session] = set()  # also those that are being opened, and replaced ones that still end
        self._modern_tools: set[str] = set()
        self._opening = asyncio.Lock()
        self._closed = False
        self.tools: dict[str, types.Tool] = {}

    # ---- life ------------------------------------------------------------------------------------------------------

    async def connect(self, clock: PausableClock | None = None) -> dict[str, types.Tool]:
        """Opens the session and lists the tools.

        Raises ApiKeyError, ConnectionError, CallTimeoutError or another ToolsetError, naming the server.
        """
        record = Record(clock=clock or PausableClock(None))
        with under_way(record):
            try:
                session = await limited(self._session(), record.clock)
                await limited(self._list(session), record.clock)
            except Exception as error:
                raise await explain(error, record, self.connection, self._main, doing="connecting to") from None
            finally:
                record.over = True
        return self.tools

    async def aclose(self) -> None:
        """Withdraws what is still asked and closes the sessions. Idempotent."""
        self._closed = True
        self._main = self._second = None
        await asyncio.gather(*(session.close() for session in self._open_sessions))

    @property
    def answering(self) -> bool:
        """Whether somebody is asked, or an answer is still on its way to the server."""
        return any(session.answering for session in self._open_sessions if not session.ended)

    async def list_tools(self) -> dict[str, types.Tool]:
        """Lists the tools anew. Raises as `connect`."""
        return await self.connect()

    async def _list(self, session: Session) -> None:
        tools = await session.list_tools()
        self.tools = {tool.name: tool for tool in tools}

    async def _session(self) -> Session:
        async with self._opening:
            if self._closed:
                raise ToolsetError(f"the connection to {self.connection.label} was closed")
            if self._main is None or not self._main.alive:
                self._main = await self._open(self._protocol)
                if self.tools:  # a session that replaces one knows its tools before the first call, too
                    await self._list(self._main)
            return self._main

    async def _modern_session(self) -> Session:
        async with self._opening:
            if self._main is not None and self._main.alive and self._main.modern:
                return self._main
            if self._second is None or not self._second.alive:
                self._second = await self._open("2026-07-28")
                await self._second.list_tools()  # the session mirrors annotated arguments into headers from its list
            return self._second

    async def _open(self, protocol: Protocol) -> Session:
        session = Session(self.connection, self._asker, protocol, _client_info())
        self._open_sessions = {known for known in self._open_sessions if not known.ended} | {session}
        await session.open()
        if self._closed:  # meanwhile
            await session.close()
            raise ToolsetError(f"the connection to {self.connection.label} was closed")
        return session

    # ---- calls -----------------------------------------------------------------------------------------------------

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, timeout: float | None = None
    ) -> types.CallToolResult:
        """Calls a tool and returns its result; what its server asks meanwhile is answered by the asker.

        Args:
            timeout: limit for the call in seconds, not counting the time in which a person is asked; None: no limit.

        Raises ServerError (the server answered with an error), ElicitationRequiredError, ElicitationHandlerError,
        CallTimeoutError, SessionLostError, or another ToolsetError. A result with `isError` is no exception.
        """
        record = Record(tool=name, clock=PausableClock(timeout))
        with under_way(record):
            try:
                result = await limited(self._call(name, dict(arguments or {}), record), record.clock)
            except Exception as error:
                failure = await explain(error, record, self.connection, self._main, doing=f"calling {name} of")
                raise failure from record.cause  # the SDK's own error may quote URLs
            finally:
                record.finish()
        if record.cause is not None:
            raise ElicitationHandlerError(
                f"the elicitation handler failed while {name} of {self.connection.label} ran"
            ) from record.cause
        return result

    async def _call(self, name: str, arguments: dict[str, Any], record: Record) -> types.CallToolResult:
        """Rounds of -32042: each listed URL is asked, then the refused call is made again."""
        visited: set[str] = set()
        for _ in range(MAX_ROUNDS):
            try:
                return await self._call_right_session(name, arguments, record)
            except MCPError as error:
                await self._satisfy(error, record, visited)
        raise ElicitationRequiredError(
            f"{self.connection.label} refused {name} {MAX_ROUNDS} times, each time requiring another URL to be visited "
            "(error -32042); given up"
        )

    async def _satisfy(self, error: MCPError, record: Record, visited: set[str]) -> None:
        """Asks for each URL that a -32042 lists; any other error is raised again."""
        refused = find_required(error.error.model_dump(mode="json", by_alias=True)) or find_required(record.http_error)
        record.http_error = None
        if refused is None:
            raise error
        modes = self._asker.modes if self._asker is not None else frozenset()
        session = await self._session()
        before = frozenset(visited)
        for request in read_required(refused, server=self.connection.label, tool=record.tool, modes=modes):
            if request.url in before:
                raise ElicitationRequiredError(
                    f"{self.connection.label} requires the same URL to be visited again for {record.tool} although it "
                    "was accepted (error -32042); given up. Was the sign-in there finished?"
                )
            visited.add(request.url or "")
            session.calls.add(record)  # a completion notice finds its question through this
            try:
                answer = await session.ask(request, record)
            finally:
                session.calls.discard(record)
            if answer.action != "accept":
                raise ElicitationRequiredError(
                    f"{self.connection.label} requires authorization for {record.tool}, which was not accepted "
                    f"({answer.action})"
                )

    async def _call_right_session(self, name: str, arguments: dict[str, Any], record: Record) -> types.CallToolResult:
        if name in self._modern_tools:
            return await call_with_rounds(await self._modern_session(), name, arguments, record)
        session = await self._session()
        try:
            return await call_with_rounds(session, name, arguments, record)
        except MCPError as error:
            if _forgotten(error, record, session):
                return await self._call_after_reconnect(session, name, arguments, record)
            if not self._asks_through_its_result(error, record, session):
                raise
            with suppress(Exception):  # no 2026-07-28 there: the first error stands
                session = await self._modern_session()
            if not session.modern:
                raise
        self._modern_tools.add(name)
        return await call_with_rounds(session, name, arguments, record)

    async def _call_after_reconnect(
        self, old: Session, name: str, arguments: dict[str, Any], record: Record
    ) -> types.CallToolResult:
        """The server no longer knows the session, so it did not begin: once more, on a new one."""
        await old.close(forgotten=True)
        record.http_status = None
        session = await self._session()
        return await call_with_rounds(session, name, arguments, record)

    def _asks_through_its_result(self, error: MCPError, record: Record, session: Session) -> bool:
        if self._protocol != "auto" or session.modern or record.asked:
            return False
        if error.error.code != INTERNAL_ERROR or error.error.message != _INVALID_RESULT:
            return False
        hints = getattr(self.tools.get(record.tool or ""), "annotations", None)
        return not (hints is not None and hints.destructive_hint and not hints.idempotent_hint)


def _forgotten(error: MCPError, record: Record, session: Session) -> bool:
    """HTTP 404 for a named session (some servers say 400): refused before it began, so nothing ran."""
    if session.modern or not record.http_session or record.asked:
        return False
    return record.http_status == 404 or (record.http_status == 400 and "session" in error.error.message.lower())


def _client_info() -> types.Implementation:
    return types.Implementation(name="gopher-mcp-python", version=__version__)
