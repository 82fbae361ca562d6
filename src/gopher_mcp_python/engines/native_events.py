"""What the bridge calls for one native handle: answers, events, requests that nobody waits for."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..events import NATIVE_EVENT_KINDS
from .base import RunOutcome

if TYPE_CHECKING:
    from ..elicitor import Elicitor
    from ..ffi import _bridge
    from ..run_events import RunEvents

__all__ = ["Recorder"]


class Recorder:
    """Hears a handle's events and keeps what the run's outcome needs. It never refers to the agent or the handle: the
    bridge holds it until the last callback has left, and a cycle would keep both for ever.

    Attributes:
        tool_failed: whether a tool of the run ended in an error, its own or its server's refusal.
    """

    def __init__(self, elicitor: Elicitor) -> None:
        self.inline_answer: Callable[[_bridge.ElicitationRequest], int] = elicitor.inline_told
        self._elicitor = elicitor
        self._run: RunEvents | None = None
        self._called: list[str] = []
        self._last_text: str | None = None
        self.tool_failed = False

    def begin(self) -> None:
        """A run begins, in its caller's context: what is kept is of this run alone."""
        self._run = self._elicitor.events.turn()
        self._called, self._last_text, self.tool_failed = [], None, False

    def event(self, kind: int, run_id: int, iteration: int, json_text: str | None) -> None:
        """On a thread of the bridge or of the library's own, in the context of who called run()."""
        if not 1 <= kind <= len(NATIVE_EVENT_KINDS):
            return
        name = NATIVE_EVENT_KINDS[kind - 1]
        heard = self._run is not None and self._run.heard
        if not heard and name not in ("tool_dispatched", "tool_result"):
            return
        data = _parsed(json_text)
        if name == "tool_dispatched":
            self._called.append(str(data.get("tool", "")))
        elif name == "tool_result":
            self._last_text = _text_of(data.get("result"))
            self.tool_failed = self.tool_failed or data.get("is_error") is True
        self.tell(name, run_id, iteration, data)

    def tell(self, name: str, run_id: int, iteration: int, data: dict[str, Any]) -> None:
        if self._run is not None:
            self._run.tell(name, run_id, iteration, data)

    def unattended(self, pending: _bridge.PendingRequest) -> None:
        """A request while nobody waits for a call of this agent (the server's GET stream, between runs)."""
        self._elicitor.answer_on_helper(pending)

    def result(self, outcome: _bridge.Outcome, data: dict[str, Any] | None, *, elicited: bool) -> RunOutcome:
        used = (data or {}).get("tokens_used")
        tokens = used.get("total", 0) if isinstance(used, dict) else 0
        return RunOutcome(
            outcome.text or "",
            max(1, outcome.iterations),
            tokens if isinstance(tokens, int) else 0,
            self._elicitor.take_cause(),
            tuple(self._called),
            self._last_text,
            elicited,
        )


def _parsed(json_text: str | None) -> dict[str, Any]:
    try:
        data = json.loads(json_text or "{}")
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


def _text_of(result: object) -> str | None:
    """The text of a tool's result as the event tells it: {"type": "text", "text": ...}, or a list of such."""
    if isinstance(result, list) and len(result) == 1:
        result = result[0]
    if isinstance(result, dict):
        result = result.get("text")
    return result if isinstance(result, str) else None
