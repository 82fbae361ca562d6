"""A question of a server on its way to a person: asked on the loop's thread, answered on another."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from ..elicitation import GopherAgentElicitationRequest, GopherAgentElicitationResponse

_ACTIONS = {1: "accept", 2: "decline", 3: "cancel"}  # the vendor ABI's numbers, which both engines understand


class LoopPending:
    """The same methods as `_bridge.PendingRequest`. Exactly one answer counts: the first, be it a person's or an end.

    Args:
        request: what is asked.
        limit_ms: after so many milliseconds the answer is "cancel"; 0 is no limit. Enforced by the loop.
        outside_call: it came on the session's own stream and belongs to no call.
        held: an accepted page is to be finished before the answer is given.
        source: the session that it came on.
    """

    is_told_by_asker = True  # who awaits `response` tells what it came to, before anything that comes of it

    def __init__(
        self,
        request: GopherAgentElicitationRequest,
        limit_ms: int,
        loop: asyncio.AbstractEventLoop,
        *,
        outside_call: bool = False,
        held: bool = False,
        source: object = None,
    ) -> None:
        self.request = request
        self.outside_call = outside_call
        self.held = held
        self.source = source
        self._loop = loop
        self._lock = threading.RLock()
        self._answer: asyncio.Future[GopherAgentElicitationResponse] = loop.create_future()
        self._is_open = True
        self._on_end: Callable[[LoopPending], None] | None = None
        self._deadline = time.monotonic() + limit_ms / 1000 if limit_ms > 0 else None
        self._timer = loop.call_later(limit_ms / 1000, self.close) if limit_ms > 0 else None

    def answer(self, action: int | str, content: Mapping[str, Any] | None = None) -> bool:
        """True when this answer was the one that counted. Any thread. Raises ValueError for an unknown action."""
        name = _ACTIONS.get(action, "") if isinstance(action, int) else action
        return self._end(GopherAgentElicitationResponse(name, content))

    def close(self) -> None:
        """Nobody needs the answer any more: it is "cancel". Any thread; nothing happens when it was answered."""
        self._end(GopherAgentElicitationResponse("cancel"))

    def is_open(self) -> bool:
        return self._is_open

    def remaining_ms(self) -> int | None:
        """Milliseconds left, 0 when it is over; None without a limit."""
        if not self._is_open:
            return 0
        return None if self._deadline is None else max(0, int((self._deadline - time.monotonic()) * 1000))

    def on_end(self, callback: Callable[[LoopPending], None]) -> None:
        """Called once, from whatever thread ends it; at once when it is over already."""
        with self._lock:
            if self._is_open:
                self._on_end = callback
                return
        callback(self)

    async def response(self) -> GopherAgentElicitationResponse:
        """Waits for the answer on the loop. A cancellation closes it."""
        try:
            return await self._answer
        finally:
            self.close()
            if self._timer is not None:
                self._timer.cancel()

    def _end(self, response: GopherAgentElicitationResponse) -> bool:
        with self._lock:
            if not self._is_open:
                return False
            self._is_open = False
            callback, self._on_end = self._on_end, None
        try:
            self._loop.call_soon_threadsafe(self._resolve, response)
        except RuntimeError:  # the loop has ended
            pass
        if callback is not None:
            callback(self)
        return True

    def _resolve(self, response: GopherAgentElicitationResponse) -> None:
        if not self._answer.done():
            self._answer.set_result(response)
