"""What happens during a run, told to `GopherAgentCreateOptions(on_event=...)` and to `GopherAgent.run_stream`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["EVENT_KINDS", "NATIVE_EVENT_KINDS", "EventHandler", "GopherAgentEvent"]

#: The kinds that the vendor's library has, in the order in which it numbers them (1 to 7).
NATIVE_EVENT_KINDS = (
    "run_completed",
    "llm_request",
    "llm_response",
    "tool_dispatched",
    "tool_result",
    "iteration_start",
    "iteration_end",
)

#: The kinds of both engines.
EVENT_KINDS = (*NATIVE_EVENT_KINDS, "elicitation_asked", "elicitation_answered")


@dataclass(frozen=True, slots=True)
class GopherAgentEvent:
    """One event of a run; docs/events.md lists the kinds with their data.

    Attributes:
        kind: one of `EVENT_KINDS`.
        run_id: the engine's number for the run; 0 where there is none (yet).
        iteration: the model's turn, from 1; 0 before the first.
        data: what is told about it, a copy of your own to change. It may hold queries, arguments, results and URLs: it
            is handed to the program's own callback or iterator only, and the event's repr leaves it out.
        sequence: 1, 2, 3 ... within a run, in the order in which things happened; 0 for what belongs to no run.
        seconds: since the run began, on the monotonic clock.
        call_id: the same for a tool_dispatched and its tool_result, and for an elicitation_asked and its
            elicitation_answered; None for other kinds.
    """

    kind: str
    run_id: int
    iteration: int
    data: dict[str, Any] = field(default_factory=dict, repr=False, hash=False)
    sequence: int = 0
    seconds: float = field(default=0.0, compare=False)
    call_id: str | None = None


EventHandler = Callable[[GopherAgentEvent], object]
