"""The person behind a store: what a server asks is stored, and the answer is waited for, wherever it is given."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, Union

from .. import stopping
from ..copying import for_handler
from ..elicitation import GopherAgentElicitationRequest
from ..errors import AgentError
from ..store.errors import SealError, StoreError
from ..store.model import LONGEST_TIMEOUT_S, ElicitationStatus, NewElicitation, StoredElicitation, mcp_form, mcp_url
from ..weburl import is_unsafe
from .prompts import CANCELLED, DECLINED, PersonAnswer
from .watch import Watch

if TYPE_CHECKING:
    from ..store.core import Store

__all__ = ["Caller", "Patience", "StorePrompt", "question_of"]

Caller = Union[str, Callable[[GopherAgentElicitationRequest], str]]
_log = logging.getLogger("gopher_mcp_python.elicitation")
_BY = "agent"  # who ends a question that nobody needs any more, for the audit
_MARGIN_S = 1.0  # by which a question ends before the engine's limit: what the store takes should still arrive
_PATIENCE_S = 15.0  # with a store that fails while somebody thinks: a restart of its database is over by then
PAUSE_S = 0.5


class StorePrompt:
    """A `PersonPrompt`: the person is wherever they answer what is stored for their caller."""

    name = "store"
    outstays = True  # a store that can't be reached takes seconds to say so

    def __init__(
        self,
        store: Store,
        caller: Caller,
        timeout_s: float | None,
        on_created: Callable[[StoredElicitation], object] | None,
    ) -> None:
        self.store = store
        self._caller = caller
        self._timeout_s = float(LONGEST_TIMEOUT_S if timeout_s is None else timeout_s)
        self._on_created = on_created

    def unusable(self) -> str | None:
        return None

    def ask(self, request: GopherAgentElicitationRequest, watch: Watch) -> PersonAnswer:
        """See `PersonPrompt`. Raises also StoreError, RateLimited, and what `caller` and `on_created` raise."""
        new = question_of(request)
        if new is None:
            return DECLINED
        if not watch.wanted():
            return CANCELLED
        watch.on_shown()  # the page may be finished, and called complete, as soon as somebody can see it
        one = self.create(request, new, watch.remaining())
        try:
            self.tell(one)
            return self._wait(request, one, watch)
        except BaseException:
            self.end(one)
            raise

    def create(
        self, request: GopherAgentElicitationRequest, new: NewElicitation, remaining: float | None = None
    ) -> StoredElicitation:
        """Stores the question, for no longer than the `remaining` seconds."""
        caller = self._caller if isinstance(self._caller, str) else self._caller(for_handler(request))
        life = self._timeout_s
        if remaining is not None:
            life = min(life, remaining - min(_MARGIN_S, remaining / 10))
        return self.store.create(caller, new, timeout_s=max(1.0, life))

    def tell(self, one: StoredElicitation) -> None:
        """Says that somebody can answer it now."""
        if self._on_created is not None:
            self._on_created(one)

    def end(self, one: StoredElicitation) -> ElicitationStatus | None:
        """Cancels it, so that nobody answers in vain. How it has ended; None where the store can't be used: then it
        expires by itself."""
        try:
            return self.store.cancel(one.caller, one.id, by=_BY).status
        except AgentError as error:
            _note("a question that nobody needs any more is left to expire", error)
            return None

    def answer(
        self, request: GopherAgentElicitationRequest, one: StoredElicitation, status: ElicitationStatus | None
    ) -> PersonAnswer:
        """What came of it. Raises ValueError for an answer that is none (FormContentError: not to this form)."""
        if status != ElicitationStatus.RESPONDED:
            return CANCELLED
        return _answer_to(request, self.store.result(one.caller, one.id))

    def _wait(self, request: GopherAgentElicitationRequest, one: StoredElicitation, watch: Watch) -> PersonAnswer:
        def wanted() -> bool:
            return watch.wanted() and not watch.is_finished()

        patience = Patience(self.store)
        while True:
            patience.begin()
            try:
                now = self.store.wait(one.caller, one.id, still_wanted=wanted)
                if now.status == ElicitationStatus.EXPIRED:
                    watch.deadline = monotonic()  # the time is up, for whoever tells how it ended
                return self.answer(request, one, now.status) if now.ended else self._unanswered(request, one, watch)
            except StoreError as error:
                patience.spend(error)
                if not wanted() or stopping.called_off():
                    raise
            _pause()

    def _unanswered(self, request: GopherAgentElicitationRequest, one: StoredElicitation, watch: Watch) -> PersonAnswer:
        """Nobody waits for the answer any more, or the server knows that they have finished the page."""
        if request.mode == "form" or not watch.is_finished():
            return self.answer(request, one, self.end(one))  # which may have come just before
        with suppress(AgentError):  # recorded as theirs: they have been there, and may still say so themselves
            self.store.respond(one.caller, one.id, {"action": "accept"}, by=_BY)
        return PersonAnswer("accept")


class Patience:
    """With a store that fails while somebody thinks."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._began = monotonic()
        self._failing_since: float | None = None

    def begin(self) -> None:
        """It is tried (again)."""
        self._began = monotonic()

    def spend(self, error: StoreError) -> None:
        """Raises what it is, within its `except`, when it is not worth another try."""
        self._store._usable()  # raises when it is closed, which it stays
        now = monotonic()
        if self._failing_since is None or now - self._began > _PATIENCE_S:  # it worked meanwhile: failures take less
            self._failing_since = now
        if isinstance(error, SealError) or now - self._failing_since >= _PATIENCE_S:
            raise error
        _note("the store fails, it is tried again", error)


def question_of(request: GopherAgentElicitationRequest) -> NewElicitation | None:
    """What is stored; None for what nobody should be shown, as in every other place: a form that can't be read, a page
    that is unsafe to open. Raises ValueError for another mode."""
    from ..forms import FormSchemaError

    if request.mode == "url" and is_unsafe(request.url):
        return None
    try:
        return mcp_form(request) if request.mode == "form" else mcp_url(request)
    except FormSchemaError as error:
        _note("a form that can't be read is declined", error)
        return None


def _answer_to(request: GopherAgentElicitationRequest, given: Any) -> PersonAnswer:
    from ..forms import read_form

    action = given.get("action") if isinstance(given, Mapping) else None
    if action == "decline":
        return DECLINED
    if action != "accept":
        raise ValueError('the stored answer says neither "accept" nor "decline"')
    if request.mode != "form":
        return PersonAnswer("accept")
    content = given.get("content")
    if not isinstance(content, Mapping) or request.requested_schema is None:
        raise ValueError("the stored answer to a form has no content")
    return PersonAnswer("accept", read_form(request.requested_schema).validate(content))


def _pause() -> None:
    stopped = threading.Event()
    with stopping.waking(stopped.set):
        stopped.wait(PAUSE_S)


def _note(what: str, error: BaseException) -> None:
    with suppress(Exception):  # a filter of the program's may raise
        _log.debug("%s (%s)", what, type(error).__name__)
