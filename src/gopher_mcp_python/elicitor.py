"""One agent's way from a server's request to an answer: which handler runs, for how long, what its failures mean."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import copy_context
from typing import Any, Literal, Protocol

from . import stopping
from .answered import AnsweredOnce, key_of
from .answers import ACCEPT, ACTION_OF, CANCEL, CODE_OF, DECLINE, Answer, answer_of, wait_of
from .asking import Asking
from .copying import for_handler
from .elicitation import (
    GopherAgentElicitationOptions,
    GopherAgentElicitationRequest,
    GopherAgentElicitationResponse,
)
from .ffi._bridge import InlineAnswer
from .handlers.person import Person
from .handlers.watch import Watch, deadline_after
from .lone import LoneRequest
from .redaction import log_failure, redact_url
from .run_events import AgentEvents
from .weburl import is_unsafe

__all__ = ["Elicitor", "Pending", "ask_now", "fixed_action_of"]

# Used with suppress: a filter of the program's may raise, and a server must get its answer all the same.
_log = logging.getLogger("gopher_mcp_python.elicitation")
_Page = tuple[object, str]  # the session that asked, and its elicitation id


class Pending(Protocol):
    """A request whose server waits; see `_bridge.PendingRequest`."""

    @property
    def request(self) -> GopherAgentElicitationRequest: ...

    def answer(self, action: int | str, content: Mapping[str, Any] | None = None) -> bool: ...

    def is_open(self) -> bool: ...

    def remaining_ms(self) -> int | None: ...


class Elicitor:
    """Answers the elicitations of one agent. Any thread may use it.

    Attributes:
        enabled: False: nothing is declared to servers and nothing is answered.
        mode: "fixed" (always `fixed_action`), "inline" (a handler that can't block, called through `inline_answer`) or
            "handed_over" (`answer`).
        timeout_ms: the caller's limit for the whole handling (in milliseconds); 0: none of ours.
        needs_helper: the handler can block and has a limit, so it runs on a thread that can be left behind.
        modes: what may be declared to servers.
        explicit: whether the caller gave elicitation options.
        inline_answer: takes a request, returns 1, 2 or 3; never raises. Made once, since it is on the fastest path.
        events: tells what is asked and answered.
    """

    inline_answer: Callable[[GopherAgentElicitationRequest], int]

    def __init__(self, options: GopherAgentElicitationOptions | None = None) -> None:
        """Raises ValueError when the options were changed to something invalid since they were built."""
        options = _checked_again(options)
        handler = options.handler
        self.enabled = options.enabled
        self.explicit = options.explicit
        self.timeout_ms: int = options.timeout_ms or 0
        self.fixed_action: Literal["cancel", "decline"] | None = fixed_action_of(options)
        self._custom: Callable[[Any], object] | None = handler if callable(handler) else None
        self._person = None if self.fixed_action is not None else Person.behind(handler, options.open_browser)
        self.mode: Literal["fixed", "inline", "handed_over"] = self._mode()
        outstays = self._person is None or self._person.outstays
        self.needs_helper = self.mode == "handed_over" and outstays and self.timeout_ms > 0
        self.modes: frozenset[str] = _modes(options, fixed=self.fixed_action is not None)
        self._lock = threading.Lock()
        self._cause: BaseException | None = None
        self._interrupt: BaseException | None = None
        self._answered = AnsweredOnce()
        self.events = AgentEvents()
        self._asking: dict[int, Asking] = {}  # by the id of the pending request: those that a handler has
        self._runs = 0  # under way
        self._prompted: list[_Page] = []  # those that a person has before them
        self._finished: set[_Page] = set()  # those of them that the server has called complete
        self.inline_answer = self._make_inline()

    # -- for engines -------------------------------------------------------------------------------------------------

    def answer(self, pending: Pending) -> None:
        """Runs the handler and gives its answer. Returns when that is done or when nobody waits for it any more.

        KeyboardInterrupt and SystemExit of the handler answer cancel and are raised again; nothing else is raised.
        """
        request = pending.request
        # Before a run there is no call; within one, only the embedded engine knows what belongs to none.
        outside = self._runs == 0 or bool(getattr(pending, "outside_call", False))
        with self._answered.turn(key_of(request), pending.is_open, outside=outside) as record:
            if record.known is None:
                with self._asked(pending) as asking:
                    record.decided = self._decide(pending, asking)
                    counted = asking.settle(pending, record.decided)
                record.keep = counted
            else:
                counted = pending.answer(*record.known)
        with suppress(Exception):
            _log.debug(
                "elicitation answered: %s", ACTION_OF.get((record.known or record.decided)[0]) if counted else "late"
            )

    def answer_on_helper(self, pending: Pending) -> threading.Thread:
        """`answer` on a thread of its own, in the caller's context. Interrupts are kept for `raise_interrupt`."""
        context = copy_context()
        thread = threading.Thread(
            target=context.run, args=(self._answer_quietly, pending), name="gopher-mcp-elicitation", daemon=True
        )
        thread.start()
        return thread

    def inline_told(self, request: GopherAgentElicitationRequest) -> int:
        """`inline_answer`, with its events. May raise what no `Exception` is, from an event's callback."""
        if not self.events.heard:
            return self.inline_answer(request)
        asking = self.events.asking(request, None)
        code = self.inline_answer(request)
        asking.ended(ACTION_OF[code], how="policy")
        return code

    def ended(self, pending: Pending, action: str = "cancel") -> None:
        """For engines: this request, which a handler may have, has its answer. Idempotent."""
        asking = self._asking.pop(id(pending), None)
        if asking is not None:
            asking.ended(action)

    def gone(self, pending: Pending) -> None:
        """For engines: nobody waits for this one any more, though a handler still has it. Idempotent."""
        asking = None if getattr(pending, "is_told_by_asker", False) else self._asking.get(id(pending))
        if asking is not None:
            asking.end_if_gone()

    def completed(self, elicitation_id: str, source: object = None) -> None:
        """The server says that this sign-in is complete: its prompt ends with accept, without Enter. Unknown and
        finished ids are ignored."""
        with self._lock:
            if (source, elicitation_id) in self._prompted:
                self._finished.add((source, elicitation_id))

    @contextmanager
    def during_run(self) -> Iterator[None]:
        """A run of the agent, from waiting for its turn to its end. When one begins while no other is under way, what
        was declined or cancelled in an earlier run may be asked again; what was accepted may not, nor what was refused
        since that run ended (while the agent was made, on the session's own stream)."""
        with self._lock:
            if self._runs == 0:
                self._cause = None
                self._answered.begin_run()
            self._runs += 1
        try:
            yield
        finally:
            with self._lock:  # the next run begins after the end of this one
                self._runs -= 1
                if self._runs == 0:
                    self._answered.end_run()

    def check_thread(self) -> None:
        """For a run that begins on this thread. Raises AgentError where nobody could be asked because of that."""
        if self._person is not None:
            self._person.check_thread()

    def take_cause(self) -> BaseException | None:
        """The last handler's exception since the last call, for the run's result."""
        with self._lock:
            cause, self._cause = self._cause, None
        return cause

    def raise_interrupt(self) -> None:
        """Raises the KeyboardInterrupt or SystemExit of a handler that ran on another thread, once."""
        with self._lock:
            interrupt, self._interrupt = self._interrupt, None
        if interrupt is not None:
            raise interrupt

    # -- deciding ----------------------------------------------------------------------------------------------------

    def _mode(self) -> Literal["fixed", "inline", "handed_over"]:
        if self.fixed_action is not None:
            return "fixed"
        return "inline" if getattr(self._custom, "gopher_non_blocking", False) else "handed_over"

    @contextmanager
    def _asked(self, pending: Pending) -> Iterator[Asking]:
        """A handler has it from now on. KeyboardInterrupt and SystemExit answer cancel and pass."""
        asking = self.events.asking(pending.request, pending)
        self._asking[id(pending)] = asking
        try:
            yield asking
        except (KeyboardInterrupt, SystemExit):
            pending.answer(CANCEL)
            asking.ended("cancel", how="withdrawn")
            raise
        finally:
            if asking.told:  # else the asker tells when it goes on
                self._asking.pop(id(pending), None)

    def _decide(self, pending: Pending, asking: Asking) -> Answer:
        request = pending.request
        if _log.isEnabledFor(logging.DEBUG):
            with suppress(Exception):
                _log.debug("elicitation request: %s", _summary(request))
        asking.how = "policy"
        if self.fixed_action is not None:
            return CODE_OF[self.fixed_action], None
        if request.mode in ("url", "form") and request.mode not in self.modes:
            return DECLINE, None
        if self._custom is not None and request.mode == "url" and is_unsafe(request.url):
            return DECLINE, None  # the default handler refuses it itself, and says so
        asking.how = None
        if self._person is not None:
            answer = self._ask_person(self._person, pending, asking)
        else:
            assert self._custom is not None
            held = bool(getattr(pending, "held", False))
            answer = self._run_handler(self._custom, request, asking, held=held)
        asking.how = asking.how or ("policy" if self.mode == "inline" else "person")
        return answer

    def _ask_person(self, person: Person, pending: Pending, asking: Asking) -> Answer:
        request, identity = pending.request, pending.request.elicitation_id
        page = (getattr(pending, "source", None), identity) if identity and request.mode != "form" else None
        watch = Watch(
            is_open=pending.is_open,
            is_finished=lambda: page in self._finished,
            engine_limit_ms=pending.remaining_ms,
            deadline=deadline_after(self.timeout_ms),
            limit_ms=self.timeout_ms or None,
            on_shown=lambda: self._prompt_shown(page),
        )
        try:
            answer, unasked = person.ask(request, watch)
            ran_out = answer.action == "cancel" and watch.ran_out()
            asking.how = "policy" if unasked else "timeout" if ran_out else "person"
            return CODE_OF[answer.action], answer.content
        except Exception as error:  # a broken stream, a full disk behind stderr: the server must get its answer
            asking.how = "error"
            self._failed(error)
            return CANCEL, None
        finally:
            self._prompt_over(page)

    def _prompt_shown(self, page: _Page | None) -> None:
        """From now on a completion notice can end the prompt; one that came before the page was known ends nothing."""
        if page is not None:
            with self._lock:
                self._prompted.append(page)

    def _prompt_over(self, page: _Page | None) -> None:
        if page is None:
            return
        with self._lock:
            if page in self._prompted:
                self._prompted.remove(page)
            if page not in self._prompted:
                self._finished.discard(page)

    def _run_handler(
        self, handler: Callable[[Any], object], request: GopherAgentElicitationRequest, asking: Asking, *, held: bool
    ) -> Answer:
        try:
            result = handler(for_handler(request))
            answer = answer_of(result, request)
            wait = wait_of(result) if held and answer[0] == ACCEPT else None
            return (CANCEL, None) if wait is not None and wait() is False else answer
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # also what is no Exception (a cancelled task's): the server must get its answer
            asking.how = "error"
            self._failed(error)
            return CANCEL, None

    def _failed(self, error: BaseException) -> None:
        """Keeps a handler's exception for the run's result and logs its kind, with what is recognised as secret cut.
        Not where the call was called off: what a handler raises then, it raises of that, and no result is left."""
        if stopping.called_off():
            return
        with self._lock:
            self._cause = error
        log_failure(_log, "The elicitation handler failed, the request was cancelled", error)

    def _answer_quietly(self, pending: Pending) -> None:
        try:
            self.answer(pending)
        except (KeyboardInterrupt, SystemExit) as interrupt:
            self._keep_interrupt(interrupt)

    def _keep_interrupt(self, interrupt: BaseException) -> None:
        with self._lock:
            self._interrupt = interrupt

    # -- the fast path -----------------------------------------------------------------------------------------------

    def _make_inline(self) -> Callable[[GopherAgentElicitationRequest], int]:
        if self.fixed_action is not None:
            code = CODE_OF[self.fixed_action]
            return lambda request: code
        if self._custom is None or self.mode != "inline":
            return self._inline_slowly
        return InlineAnswer(self._custom, self._inline_result, GopherAgentElicitationResponse)

    def _inline_slowly(self, request: GopherAgentElicitationRequest) -> int:
        """For a caller that has no pending request: the same rules, one request, an action code."""
        lone = LoneRequest(request, self.timeout_ms)
        self._answer_quietly(lone)
        return lone.code

    def _inline_result(self, result: object, error: BaseException | None, request: Any) -> int:
        """What the fast path could not settle: an odd result or an exception."""
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            self._keep_interrupt(error)
            return CANCEL
        try:
            if error is not None:
                raise error
            return answer_of(result, request)[0]
        except BaseException as failure:
            self._failed(failure)
            return CANCEL


def ask_now(elicitor: Elicitor, request: GopherAgentElicitationRequest, wanted: Callable[[], bool]) -> str:
    """Puts a request of our own (not a server's) to the agent's handler, by the same rules, while it is `wanted` and
    not called off. Returns the action word."""
    stop = stopping.CURRENT.get()
    lone = LoneRequest(request, elicitor.timeout_ms, lambda: wanted() and not (stop is not None and stop.is_set()))
    if elicitor.needs_helper or stop is not None:
        elicitor.answer_on_helper(lone)
        lone.wait()
        elicitor.raise_interrupt()
    else:
        elicitor.answer(lone)
    return ACTION_OF[lone.code]


def _checked_again(options: GopherAgentElicitationOptions | None) -> GopherAgentElicitationOptions:
    if options is None:
        return GopherAgentElicitationOptions()
    return GopherAgentElicitationOptions(
        options.handler, options.timeout_ms, options.open_browser, modes=options.modes, enabled=options.enabled
    )


def fixed_action_of(options: GopherAgentElicitationOptions) -> Literal["cancel", "decline"] | None:
    if not options.enabled or options.handler == "cancel":
        return "cancel"
    return "decline" if options.handler == "decline" else None


def _modes(options: GopherAgentElicitationOptions, *, fixed: bool) -> frozenset[str]:
    """What is declared: for a person at the terminal and a handler of your own everything, unless you name less; for an
    answer that is always the same, pages only."""
    if options.modes is not None:
        return options.modes
    return frozenset(("url",)) if fixed else frozenset(("url", "form"))


def _summary(request: GopherAgentElicitationRequest) -> dict[str, object]:
    """A request for the debug log: nothing that a person or a server typed, only what kind of thing it is."""
    return {
        "mode": request.mode if request.mode in ("url", "form", "") else "other",
        "has_id": bool(request.elicitation_id),
        "url": redact_url(request.url) if request.url else None,
    }
