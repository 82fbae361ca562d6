"""One connection to a server, held open by a task of its own.

The SDK's transports are task groups: when a POST can't be sent, the group ends and takes everything inside with it. So
the transport lives in a task that nobody else runs in; a call from another task sees its request fail, asks that task
why, and reports it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Literal

import mcp_types as types
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from ..errors import ConnectionError
from ..own_loop import why_no_sockets
from .calls import ServerRequest
from .connection import Connection, Farewell, HttpConnection, StdioConnection, open_transport, place
from .elicitation import Asker
from .errors import CONNECTION_CLOSED, METHOD_NOT_FOUND, ToolsetError
from .questions import Questions
from .record import Record, current_record, under_way
from .wire import ElicitingDispatcher

Protocol = Literal["auto", "handshake", "2026-07-28"]
# A paginated list of tools ends here at the latest; no server has as many pages.
MAX_PAGES = 1000
# Seconds that a session which is closed may take for its last answers, its DELETE and the end of its process.
CLOSE_SECONDS = 3.0
# The same for a command: the SDK gives it 2 s after its input has ended, 2 s after a SIGTERM to its process group, and
# then kills the group. Cut short, that would leave the process behind.
CLOSE_COMMAND_SECONDS = 7.0
# Seconds that a transport which has broken takes to end.
END_SECONDS = 0.5
# Seconds that answers may take in all to leave before a session ends, and one answer from here to the wire of a
# transport that does not tell.
ANSWER_SECONDS = 0.5
SEND_SECONDS = 0.05


class Session:
    """One session at one protocol generation. Use it from the event loop that opened it.

    Args:
        connection: where the server is.
        asker: who answers elicitations; None: nothing is declared.
        client_info: name and version of this client.
        roots: folders that the server is told of; none: nothing is declared.
        protocol: "handshake" (2025-11-25 and older, which have a way back to the client), "2026-07-28", or "auto":
            the handshake first, 2026-07-28 for a server that has nothing else.
    """

    def __init__(
        self,
        connection: Connection,
        asker: Asker | None,
        protocol: Protocol,
        client_info: types.Implementation,
        roots: Sequence[types.Root] = (),
    ) -> None:
        self.connection = connection
        self._protocol = protocol
        self._client_info = client_info
        self.roots = tuple(roots)
        self._client: ClientSession | None = None
        self._closing = asyncio.Event()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._owner: asyncio.Task[None] | None = None
        self._stopped = False
        self.failure: BaseException | None = None
        self._farewell = Farewell()
        self.questions = Questions(connection, asker, lambda: self.version, self._closing.is_set)

    # ---- life ------------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Connects and negotiates. Raises what went wrong, as the SDK or the HTTP client put it, and ToolsetError for
        an event loop without connections."""
        unfit = why_no_sockets(asyncio.get_running_loop())
        if unfit is not None:
            raise ToolsetError(unfit)
        opening, caller = Record(), current_record()
        # The transport lives on in this context. It must not be taken for that of the call that happened to need it.
        with under_way(opening):
            self._owner = asyncio.create_task(self._own())
        try:
            await asyncio.shield(self._ready)
        except BaseException:
            if caller is not None:
                caller.take_over(opening)
            self._stop(self._owner)
            await asyncio.wait((self._owner,))
            raise

    async def close(self, *, forgotten: bool = False) -> None:
        """`begin_close`, and waits for the end, at most CLOSE_SECONDS longer than that gives it."""
        limit = self.begin_close(forgotten=forgotten)
        if self._owner is not None:
            await asyncio.wait((self._owner,), timeout=limit + CLOSE_SECONDS)

    def begin_close(self, *, forgotten: bool = False) -> float:
        """Has open questions withdrawn, goodbye said and the transport ended, whether or not anybody waits for it.
        Idempotent. Returns how long that may take, in seconds; then the transport's task is cancelled.

        A session that is still being opened is given up.

        Args:
            forgotten: the server no longer knows the session, so there is nobody to say goodbye to.
        """
        limit = CLOSE_COMMAND_SECONDS if isinstance(self.connection, StdioConnection) else CLOSE_SECONDS
        owner = self._owner
        if owner is None or owner.done():
            return limit
        self._farewell.forgotten = forgotten
        self._closing.set()
        if not self._ready.done():
            self._stop(owner)
        timer = asyncio.get_running_loop().call_later(limit, self._stop, owner)
        owner.add_done_callback(lambda _: timer.cancel())
        return limit

    def _stop(self, owner: asyncio.Task[None]) -> None:
        """Cancels the transport's task, once: a second time would cut short how the SDK ends a server's process."""
        if not self._stopped:
            self._stopped = True
            owner.cancel()

    def lost(self) -> None:
        """The server's stream has ended (its process, its connection): the next call needs a new session."""
        self._closing.set()

    @property
    def alive(self) -> bool:
        return self._owner is not None and not self._owner.done() and not self._closing.is_set()

    @property
    def ended(self) -> bool:
        return self._owner is not None and self._owner.done()

    async def wait_ended(self) -> None:
        """Waits until the transport is down (after a lost connection), for `failure` to be known."""
        if self._owner is not None:
            await asyncio.wait((self._owner,), timeout=END_SECONDS)

    async def _own(self) -> None:
        try:
            async with open_transport(self.connection, self._farewell) as (read, write):
                dispatcher = ElicitingDispatcher(read, write, self.questions, self.lost)
                roots = self._list_roots if self.roots else None
                async with ClientSession(
                    dispatcher=dispatcher, client_info=self._client_info, list_roots_callback=roots
                ) as client:
                    await self._negotiate(client)
                    self._client = client
                    self._ready.set_result(None)
                    await self._closing.wait()
                    await self._withdraw_all()
        except BaseException as error:
            self.failure = leaf(error)
            if not self._ready.done():
                self._ready.set_exception(not_a_cancellation(self.failure))
                self._ready.exception()  # seen, also when `open` was cancelled meanwhile
            if isinstance(error, asyncio.CancelledError | KeyboardInterrupt | SystemExit):
                raise
        finally:
            self.questions.finish()

    async def _withdraw_all(self) -> None:
        """Takes back what is still asked; the cancels, and answers just given, leave before the connection does."""
        self.questions.withdraw_all()
        loop = asyncio.get_running_loop()
        end = loop.time() + ANSWER_SECONDS
        while loop.time() < end and self.answering:
            await asyncio.sleep(0.01)

    async def _negotiate(self, client: ClientSession) -> None:
        """See the module `toolset` for why the handshake comes first."""
        if self._protocol == "2026-07-28":
            await self._discover(client)
            return
        try:
            await client.initialize()
        except (MCPError, RuntimeError) as refused:
            if self._protocol == "handshake" or not may_be_modern(refused):
                raise
            record = current_record() or Record()
            status = record.http_status
            try:
                await client.discover()
            except (MCPError, RuntimeError, ValueError):
                record.http_status = status  # the first refusal is the one to tell of
                raise refused from None

    async def _discover(self, client: ClientSession) -> None:
        try:
            await client.discover()
        except MCPError as refused:
            if refused.error.code != METHOD_NOT_FOUND and getattr(current_record(), "http_status", None) != 400:
                raise
            raise ConnectionError(
                f"connecting to {place(self.connection)} failed: the server does not speak protocol 2026-07-28, which "
                'was asked for; "auto" takes what it speaks (protocol=, or GOPHER_MCP_PROTOCOL for agents)'
            ) from None

    # ---- requests --------------------------------------------------------------------------------------------------

    @property
    def version(self) -> str:
        return (self._client.protocol_version if self._client is not None else None) or "2025-11-25"

    @property
    def modern(self) -> bool:
        return self.version in MODERN_PROTOCOL_VERSIONS

    @property
    def client(self) -> ClientSession:
        """Raises MCPError when the session is not open."""
        if self._client is None:
            raise MCPError(CONNECTION_CLOSED, "the session is not open")
        return self._client

    async def list_all(self, items: str) -> list[Any]:
        """All tools, prompts or resources, page by page. A cursor that comes back ends the list.

        Args:
            items: what the SDK calls them, in its method `list_...` and in what that returns.
        """
        found: list[Any] = []
        seen: set[str] = set()
        params: types.PaginatedRequestParams | None = None
        for _ in range(MAX_PAGES):
            try:
                page = await getattr(self.client, f"list_{items}")(params=params)
            except MCPError as error:
                if error.error.code == METHOD_NOT_FOUND and not self._offers(items):
                    return []
                raise
            found.extend(getattr(page, items))
            if not page.next_cursor or page.next_cursor in seen:
                break
            seen.add(page.next_cursor)
            params = types.PaginatedRequestParams(cursor=page.next_cursor)
        return found

    def _offers(self, items: str) -> bool:
        """Whether the server says that it has such things at all."""
        capability = "resources" if items.startswith("resource") else items
        return getattr(self.client.server_capabilities, capability, None) is not None

    async def send(self, request: ServerRequest, responses: Any = None, state: str | None = None) -> Any:
        """Makes a request, or makes it again with the answers to what its last result asked for."""
        rounds = {"input_responses": responses, "request_state": state, "allow_input_required": True}
        return await request.send(self.client, **rounds)

    @property
    def answering(self) -> bool:
        """Whether somebody is asked, or an answer is still on its way to the server."""
        questions = self.questions
        if questions.under_way:
            return True
        if isinstance(self.connection, HttpConnection) and self.connection.transport == "streamable-http":
            return self._farewell.delivered < questions.given
        return asyncio.get_running_loop().time() - questions.answered_at < SEND_SECONDS

    async def _list_roots(self, context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=list(self.roots))

def may_be_modern(refused: BaseException) -> bool:
    """Whether a server that refused the handshake may have 2026-07-28 only; one that wants a login may not."""
    status = getattr(current_record(), "http_status", None) or 0
    if status in (401, 403, 429) or status >= 500:
        return False
    return not isinstance(refused, MCPError) or refused.error.code != CONNECTION_CLOSED


def leaf(error: BaseException) -> BaseException:
    """The first real failure inside the task groups' exception groups."""
    while (inner := getattr(error, "exceptions", None)) and isinstance(inner, tuple):
        error = next((e for e in inner if not isinstance(e, asyncio.CancelledError)), inner[0])
    return error


def not_a_cancellation(error: BaseException) -> BaseException:
    if isinstance(error, asyncio.CancelledError | KeyboardInterrupt | SystemExit):
        return MCPError(CONNECTION_CLOSED, "the session was closed")
    return error
