"""What happens during a run, told to `GopherAgentCreateOptions(on_event=...)`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["EVENT_KINDS", "EventHandler", "GopherAgentEvent"]

#: The kinds of both engines, in the order in which the vendor's library numbers them (1 to 7).
EVENT_KINDS = (
    "run_completed",
    "llm_request",
    "llm_response",
    "tool_dispatched",
    "tool_result",
    "iteration_start",
    "iteration_end",
)


@dataclass(frozen=True, slots=True)
class GopherAgentEvent:
    """One event of a run. `data` is what the engine says about it and may hold queries, arguments and results: it is
    handed to the program's own callback only, and its repr is left out here."""

    kind: str
    run_id: int
    iteration: int
    data: dict[str, Any] = field(default_factory=dict, repr=False)


EventHandler = Callable[[GopherAgentEvent], object]
