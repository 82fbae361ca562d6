"""What a server asks of its user on one session: whose call it is asked for, asked once, taken back with its call."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import Context
from typing import Any

from mcp.shared.exceptions import MCPError

from ..elicitation import GopherAgentElicitationRequest, GopherAgentElicitationResponse
from ..handlers.lines import BUSY
from ..redaction import log_failure
from .connection import Connection, context_tells
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
from .errors import INTERNAL_ERROR, INVALID_PARAMS, ElicitationHandlerError
from .record import Record, current_record

__all__ = ["Questions"]

_log = logging.getLogger("gopher_mcp_python.elicitation")
# Answered questions of a session (not of a call) that are remembered, so that a repetition is not asked again; and
# pages for which a completion notice may come.
MAX_REMEMBERED = 200
# Seconds in which a server may still ask on behalf of a call that was given up. Over stdio nothing says so.
STRAY_SECONDS = 60.0
# Seconds that an answer has to leave before the interrupt of its handler ends the call.
INTERRUPT_SECONDS = 0.05


class Questions:
    """The questions of one session.

    Args:
        connection: where the server is.
        asker: who answers; None: no mode is declared, and read_request refuses all.
        version: of the protocol that the session speaks.
        is_closing: whether the session is about to end.

    Attributes:
        calls: those under way, with all their rounds.
        under_way: how many requests of the server are being answered.
        given: how many answers were given.
        answered_at: when the last one was, on the loop's clock.
    """

    def __init__(
        self,
        connection: Connection,
        asker: Asker | None,
        version: Callable[[], str],
        is_closing: Callable[[], bool],
    ) -> None:
        self._connection = connection
        self._asker = asker
        self._version = version
        self._is_closing = is_closing
        self.calls: set[Record] = set()
        self._listing: set[Record] = set()
        self._loose = Record()  # of questions that belong to no call
        self._given_up: list[tuple[float, Hashable]] = []  # calls that ended without an answer: when, and whose
        self._to_complete: dict[str | None, None] = {}  # pages that a completion notice may come for, oldest first
        self.under_way = self.given = 0
        self.answered_at = float("-inf")

    # ---- whose it is -----------------------------------------------------------------------------------------------

    @contextmanager
    def listing(self, record: Record) -> Iterator[None]:
        """While open, `record` is a request that is no call; its clock stands still while somebody is asked."""
        self._listing.add(record)
        try:
            yield
        finally:
            self._listing.discard(record)

    @property
    def modes(self) -> frozenset[str]:
        return self._asker.modes if self._asker is not None else frozenset()

    def owner_of(self) -> Record:
        """The request that what just came in belongs to: by context, else the only call under way, else none."""
        record = _own_call()
        if record is not None:
            return record
        return next(iter(self.calls)) if len(self.calls) == 1 and not self._strays() else self._loose

    def given_up(self, record: Record) -> None:
        """A call ended without its answer: what comes may still be asked for it. Over HTTP the context tells."""
        if not context_tells(self._connection):
            self._given_up.append((asyncio.get_running_loop().time(), record.person))

    def _strays(self) -> list[Hashable]:
        """Whose calls were given up a short time ago."""
        since = asyncio.get_running_loop().time() - STRAY_SECONDS
        self._given_up = [one for one in self._given_up if one[0] > since]
        return [person for _, person in self._given_up]

    def _person(self, record: Record) -> Hashable:
        """Who is asked; for a question of nobody's call, the one person whose calls there are."""
        if record is not self._loose:
            return record.person
        people = {*(call.person for call in self.calls), *self._strays()}
        return people.pop() if len(people) == 1 else None

    def _is_outside(self, record: Record) -> bool:
        """Whether what just came in is known to belong to no call: by its context, or as there is no call. Where
        nothing tells, it may belong to one that is under way."""
        if record is self._loose and not self.calls:
            return True
        return _own_call() is None and context_tells(self._connection)

    async def answer(self, request_id: Any, params: Any) -> dict[str, Any]:
        """Answers `elicitation/create`. Raises MCPError, which the dispatcher sends as the error."""
        self.under_way += 1
        try:
            return await self._answer(request_id, params)
        finally:
            self.under_way -= 1
            self.given += 1
            self.answered_at = asyncio.get_running_loop().time()

    async def _answer(self, request_id: Any, params: Any) -> dict[str, Any]:
        record = self.owner_of()
        raw = {"jsonrpc": "2.0", "id": request_id, "method": "elicitation/create", "params": params}
        try:
            request = read_request(
                params,
                modes=self.modes,
                version=self._version(),
                request_id=request_id,
                raw=raw,
                server=self._connection.label,
                tool=record.tool,
            )
        except InvalidElicitation as error:
            raise MCPError(INVALID_PARAMS, str(error)) from None
        occasion = Occasion(outside_call=self._is_outside(record), person=self._person(record), source=self)
        try:
            return wire_answer(request, await self.ask(request, record, occasion))
        except Exception as error:
            self._failed(error, record)
            raise MCPError(INTERNAL_ERROR, "the client's elicitation handler failed") from None

    async def answer_for_call(self, request: GopherAgentElicitationRequest, record: Record) -> dict[str, Any]:
        """Answers what a call asks through its result or its refusal; the call is made again afterwards.

        Raises ElicitationHandlerError.
        """
        try:
            occasion = Occasion(held=True, person=record.person, source=self)
            return wire_answer(request, await self.ask(request, record, occasion))
        except Exception as error:
            self._failed(error, record)
            raise ElicitationHandlerError("the elicitation handler failed") from record.cause

    def _failed(self, error: Exception, record: Record) -> None:
        """Keeps a handler's failure for the call that asked; where no call is known to have, the log has to do."""
        record.cause = error.__cause__ or error if isinstance(error, ElicitationHandlerError) else error
        if record is self._loose:
            log_failure(_log, f"The elicitation handler failed for {self._connection.label}", record.cause)
            record.cause = None

    async def ask(
        self, request: GopherAgentElicitationRequest, record: Record, occasion: Occasion
    ) -> GopherAgentElicitationResponse:
        """Asks once per request and call; a repetition gets the answer of the first."""
        assert self._asker is not None  # no mode is declared then, and read_request has refused it
        record.asked = True
        key = key_of(request)
        prompt = record.prompts.get(key)
        if prompt is None:
            if self._is_closing():  # nobody is shown what is taken back at once
                return GopherAgentElicitationResponse("cancel")
            self._forget_old(record)
            waiting = [record] if record is not self._loose else [*self.calls, *self._listing]
            clocks = [each.clock for each in waiting]
            context = self._context_of_nobody() if record.context is None else record.context
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

    def _context_of_nobody(self) -> Context:
        """Not that of whoever opened the session. But the question may be asked for a call that a handler makes, and
        must not wait for that handler's turn to end."""
        context = Context()
        busy = [call.context.get(BUSY, frozenset()) for call in self.calls if call.context is not None]
        context.run(BUSY.set, frozenset().union(*busy))
        return context

    def _interrupt(self, interrupt: BaseException, record: Record) -> None:
        """Whoever made the call raises it; where there is no call, the loop does."""
        if record is self._loose:
            asyncio.get_running_loop().call_soon(_raise, interrupt)
        else:
            record.interrupt = interrupt  # raised when the answer has left, whether or not the server says more
            asyncio.get_running_loop().call_later(INTERRUPT_SECONDS, record.clock.stop)

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

    # ---- the end ---------------------------------------------------------------------------------------------------

    def withdraw_all(self) -> None:
        """Takes back what is still asked for calls of this session and for none."""
        for record in (*self.calls, self._loose):
            record.withdraw()

    def finish(self) -> None:
        """The session has ended."""
        self._loose.finish()


def _own_call() -> Record | None:
    """The call in whose context this is, if it is still under way."""
    record = current_record()
    return record if record is not None and not record.over and record.what is not None else None


def _raise(interrupt: BaseException) -> None:
    raise interrupt
