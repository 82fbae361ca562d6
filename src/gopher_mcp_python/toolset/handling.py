"""From a server's question to a handler of a program with an event loop: sync or async, one at a time for each person.

The engine of `GopherAgent` answers on threads of its own (`Elicitor`); here the program's loop waits, and a handler's
failure is the caller's, with its cause (DESIGN: "handler raises, toolset: a JSON-RPC error to the server, the cause to
the caller").
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable, Mapping
from contextvars import Context
from typing import TYPE_CHECKING, Any, Literal, Union

import anyio

from ..answered import Key, key_of
from ..answers import ACCEPT, ACTION_OF, answer_of, wait_of
from ..copying import for_handler
from ..elicitation import (
    GopherAgentElicitationOptions,
    GopherAgentElicitationRequest,
    GopherAgentElicitationResponse,
    normalize_elicitation_options,
)
from ..handlers.lines import BUSY, PersonLine, line_of
from ..handlers.person import Person
from ..handlers.prompts import PersonAnswer, response_of
from ..handlers.watch import Watch, deadline_after
from ..redaction import log_failure
from ..weburl import is_unsafe
from .elicitation import IN_A_CALL, Occasion
from .functions import called, on_helper, outcome_of

if TYPE_CHECKING:
    from ..policy.guard import Guard

__all__ = ["Handler", "HandlerAsker", "HandlerInput", "asker_for"]

Handler = Callable[[GopherAgentElicitationRequest], Any]
HandlerInput = Union[
    Handler, Literal["cancel", "decline", False], GopherAgentElicitationOptions, Mapping[str, Any]
]
_Asked = tuple[object, Hashable, Key]  # on which loop, who is asked, and what
_log = logging.getLogger("gopher_mcp_python.elicitation")
_KEYS = frozenset(("handler", "timeout_ms", "timeoutMs", "open_browser", "openBrowser", "modes", "enabled"))
_CANCEL = GopherAgentElicitationResponse("cancel")


def asker_for(
    handler: HandlerInput | None,
    complete: Callable[[str], Any] | None = None,
    *,
    modes: Any = None,
    timeout_ms: float | None = None,
    person: Hashable = None,
) -> HandlerAsker | None:
    """The asker behind a handler as a program gives it; None where nothing is to be declared to servers.

    Raises ValueError: options of the wrong kind, or a completion handler that no question can precede.
    """
    if complete is not None and not callable(complete):
        raise ValueError("the elicitation_complete_handler must be a function of an elicitation id")
    options, own = _options_of(handler, modes, timeout_ms)
    if options is None or not options.enabled:
        if complete is not None:
            raise ValueError(
                "an elicitation_complete_handler needs an elicitation_handler: no elicitation can be completed that "
                "nobody can be asked"
            )
        return None
    return HandlerAsker(own, complete, options, person)


def _options_of(
    handler: HandlerInput | None, modes: Any, timeout_ms: float | None
) -> tuple[GopherAgentElicitationOptions | None, Handler | None]:
    """Options with everything but a function, and the function: theirs take no async ones."""
    if handler is None or handler is False:
        return None, None
    if isinstance(handler, (GopherAgentElicitationOptions, Mapping)):
        return _overridden(handler, modes, timeout_ms)
    own = handler if callable(handler) else None
    kept: Any = None if own is not None else handler
    return GopherAgentElicitationOptions(kept, timeout_ms, modes=modes), own


def _overridden(
    given: Any, modes: Any, timeout_ms: float | None
) -> tuple[GopherAgentElicitationOptions, Handler | None]:
    unknown = sorted(map(str, given.keys() - _KEYS)) if isinstance(given, Mapping) else []
    if unknown:
        raise ValueError(f"unknown elicitation options {', '.join(unknown):.100}; there are {', '.join(sorted(_KEYS))}")
    own = given.get("handler") if isinstance(given, Mapping) else given.handler
    own = own if callable(own) else None
    if isinstance(given, Mapping) and own is not None:
        given = {**given, "handler": None}
    options = normalize_elicitation_options(given)
    options = GopherAgentElicitationOptions(
        None if callable(options.handler) else options.handler,
        options.timeout_ms if timeout_ms is None else timeout_ms,
        options.open_browser,
        modes=options.modes if modes is None else modes,
        enabled=options.enabled,
    )
    return options, own


class HandlerAsker:
    """The `Asker` of `McpToolset` and of the callbacks for other frameworks; made by `asker_for`.

    Attributes:
        modes: what is declared to servers: both, unless the program names fewer.
    """

    def __init__(
        self,
        handler: Handler | None,
        complete: Callable[[str], Any] | None,
        options: GopherAgentElicitationOptions,
        person: Hashable,
    ) -> None:
        self._fixed = options.handler if isinstance(options.handler, str) else None
        # A policy in front of a handler answers before the line, so that what waits in it can be counted.
        self._guard: Guard | None = getattr(handler, "gopher_guard", None)
        self._person = None if self._fixed is not None else Person.behind(handler, options.open_browser)
        self._handler = handler if self._guard is None else self._guard.inner
        self._complete = complete
        self._has_line = not any(
            getattr(self._handler, mark, False) for mark in ("gopher_non_blocking", "gopher_has_no_line")
        )
        self._timeout_ms = options.timeout_ms or 0
        self.modes: frozenset[str] = options.modes or frozenset(("url", "form"))
        self._line = PersonLine() if person is None else line_of(person)
        self._questions: list[_Question] = []
        # A server may ask the same twice at once: on its session's own stream, and in a call.
        self._asking: dict[_Asked, asyncio.Future[GopherAgentElicitationResponse | None]] = {}
        self._notices: set[asyncio.Future[Any]] = set()

    async def ask(
        self, request: GopherAgentElicitationRequest, occasion: Occasion = IN_A_CALL
    ) -> GopherAgentElicitationResponse:
        """The answer; "cancel" when the time is up. Raises what the handler raises, TypeError and ValueError for what
        is no answer, and ValueError for content that the form does not allow."""
        if self._fixed is not None:
            return GopherAgentElicitationResponse(self._fixed)
        if self._handler is not None and request.mode == "url" and is_unsafe(request.url):
            return GopherAgentElicitationResponse("decline")  # the default handler refuses it itself, and says so
        if self._person is not None and self._person.has_refused(request):
            return GopherAgentElicitationResponse("decline")
        identity = key_of(request)
        key = None if identity is None else (asyncio.get_running_loop(), occasion.person, identity)
        while key is not None and (first := self._asking.get(key)) is not None:
            answer = await asyncio.shield(first)
            if answer is not None:
                return answer
        return await self._ask(request, occasion, key)

    async def _ask(
        self, request: GopherAgentElicitationRequest, occasion: Occasion, key: _Asked | None
    ) -> GopherAgentElicitationResponse:
        """Asks; whoever asks the same meanwhile gets this answer, too, and asks anew when there is none."""
        told: asyncio.Future[GopherAgentElicitationResponse | None] = asyncio.get_running_loop().create_future()
        if key is not None:
            self._asking[key] = told
        answer = None
        try:
            answer = await self._ask_in_turn(_Question(request, occasion), occasion)
            return answer
        finally:
            if key is not None:
                del self._asking[key]
            told.set_result(answer)

    async def _ask_in_turn(self, question: _Question, occasion: Occasion) -> GopherAgentElicitationResponse:
        self._questions.append(question)
        try:
            with anyio.move_on_after(self._timeout_ms / 1000 if self._timeout_ms else None):
                if self._guard is None:
                    return await self._line_up(question, occasion)
                return await self._guard.ask(question.request, lambda: self._line_up(question, occasion))
            return _CANCEL
        finally:
            question.is_open = False
            self._questions.remove(question)

    async def _line_up(self, question: _Question, occasion: Occasion) -> GopherAgentElicitationResponse:
        line = self._line if occasion.person is None else line_of(occasion.person)
        if not self._has_line or line in BUSY.get():
            return await self._answer(question)
        async with line.turn():
            token = BUSY.set(BUSY.get() | {line})
            try:
                return await self._answer(question)
            finally:
                BUSY.reset(token)

    def completed(self, elicitation_id: str, source: object = None) -> None:
        """See `Asker.completed`. Ends a terminal's prompt and the wait for a page that was accepted, and tells the
        program's completion handler; what that raises is logged."""
        for question in tuple(self._questions):  # another loop's may come and go
            known = question.source is source and question.request.elicitation_id == elicitation_id
            if known and question.is_shown:
                question.completed.set()
        if self._complete is not None:
            # In nobody's context: it came on its session's own stream.
            notice = Context().run(asyncio.ensure_future, _notify(self._complete, elicitation_id))
            self._notices.add(notice)  # the loop itself keeps tasks only weakly
            notice.add_done_callback(self._notices.discard)

    # ---- answering -------------------------------------------------------------------------------------------------

    async def _answer(self, question: _Question) -> GopherAgentElicitationResponse:
        if self._person is not None:
            result: Any = response_of(await on_helper(self._ask_person, self._person, question))
            action, content = result.action, result.content
        else:
            assert self._handler is not None
            question.is_shown = True
            result = await outcome_of(self._handler, for_handler(question.request))
            code, content = answer_of(result, question.request)
            action = ACTION_OF[code]
            wait = wait_of(result) if question.held and code == ACCEPT else None
            if wait is not None and not await _finished(wait, question):
                return _CANCEL
        if self._guard is not None:
            await self._guard.keep(question.request, result)
        return GopherAgentElicitationResponse(action, content)

    def _ask_person(self, person: Person, question: _Question) -> PersonAnswer:
        watch = Watch(
            is_open=lambda: question.is_open,
            is_finished=question.completed.is_set,
            deadline=deadline_after(self._timeout_ms),
            limit_ms=self._timeout_ms or None,
            on_shown=question.shown,
        )
        return person.ask_in_turn(question.request, watch)


class _Question:
    """One that is being asked. `held`, `source`: see `Occasion`. `is_shown`: the person has it before them, so that a
    completion notice can be about what they did."""

    def __init__(self, request: GopherAgentElicitationRequest, occasion: Occasion) -> None:
        self.request = request
        self.held = occasion.held
        self.source = occasion.source
        self.is_open = True
        self.is_shown = False
        self.completed = asyncio.Event()

    def shown(self) -> None:
        self.is_shown = True


async def _finished(wait: Callable[[], Any], question: _Question) -> bool:
    """Whether the person finished the page, as the handler or the server says; whoever says so first."""
    told = asyncio.ensure_future(outcome_of(wait))
    notice = asyncio.ensure_future(question.completed.wait())
    try:
        await asyncio.wait((told, notice), return_when=asyncio.FIRST_COMPLETED)
        return question.completed.is_set() or told.result() is not False
    finally:
        for each in (told, notice):
            each.cancel()
        await asyncio.gather(told, notice, return_exceptions=True)


async def _notify(complete: Callable[[str], Any], elicitation_id: str) -> None:
    try:
        await called(complete, elicitation_id)
    except Exception as error:
        log_failure(_log, "elicitation_complete_handler failed", error)
