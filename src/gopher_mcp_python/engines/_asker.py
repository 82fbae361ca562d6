"""Between the session layer, which asks on the loop's thread, and the `Elicitor`, which answers where people are."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..elicitation import GopherAgentElicitationRequest, GopherAgentElicitationResponse
from ..toolset.elicitation import IN_A_CALL, Occasion
from ._call import LoopCall
from ._pending import LoopPending

if TYPE_CHECKING:
    from ..elicitation_runtime import Elicitor

_ACTIONS = {1: "accept", 2: "decline", 3: "cancel"}


class LoopAsker:
    """The `Asker` of the embedded engine: hands questions to the call that is being served, or to a helper thread.

    Attributes:
        asked: whether anybody was asked anything since this was last set to False.
    """

    def __init__(self, elicitor: Elicitor) -> None:
        self._elicitor = elicitor
        self._call: LoopCall | None = None
        self.modes = elicitor.modes
        self.asked = False
        self._lock = threading.Lock()
        self._on_helpers: list[LoopPending] = []

    @contextmanager
    def serving(self, call: LoopCall) -> Iterator[None]:
        """While open, questions go to the thread that waits for `call`. One that a person has before them already, from
        before the call, stops its clock, too."""
        self._call = call
        for pending in self._open_on_helpers():
            call.clock.pause()
            pending.on_end(lambda _: call.clock.resume())
        try:
            yield
        finally:
            self._call = None

    async def ask(
        self, request: GopherAgentElicitationRequest, occasion: Occasion = IN_A_CALL
    ) -> GopherAgentElicitationResponse:
        self.asked = True
        elicitor = self._elicitor
        if elicitor.mode == "fixed" or (elicitor.mode == "inline" and request.mode != "form" and not occasion.held):
            return GopherAgentElicitationResponse(_ACTIONS[elicitor.inline_told(request)])
        pending = LoopPending(
            request,
            elicitor.timeout_ms,
            asyncio.get_running_loop(),
            outside_call=occasion.outside_call,
            held=occasion.held,
            source=occasion.source,
        )
        if elicitor.mode == "inline" or self._call is None or not self._call.offer(pending):
            self.hand_to_helper(pending)
        action = "cancel"
        try:
            response = await pending.response()
            action = response.action
            return response
        finally:
            elicitor.ended(pending, action)

    def hand_to_helper(self, pending: LoopPending) -> None:
        """For a question that no waiting thread can take: a thread of its own, in the current context."""
        with self._lock:
            self._on_helpers = [*(one for one in self._on_helpers if one.is_open()), pending]
        self._elicitor.answer_on_helper(pending)

    def _open_on_helpers(self) -> list[LoopPending]:
        with self._lock:
            return [one for one in self._on_helpers if one.is_open()]

    def completed(self, elicitation_id: str, source: object = None) -> None:
        self._elicitor.completed(elicitation_id, source)
