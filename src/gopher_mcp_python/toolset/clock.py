"""A clock that stands still while a person is asked.

MCP servers may ask their user in the middle of a call. The time that a person takes says nothing about the server, so
it counts against no limit (DESIGN: "a person's time never counts against a run's or a tool's timeout").
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class PausableClock:
    """Counts down a budget of seconds; pauses nest, and the clock runs again when the last one has ended.

    Thread-safe: an event loop pauses it, another thread reads it.

    Args:
        seconds: the budget in seconds; None is no limit.
    """

    def __init__(self, seconds: float | None) -> None:
        self._lock = threading.RLock()  # a signal handler may end what its own thread is looking at
        self._budget = seconds
        self._since: float | None = None
        self._pauses = 0
        self._paused_at = 0.0
        self._spent = 0.0
        self._paused_seconds = 0.0
        self._on_change: Callable[[], None] | None = None
        self._stopped = False

    def start(self) -> None:
        with self._lock:
            if self._since is None and not self._pauses:
                self._since = time.monotonic()

    def set_budget(self, seconds: float | None) -> None:
        with self._lock:
            self._budget = seconds

    def on_change(self, callback: Callable[[], None] | None) -> None:
        """Called (with no lock held) after each pause and resume, to rearm a timer."""
        self._on_change = callback

    def stop(self) -> None:
        """No time is left from now on, whatever the budget was and whoever is asked: there is nothing to wait for."""
        self._stopped = True
        self._changed()

    def pause(self) -> None:
        with self._lock:
            self._pauses += 1
            if self._pauses == 1:
                self._paused_at = time.monotonic()
                if self._since is not None:
                    self._spent += self._paused_at - self._since
                    self._since = None
        self._changed()

    def resume(self) -> None:
        with self._lock:
            self._pauses -= 1
            if not self._pauses:
                self._since = time.monotonic()
                self._paused_seconds += self._since - self._paused_at
        self._changed()

    def remaining(self) -> float | None:
        """Seconds left, at least 0; None without a limit or while the clock stands still."""
        with self._lock:
            if self._stopped:
                return 0.0
            if self._budget is None or self._pauses or self._since is None:
                return None
            return max(0.0, self._budget - self._spent - (time.monotonic() - self._since))

    @property
    def paused_seconds(self) -> float:
        """How long the clock has stood still so far, in seconds."""
        with self._lock:
            running = time.monotonic() - self._paused_at if self._pauses else 0.0
            return self._paused_seconds + running

    def _changed(self) -> None:
        if self._on_change is not None:
            self._on_change()


_running: ContextVar[tuple[PausableClock, ...]] = ContextVar("gopher_mcp_clocks", default=())


@contextmanager
def counting(clock: PausableClock) -> Iterator[None]:
    """While open, `clock` is among those of the current context."""
    token = _running.set((*_running.get(), clock))
    try:
        yield
    finally:
        _running.reset(token)


@contextmanager
def standing_still() -> Iterator[None]:
    """While open, every clock of the current context stands still: a person is at work who belongs to no question."""
    clocks = _running.get()
    for clock in clocks:
        clock.pause()
    try:
        yield
    finally:
        for clock in clocks:
            clock.resume()
