"""How many prompts of one server may wait, and how many may come in a time."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Hashable
from math import isfinite
from typing import Any

__all__ = ["MAX_SERVERS", "Gate"]

MAX_SERVERS = 1000  # that are kept count of at the same time
MAX_COUNT = 10_000


class Gate:
    """Counts the prompts of each server. Any thread may use it.

    Args:
        max_waiting: prompts of one server at the same time; None: no bound.
        rate: (prompts, seconds) of one server; None: no bound.

    Raises ValueError when a bound is none.
    """

    def __init__(self, max_waiting: int | None, rate: tuple[int, float] | None) -> None:
        self._max_waiting = _checked_count(max_waiting, "max_waiting")
        self._count, self._seconds = _checked_rate(rate)
        self._lock = threading.Lock()
        self._servers: OrderedDict[Hashable, _Server] = OrderedDict()  # the longest unused first

    def look(self, key: Hashable) -> str | None:
        """Why no prompt of this server may be shown now; None when one may."""
        with self._lock:
            known = self._servers.get(key)
            return self._refusal(known, time.monotonic()) if known else self._full(time.monotonic())

    def enter(self, key: Hashable) -> str | None:
        """Like `look`; when one may, it waits from now on, until `leave`."""
        with self._lock:
            now = time.monotonic()
            known = self._servers.get(key)
            refusal = self._refusal(known, now) if known else self._full(now)
            if refusal is not None:
                return refusal
            if known is None:
                self._make_room(now)
                known = self._servers[key] = _Server()
            self._servers.move_to_end(key)
            known.waiting += 1
            if self._count:
                known.shown.append(now)
            return None

    def leave(self, key: Hashable) -> None:
        """A prompt of this server is over."""
        with self._lock:
            self._servers[key].waiting -= 1

    def _refusal(self, server: _Server, now: float) -> str | None:
        if self._max_waiting is not None and server.waiting >= self._max_waiting:
            return f"the bound of {self._max_waiting} waiting prompts of one server"
        self._forget_old(server, now)
        if self._count and len(server.shown) >= self._count:
            return f"the limit of {self._count} prompts of one server in {self._seconds:g} s"
        return None

    def _full(self, now: float) -> str | None:
        if len(self._servers) < MAX_SERVERS or any(self._is_idle(one, now) for one in self._servers.values()):
            return None
        return f"the bound of {MAX_SERVERS} servers that ask at the same time"

    def _make_room(self, now: float) -> None:
        if len(self._servers) >= MAX_SERVERS:
            del self._servers[next(key for key, one in self._servers.items() if self._is_idle(one, now))]

    def _is_idle(self, server: _Server, now: float) -> bool:
        self._forget_old(server, now)
        return not server.waiting and not server.shown

    def _forget_old(self, server: _Server, now: float) -> None:
        while server.shown and server.shown[0] <= now - self._seconds:
            server.shown.popleft()


class _Server:
    """`shown`: when its prompts of the last seconds began."""

    __slots__ = ("shown", "waiting")

    def __init__(self) -> None:
        self.waiting = 0
        self.shown: deque[float] = deque()


def _checked_count(value: Any, name: str) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_COUNT:
        raise ValueError(
            f'{name} must be a whole number from 1 to {MAX_COUNT}, or None; to ask nobody: default="decline"'
        )
    return value


def _checked_rate(rate: Any) -> tuple[int, float]:
    if rate is None:
        return 0, 0.0
    if not isinstance(rate, (tuple, list)) or len(rate) != 2:
        raise ValueError("rate must be (prompts, seconds), as in (10, 60.0), or None")
    count, seconds = rate
    known = isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and isfinite(seconds)
    if not known or seconds <= 0:
        raise ValueError("the seconds of rate must be a number above 0")
    return _checked_count(count, "the count of rate") or 0, float(seconds)
