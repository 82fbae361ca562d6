"""One connection to a server, held open by a task of its own.

The SDK's transports are task groups: when a POST can't be sent, the group ends and takes everything inside with it. So
the transport lives in a task that nobody else runs in; a call from another task sees its request fail, asks that task
why, and reports it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import Context
from typing import Any, Literal

import mcp_types as types
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from ..elicitation import GopherAgentElicitationRequest, GopherAgentElicitationResponse
from ..errors import ConnectionError
from ..redaction import redacted_error
from .calls import ServerRequest
from .connection import Connection, Farewell, HttpConnection, StdioConnection, open_transport, place
from .elicitation import (
    Asker,
    HandlerInterrupted,
    InvalidElicitation,
    Occasion,
    Prompt,
    key_of,
    read_request,
    wire_answer,
)
from .errors import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, ElicitationHandlerError
from .record import Record, current_record, under_way
from .wire import ElicitingDispatcher

_log = logging.getLogger("gopher_mcp_python.elicitation")
Protocol = Literal["auto", "handshake", "2026-07-28"]
# A paginated list of tools ends here at the latest; no server has as many pages.
MAX_PAGES = 1000
# Answered questions of a session (not of a call) that are remembered, so that a repetition is not asked again; and
# pages for which a completion notice may come.
MAX_REMEMBERED = 200
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
# Seconds in which a server may still ask on behalf of a call that was given up. Over stdio nothing says so.
STRAY_SECONDS = 60.0
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
        self._asker = asker
        self._protocol = protocol
        self._client_info = client_info
        self.roots = tuple(roots)
        self._client: ClientSession | None = None
        self._closing = asyncio.Event()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._owner: asyncio.Task[None] | None = None
        self._stopped = False
        self.failure: BaseException | None = None
        self.calls: set[Record] = set()
        self._listing: set[Record] = set()
        self._farewell = Farewell()
        self._under_way = self._given = 0  # questions that are being answered, and answers that were given
        self._answered_at = float("-inf")
        self._loose = Record()  # of questions that belong to no call
        self._given_up_at = float("-inf")
        self._to_complete: dict[str | None, None] = {}  # pages that a completion notice may come for, oldest first

    # ---- life ------------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Connects and negotiates. Raises what went wrong, as the SDK or the HTTP client put it."""
        # The transport lives on in this context. It must not be taken for that of the call that happened to need it.
        opening, caller = Record(), current_record()
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
                dispatcher = ElicitingDispatcher(read, write, self)
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
            self.failure = _leaf(error)
            if not self._ready.done():
                self._ready.set_exception(_not_a_cancellation(self.failure))
                self._ready.exception()  # seen, also when `open` was cancelled meanwhile
            if isinstance(error, asyncio.CancelledError | KeyboardInterrupt | SystemExit):
                raise
        finally:
            self._loose.finish()

    async def _withdraw_all(self) -> None:
        """Takes back what is still asked; the cancels, and answers just given, leave before the connection does."""
        for record in (*self.calls, self._loose):
            record.withdraw()
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
            if self._protocol == "handshake" or not _may_be_modern(refused):
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

    @contextmanager
    def listing(self, record: Record) -> Iterator[None]:
        """While open, `record` is a request that is no call; its clock stands still while somebody is asked."""
        self._listing.add(record)
        try:
            yield
        finally:
            self._listing.discard(record)

    async def list_all(self, method: str, items: str) -> list[Any]:
        """All tools, prompts or resources, page by page. A cursor that comes back ends the list.

        Args:
            method: of the SDK's session.
            items: the attribute of its result.
        """
        found: list[Any] = []
        seen: set[str] = set()
        params: types.PaginatedRequestParams | None = None
        for _ in range(MAX_PAGES):
            try:
                page = await getattr(self.client, method)(params=params)
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

    async def _list_roots(self, context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=list(self.roots))

    # ---- questions (the dispatcher calls these) --------------------------------------------------------------------

    @property
    def modes(self) -> frozenset[str]:
        return self._asker.modes if self._asker is not None else frozenset()

    def owner_of(self) -> Record:
        """The request that what just came in belongs to: by context, else the only call under way, else none."""
        record = _own_call()
        if record is not None:
            return record
        is_clear = asyncio.get_running_loop().time() > self._given_up_at + STRAY_SECONDS
        return next(iter(self.calls)) if len(self.calls) == 1 and is_clear else self._loose

    def given_up(self) -> None:
        """A call ended without its answer: what comes may still be asked for it."""
        self._given_up_at = asyncio.get_running_loop().time()

    def _is_outside(self, record: Record) -> bool:
        """Whether what just came in is known to belong to no call: over HTTP the context tells, by stdio nothing does
        while a call is under way."""
        if record is self._loose:
            return not self.calls or not isinstance(self.connection, StdioConnection)
        return _own_call() is None and not isinstance(self.connection, StdioConnection)

    async def answer(self, request_id: Any, params: Any) -> dict[str, Any]:
        """Answers `elicitation/create`. Raises MCPError, which the dispatcher sends as the error."""
        self._under_way += 1
        try:
            return await self._answer(request_id, params)
        finally:
            self._under_way -= 1
            self._given += 1
            self._answered_at = asyncio.get_running_loop().time()

    @property
    def answering(self) -> bool:
        """Whether somebody is asked, or an answer is still on its way to the server."""
        if self._under_way:
            return True
        if isinstance(self.connection, HttpConnection) and self.connection.transport == "streamable-http":
            return self._farewell.delivered < self._given
        return asyncio.get_running_loop().time() - self._answered_at < SEND_SECONDS

    async def _answer(self, request_id: Any, params: Any) -> dict[str, Any]:
        record = self.owner_of()
        raw = {"jsonrpc": "2.0", "id": request_id, "method": "elicitation/create", "params": params}
        try:
            request = read_request(
                params,
                modes=self.modes,
                version=self.version,
                request_id=request_id,
                raw=raw,
                server=self.connection.label,
                tool=record.tool,
            )
        except InvalidElicitation as error:
            raise MCPError(INVALID_PARAMS, str(error)) from None
        occasion = Occasion(outside_call=self._is_outside(record), person=record.person, source=self)
        try:
            return wire_answer(request, await self.ask(request, record, occasion))
        except Exception as error:
            self._failed(error, record)
            raise MCPError(INTERNAL_ERROR, "the client's elicitation handler failed") from None

    async def answer_for_call(self, request: GopherAgentElicitationRequest, record: Record) -> dict[str, Any]:
        """Answers what a call asks through its result or its refusal; the call is made again afterwards.

        Raises ElicitationHandlerError.
        """
        is_new = record not in self.calls
        self.calls.add(record)  # a session that ends takes back what its calls ask
        try:
            occasion = Occasion(held=True, person=record.person, source=self)
            return wire_answer(request, await self.ask(request, record, occasion))
        except Exception as error:
            self._failed(error, record)
            raise ElicitationHandlerError("the elicitation handler failed") from record.cause
        finally:
            if is_new:
                self.calls.discard(record)

    def _failed(self, error: Exception, record: Record) -> None:
        """Keeps a handler's failure for the call that asked; where no call is known to have, the log has to do."""
        record.cause = error.__cause__ or error if isinstance(error, ElicitationHandlerError) else error
        if record is self._loose:
            kind, told = type(record.cause).__name__, redacted_error(record.cause)
            record.cause = None
            with suppress(Exception):  # a filter of the program's may raise
                _log.warning("The elicitation handler failed for %s: %s: %s", self.connection.label, kind, told)

    async def ask(
        self, request: GopherAgentElicitationRequest, record: Record, occasion: Occasion
    ) -> GopherAgentElicitationResponse:
        """Asks once per request and call; a repetition gets the answer of the first."""
        assert self._asker is not None  # no mode is declared then, and read_request has refused it
        record.asked = True
        key = key_of(request)
        prompt = record.prompts.get(key)
        if prompt is None:
            if self._closing.is_set():  # nobody is shown what is taken back at once
                return GopherAgentElicitationResponse("cancel")
            self._forget_old(record)
            waiting = [record] if record is not self._loose else [*self.calls, *self._listing]
            clocks = [each.clock for each in waiting]
            context = Context() if record.context is None else record.context  # nobody's is not its session's opener's
            prompt = record.prompts[key] = Prompt(request, self._asker, clocks, occasion, context)
            self._await_completion(request)
        try:
            answer = await prompt.answer()
        except HandlerInterrupted as stop:
            self._interrupt(stop.interrupt, record)
            answer = GopherAgentElicitationResponse("cancel")
        except Exception:
            self._to_complete.pop(request.elicitation_id, None)
            raise
        if answer.action != "accept":
            self._to_complete.pop(request.elicitation_id, None)
        return answer

    def _interrupt(self, interrupt: BaseException, record: Record) -> None:
        """Whoever made the call raises it; where there is no call, the loop does."""
        if record is self._loose:
            asyncio.get_running_loop().call_soon(_raise, interrupt)
        else:
            record.interrupt = interrupt

    def _await_completion(self, request: GopherAgentElicitationRequest) -> None:
        if request.mode == "url" and request.elicitation_id:
            self._to_complete[request.elicitation_id] = None
            while len(self._to_complete) > MAX_REMEMBERED:
                del self._to_complete[next(iter(self._to_complete))]

    def _forget_old(self, record: Record) -> None:
        """A session that lives for weeks keeps no more than the latest of its own questions."""
        if record is self._loose and len(record.prompts) >= MAX_REMEMBERED:
            record.prompts = {key: prompt for key, prompt in record.prompts.items() if prompt.open}

    def completed(self, params: Any) -> None:
        """Only a page that was asked for here, was not refused and is not complete yet is passed on."""
        elicitation_id = params.get("elicitationId") if isinstance(params, dict) else None
        if not isinstance(elicitation_id, str) or elicitation_id not in self._to_complete or self._asker is None:
            return
        del self._to_complete[elicitation_id]
        self._asker.completed(elicitation_id, self)


def _raise(interrupt: BaseException) -> None:
    raise interrupt


def _own_call() -> Record | None:
    """The call in whose context this is, if it is still under way."""
    record = current_record()
    return record if record is not None and not record.over and record.what is not None else None


def _may_be_modern(refused: BaseException) -> bool:
    """Whether a server that refused the handshake may have 2026-07-28 only; one that wants a login may not."""
    status = getattr(current_record(), "http_status", None) or 0
    if status in (401, 403, 429) or status >= 500:
        return False
    return not isinstance(refused, MCPError) or refused.error.code != CONNECTION_CLOSED


def _leaf(error: BaseException) -> BaseException:
    """The first real failure inside the task groups' exception groups."""
    while (inner := getattr(error, "exceptions", None)) and isinstance(inner, tuple):
        error = next((e for e in inner if not isinstance(e, asyncio.CancelledError)), inner[0])
    return error


def _not_a_cancellation(error: BaseException) -> BaseException:
    if isinstance(error, asyncio.CancelledError | KeyboardInterrupt | SystemExit):
        return MCPError(CONNECTION_CLOSED, "the session was closed")
    return error
