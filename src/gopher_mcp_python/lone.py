"""A request of the package's own, which no server waits for and no engine times."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from .answers import CANCEL, CODE_OF
from .elicitation import GopherAgentElicitationRequest
from .handlers.watch import deadline_after

__all__ = ["LoneRequest"]


class LoneRequest:
    """A request that nobody else waits for."""

    def __init__(
        self, request: GopherAgentElicitationRequest, timeout_ms: int, wanted: Callable[[], bool] = lambda: True
    ) -> None:
        self.request = request
        self._wanted = wanted
        self.code = CANCEL
        self.content: Mapping[str, Any] | None = None
        self._deadline = deadline_after(timeout_ms)
        self._done = threading.Event()
        self._lock = threading.Lock()  # between an answer and the end of the wait for it

    def answer(self, action: int | str, content: Mapping[str, Any] | None = None) -> bool:
        with self._lock:
            if not self.is_open():
                return False
            self.code = CODE_OF[action] if isinstance(action, str) else action
            self.content = content
            self._done.set()
            return True

    def is_open(self) -> bool:
        return not self._done.is_set() and self._wanted() and self.remaining_ms() != 0

    def remaining_ms(self) -> int | None:
        if self._deadline is None:
            return None
        return max(0, round((self._deadline - time.monotonic()) * 1000))

    def wait(self) -> None:
        """Until it is answered, its time is up or it is not wanted any more."""
        while self.is_open():
            self._done.wait(0.05)
        with self._lock:
            self._done.set()  # what comes now comes too late
