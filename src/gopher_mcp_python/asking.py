"""One question to a person, as events tell it: asked once, answered once, whoever learns first how it ended."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from .answers import ACTION_OF, Answer

if TYPE_CHECKING:
    from .elicitation import GopherAgentElicitationRequest
    from .elicitor import Pending
    from .events import GopherAgentEvent
    from .run_events import RunEvents

__all__ = ["Asking"]

_NEARLY = 0.06  # seconds; how late one look at a limit can be after another


class Asking:
    """From `elicitation_asked` to `elicitation_answered`. Any thread.

    Attributes:
        how: who decided, once that is known: "person" (the handler), "policy", "error" (the handler failed), "timeout".
        told: whether the answer was told.
    """

    def __init__(self, run: RunEvents, request: GopherAgentElicitationRequest, pending: Pending | None) -> None:
        self.how: str | None = None
        self.told = False
        self._action: str | None = None  # that of an answer which its asker has still to tell
        self._run, self._pending = run, pending
        self._about = {
            "server": request.server,
            "tool": request.tool or run.only_tool(),
            "mode": request.mode,
            "elicitation_id": request.elicitation_id,
        }
        left = None if pending is None else pending.remaining_ms()
        self._end = None if left is None else time.monotonic() + left / 1000
        self._id = run.ask(self)
        if run.heard:
            more = {"url": request.url} if request.mode == "url" else {"requested_schema": request.requested_schema}
            run.tell_asking("elicitation_asked", {**self._about, "message": request.message, **more}, self._id)

    def settle(self, pending: Pending, answer: Answer) -> bool:
        """Gives the answer to who waits for it and tells so, before anything that comes of it. Whether it counted."""
        with self._run.lock:
            counted = pending.answer(*answer)
            if counted and getattr(pending, "is_told_by_asker", False):
                self._action = ACTION_OF[answer[0]]
                return True
            event = self._enqueue(ACTION_OF[answer[0]] if counted else "cancel", self.how if counted else None)
        self._call(event)
        return counted

    def ended(self, action: str, *, how: str | None = None) -> None:
        """It came to this. Idempotent."""
        with self._run.lock:
            event = self._enqueue(action, how or self.how)
        self._call(event)

    def end_if_gone(self) -> None:
        """Its end, where nobody waits for the answer any more."""
        pending = self._pending
        if self._action is not None:
            self.ended(self._action)
        elif pending is not None and not pending.is_open():
            self.ended("cancel", how=self._gone())

    def _gone(self) -> str:
        ran_out = self._end is not None and time.monotonic() + _NEARLY >= self._end
        return "timeout" if ran_out else "withdrawn"

    def _enqueue(self, action: str, how: str | None) -> tuple[dict[str, Any], GopherAgentEvent | None] | None:
        if self.told:
            return None
        self.told, self._pending = True, None  # it is its handler's now, and freed with it
        data = {**self._about, "action": action, "how": how or self._gone()}
        return data, self._run.enqueue_asking("elicitation_answered", data, self._id)

    def _call(self, told: tuple[dict[str, Any], GopherAgentEvent | None] | None) -> None:
        if told is None:
            return
        data, event = told
        if event is not None:
            self._run.call(event)
        elif self._run.over:
            self._run.late("elicitation_answered", data, self._id)
