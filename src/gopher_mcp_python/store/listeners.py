"""Who wants to hear of changes in one backend of this process."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable

from ..redaction import log_failure

__all__ = ["Listeners"]

_log = logging.getLogger("gopher_mcp_python.store")
Callback = Callable[["str | None"], None]


class Listeners:
    """Any thread may add, end and tell."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callbacks: dict[object, Callback] = {}

    def __bool__(self) -> bool:
        return bool(self._callbacks)

    def add(self, callback: Callback) -> Callable[[], None]:
        """Returns what ends it: idempotent, never waits for a callback."""
        key = object()
        with self._lock:
            self._callbacks[key] = callback

        def end() -> None:
            with self._lock:
                self._callbacks.pop(key, None)

        return end

    def tell(self, ids: Iterable[str | None]) -> None:
        """Calls everybody with each id, with no lock held."""
        for id in ids:
            with self._lock:
                callbacks = list(self._callbacks.values())
            for callback in callbacks:
                try:
                    callback(id)
                except Exception as error:
                    log_failure(_log, "a listener of the store failed", error)
