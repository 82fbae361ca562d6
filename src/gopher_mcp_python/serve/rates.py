"""How often somebody may ask: so many requests in a window of time, by a key."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

__all__ = ["Rate"]

_MOST_KEYS = 10_000


class Rate:
    """At most `count` in any `seconds`, for each key. Any thread.

    Args:
        clock: a monotonic clock in seconds.
    """

    def __init__(self, count: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._count, self._seconds, self._clock = count, seconds, clock
        self._times: dict[str, deque[float]] = {}
        self._lock = threading.Lock()

    def wait_for(self, key: str) -> float:
        """0.0 when it may be done now, which counts; otherwise the seconds until it may, which does not."""
        now = self._clock()
        with self._lock:
            times = self._times.setdefault(key, deque())
            while times and times[0] <= now - self._seconds:
                times.popleft()
            if len(times) >= self._count:
                return max(0.001, times[0] + self._seconds - now)
            times.append(now)
            if len(self._times) > _MOST_KEYS:
                self._forget(now)
            return 0.0

    def _forget(self, now: float) -> None:
        """Keys that have not asked for a whole window."""
        old = [key for key, times in self._times.items() if not times or times[-1] <= now - self._seconds]
        for key in old:
            del self._times[key]
