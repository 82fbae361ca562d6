"""Calling off what a thread is doing, from another thread: for calls that a task awaits and may be cancelled."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar

from .errors import AgentError

__all__ = ["CURRENT", "Stop", "called_off", "check", "waking"]


class Stop:
    """Says, once and for good, that nobody waits any more for what a thread does. Any thread may use it.

    It stands in `CURRENT` of the context that the work is done in, so also of what that work starts: a handler that
    is left behind can't begin a run of another agent.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a finaliser may call it off on the thread that holds it
        self._is_set = False
        self._wakers: list[Callable[[], object]] = []

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        """Calls the work off. Idempotent; never blocks."""
        with self._lock:
            self._is_set = True
            wakers, self._wakers = self._wakers, []
        for wake in wakers:
            wake()

    @contextmanager
    def waking(self, wake: Callable[[], object]) -> Iterator[None]:
        """While open, `set` calls `wake`, on the thread that calls `set`; at once when it is set already. `wake` must
        neither block nor raise. Look at `is_set` or `check` afterwards."""
        with self._lock:
            if not self._is_set:
                self._wakers.append(wake)
        if self._is_set:
            wake()
        try:
            yield
        finally:
            with self._lock:
                if wake in self._wakers:
                    self._wakers.remove(wake)


CURRENT: ContextVar[Stop | None] = ContextVar("gopher_mcp_stop", default=None)


def called_off() -> bool:
    """Whether what this context does was called off."""
    stop = CURRENT.get()
    return stop is not None and stop.is_set()


def waking(wake: Callable[[], object]) -> AbstractContextManager[None]:
    """`Stop.waking` for this context; nothing where its work can't be called off."""
    stop = CURRENT.get()
    return nullcontext() if stop is None else stop.waking(wake)


def check(what: str) -> None:
    """Raises AgentError when `what` ("the run") was called off. Whoever awaited it has gone, so nobody reads it but a
    handler whose own run of another agent this ends."""
    if called_off():
        raise AgentError(f"{what} was called off: the task that awaited it was cancelled, or its stream was closed")
