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
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from contextvars import copy_context
from typing import Any, TypeVar, cast

import mcp_types as types
from mcp.shared.exceptions import MCPError

from .. import __version__
from ..elicitation import GopherAgentElicitationRequest
from .alarm import limited
from .borrowed import BorrowedSession
from .calls import ServerRequest, ToolCall
from .clock import PausableClock
from .connection import ClientConnection, Connection
from .elicitation import Asker
from .errors import INTERNAL_ERROR, ElicitationHandlerError, ElicitationRequiredError, ToolsetError
from .explain import explain
from .record import Record, under_way
from .required import MAX_ROUNDS, find_required, read_required
from .rounds import call_with_rounds
from .session import Protocol, Session

T = TypeVar("T")
_INVALID_RESULT = "Handler returned an invalid result"


class Toolset:
    """The tools, prompts and resources of one server. Use it from one event loop; calls may run at the same time.

    Args:
        connection: where the server is.
        asker: who answers elicitations; None: nothing is declared to the server.
        protocol: "auto" (see the module), "handshake" or "2026-07-28".
        roots: folders that the server is told of; none: nothing is declared.
    """

    def __init__(
        self,
        connection: Connection,
        asker: Asker | None = None,
        *,
        protocol: Protocol = "auto",
        roots: Sequence[types.Root] = (),
    ) -> None:
        self.connection = connection
        self._asker = asker
        self._protocol: Protocol = "handshake" if isinstance(connection, ClientConnection) else protocol
        self._roots = tuple(roots)
        self._main: Session | None = None
        self._second: Session | None = None
        self._open_sessions: set[Session] = set()  # also those that are being opened, and replaced ones that still end
        self._modern: set[str] = set()  # what is called at 2026-07-28
        self._opening = asyncio.Lock()
        self._between: set[Record] = set()  # calls that wait for a person before they are made again
        self._closed = False
        self.listed = False  # whether the tools are known
        self._loop: asyncio.AbstractEventLoop | None = None
        self.tools: dict[str, types.Tool] = {}

    # ---- life ------------------------------------------------------------------------------------------------------

    async def connect(self, clock: PausableClock | None = None) -> dict[str, types.Tool]:
        """Opens the session and lists the tools.

        Raises ApiKeyError, ConnectionError, CallTimeoutError or another ToolsetError, naming the server.
        """
        await self._connected(self._list, clock)
        return self.tools

    async def _connected(self, work: Callable[[Session], Awaitable[T]], clock: PausableClock | None = None) -> T:
        """Does what belongs to no call, on the session. Raises as `connect`."""
        self._check_loop()
        record = Record(clock=clock or PausableClock(None))
        with under_way(record):
            try:
                session = await limited(self._session(), record.clock)
                with session.questions.listing(record):
                    return await limited(work(session), record.clock)
            except Exception as error:
                raise await explain(error, record, self.connection, self._main, doing="connecting to") from None
            finally:
                record.over = True

    async def aclose(self) -> None:
        """Withdraws what is still asked and closes the sessions. Idempotent."""
        self._check_loop()
        self._closed = True
        self._main = self._second = None
        for record in self._between:
            record.withdraw()
        for session in self._open_sessions:  # also where this task is cancelled from here on
            session.begin_close()
        await asyncio.gather(*(session.close() for session in self._open_sessions))

    @property
    def answering(self) -> bool:
        """Whether somebody is asked, or an answer is still on its way to the server."""
        return any(session.answering for session in self._open_sessions if not session.ended)

    async def list_prompts(self, clock: PausableClock | None = None) -> list[types.Prompt]:
        """Lists the prompts. Raises as `connect`."""
        return await self._connected(lambda session: session.list_all("prompts"), clock)

    async def list_resources(self, clock: PausableClock | None = None) -> list[types.Resource]:
        """Lists the resources. Raises as `connect`."""
        return await self._connected(lambda session: session.list_all("resources"), clock)

    async def list_resource_templates(self, clock: PausableClock | None = None) -> list[types.ResourceTemplate]:
        """Lists the templates of resources. Raises as `connect`."""
        return await self._connected(lambda session: session.list_all("resource_templates"), clock)

    async def _list(self, session: Session) -> None:
        self.tools = {tool.name: tool for tool in await session.list_all("tools")}
        self.listed = True

    async def _session(self) -> Session:
        async with self._opening:
            if self._closed:
                raise self._was_closed()
            if self._main is None or not self._main.alive:
                self._main = await self._open(self._protocol)
                if self.listed:  # a session that replaces one knows its tools before the first call, too
                    await self._list(self._main)
            return self._main

    async def _modern_session(self) -> Session:
        async with self._opening:
            if self._main is not None and self._main.alive and self._main.modern:
                return self._main
            if self._second is None or not self._second.alive:
                self._second = await self._open("2026-07-28")
                # The session mirrors annotated arguments into headers from its list.
                await self._second.list_all("tools")
            return self._second

    async def _open(self, protocol: Protocol) -> Session:
        session = self._new_session(protocol)
        self._open_sessions = {known for known in self._open_sessions if not known.ended} | {session}
        await session.open()
        if self._closed:  # meanwhile
            await session.close()
            raise self._was_closed()
        return session

    def _new_session(self, protocol: Protocol) -> Session:
        if isinstance(self.connection, ClientConnection):
            return BorrowedSession(self.connection, _client_info())
        return Session(self.connection, self._asker, protocol, _client_info(), self._roots)

    # ---- calls -----------------------------------------------------------------------------------------------------

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, timeout: float | None = None
    ) -> types.CallToolResult:
        """Calls a tool and returns its result; see `call`. A result with `isError` is no exception."""
        result, _ = await self.call(ToolCall(name, arguments or {}), timeout=timeout)
        return cast(types.CallToolResult, result)

    async def call(
        self, request: ServerRequest, *, timeout: float | None = None, person: Hashable = None
    ) -> tuple[Any, dict[str, Any]]:
        """Makes a request and returns its result, as the SDK has it and as it came; what the server asks meanwhile is
        answered by the asker.

        Args:
            timeout: limit for the call in seconds, not counting the time in which a person is asked; None: no limit.
            person: who is asked, for the asker.

        Raises ServerError (the server answered with an error), ElicitationRequiredError, ElicitationHandlerError,
        CallTimeoutError, SessionLostError, or another ToolsetError.
        """
        self._check_loop()
        record = Record(
            what=request.what, tool=request.tool, person=person, context=copy_context(), clock=PausableClock(timeout)
        )
        with under_way(record):
            try:
                result = await limited(self._call(request, record), record.clock)
            except Exception as error:
                if record.cause is not None:  # whatever the server made of it
                    raise self._handler_failed(request) from record.cause
                doing = f"calling {request.what} of"
                raise await explain(error, record, self.connection, self._main, doing=doing) from None
            finally:
                record.finish()
                if record.interrupt is not None:
                    raise record.interrupt
        if record.cause is not None:
            raise self._handler_failed(request) from record.cause
        return result, record.raw_result or {}

    def _handler_failed(self, request: ServerRequest) -> ElicitationHandlerError:
        where = f"{request.what} of {self.connection.label}"
        return ElicitationHandlerError(f"the elicitation handler failed while {where} ran")

    @property
    def is_open(self) -> bool:
        """Whether a session is left to be closed."""
        if self._closed or isinstance(self.connection, ClientConnection):
            return False
        return any(not session.ended for session in self._open_sessions)

    def close_soon(self) -> None:
        """For whoever can't await, on any thread: closes the sessions on their loop, if it still runs."""
        if self._loop is not None and self._loop.is_running():
            with suppress(RuntimeError):  # it ended meanwhile
                asyncio.run_coroutine_threadsafe(self.aclose(), self._loop)

    def _check_loop(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop not in (None, loop):
            raise ToolsetError(
                f"the connection to {self.connection.label} belongs to another event loop; make one for each loop"
            )
        self._loop = loop

    async def _call(self, request: ServerRequest, record: Record) -> Any:
        """Rounds of -32042: each listed URL is asked, then the refused call is made again."""
        visited: set[str] = set()
        for _ in range(MAX_ROUNDS):
            try:
                return await self._call_right_session(request, record)
            except MCPError as error:
                await self._satisfy(error, record, visited)
        raise ElicitationRequiredError(
            f"{self.connection.label} refused {request.what} {MAX_ROUNDS} times, each time requiring another URL to be "
            "visited (error -32042); given up"
        )

    async def _satisfy(self, error: MCPError, record: Record, visited: set[str]) -> None:
        """Asks for each URL that a -32042 lists; any other error is raised again."""
        refused = find_required(error.error.model_dump(mode="json", by_alias=True)) or find_required(record.http_error)
        record.http_error = None
        if refused is None:
            raise error
        modes = self._asker.modes if self._asker is not None else frozenset()
        before = frozenset(visited)
        for request in read_required(refused, server=self.connection.label, tool=record.tool, modes=modes):
            if request.url in before:
                raise ElicitationRequiredError(
                    f"{self.connection.label} requires the same URL to be visited again for {record.what} although it "
                    "was accepted (error -32042); given up. Was the sign-in there finished?"
                )
            visited.add(request.url or "")
            action = await self._asked(request, record)
            if action != "accept":
                raise ElicitationRequiredError(
                    f"{self.connection.label} requires authorization for {record.what}, which was not accepted "
                    f"({action})"
                )

    async def _asked(self, request: GopherAgentElicitationRequest, record: Record) -> str:
        """The answer's action. The session may end meanwhile; the call is made again on another one."""
        self._between.add(record)
        try:
            session = await self._session()
            action = (await session.questions.answer_for_call(request, record))["action"]
        finally:
            self._between.discard(record)
        if self._closed:
            raise self._was_closed()
        return str(action)

    def _was_closed(self) -> ToolsetError:
        return ToolsetError(f"the connection to {self.connection.label} was closed; make a new one")

    async def _call_right_session(self, request: ServerRequest, record: Record) -> Any:
        if request.what in self._modern:
            return await call_with_rounds(await self._modern_session(), request, record)
        session = await self._session()
        try:
            return await call_with_rounds(session, request, record)
        except MCPError as error:
            if _forgotten(error, record, session):
                return await self._call_after_reconnect(session, request, record)
            if not self._asks_through_its_result(error, record, session):
                raise
            with suppress(Exception):  # no 2026-07-28 there: the first error stands
                session = await self._modern_session()
            if not session.modern:
                raise
        self._modern.add(request.what)
        return await call_with_rounds(session, request, record)

    async def _call_after_reconnect(self, old: Session, request: ServerRequest, record: Record) -> Any:
        """The server no longer knows the session, so it did not begin: once more, on a new one."""
        await old.close(forgotten=True)
        record.http_status = None
        session = await self._session()
        return await call_with_rounds(session, request, record)

    def _asks_through_its_result(self, error: MCPError, record: Record, session: Session) -> bool:
        if self._protocol != "auto" or session.modern or record.asked:
            return False
        if error.error.code != INTERNAL_ERROR or error.error.message != _INVALID_RESULT:
            return False
        hints = getattr(self.tools.get(record.tool or ""), "annotations", None)
        return not (hints is not None and hints.destructive_hint and not hints.idempotent_hint)


def _forgotten(error: MCPError, record: Record, session: Session) -> bool:
    """HTTP 404 for a named session (some servers say 400): refused before it began, so nothing ran."""
    if session.modern or not record.http_session or record.asked or find_required(record.http_error):
        return False
    return record.http_status == 404 or (record.http_status == 400 and "session" in error.error.message.lower())


def _client_info() -> types.Implementation:
    return types.Implementation(name="gopher-mcp-python", version=__version__)
