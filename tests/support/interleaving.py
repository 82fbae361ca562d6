"""Orders of steps on several threads that would otherwise come about by chance."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

__all__ = ["Elsewhere", "SeenLock", "in_lockstep"]

_LONG = 30.0  # seconds; after it a test has failed


class SeenLock:
    """Stands in the place of a lock (any kind) and calls `on_wait` when somebody has to wait for it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.on_wait: Callable[[], object] = lambda: None

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if self._lock.acquire(blocking=False):
            return True
        self.on_wait()
        return self._lock.acquire(blocking, timeout)

    def release(self) -> None:
        self._lock.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class Elsewhere:
    """Calls a step on another thread, between two steps of this one: `go` returns when it is over, has to wait for
    `lock`, or has called `stand`. `end` waits for it and gives its result, or raises what it raised."""

    def __init__(self, step: Callable[[], Any], lock: SeenLock | None = None) -> None:
        self._step = step
        self._lock = lock
        self._stands = threading.Event()
        self._result: Any = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run)

    def go(self) -> None:
        if self._lock is not None:
            self._lock.on_wait = self._stands.set
        self._thread.start()
        assert self._stands.wait(_LONG), "the step on the other thread neither ended nor waited for the lock"

    def stand(self) -> None:
        """For the step: this is as far as it has to come."""
        self._stands.set()

    @property
    def went(self) -> bool:
        return self._thread.ident is not None

    def end(self) -> Any:
        self._thread.join(_LONG)
        assert not self._thread.is_alive()
        if self._error is not None:
            raise self._error
        return self._result

    def _run(self) -> None:
        try:
            self._result = self._step()
        except BaseException as error:  # raised again in `end`
            self._error = error
        finally:
            self._stands.set()


def in_lockstep(function: Callable[[], object], code: CodeType, threads: int = 2) -> None:
    """Calls `function` on several threads, which go through `code` line by line together, until one of them goes
    another way. For code without locks."""
    together = threading.Barrier(threads)
    errors: list[BaseException] = []

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        return at_line if frame.f_code is code else None

    def at_line(frame: FrameType, event: str, argument: Any) -> Any:
        try:
            if event == "line":
                together.wait(_LONG)
            elif event == "return":
                together.abort()
        except threading.BrokenBarrierError:
            pass
        return at_line

    def run() -> None:
        sys.settrace(trace)
        try:
            function()
        except BaseException as error:  # told below
            errors.append(error)
        finally:
            sys.settrace(None)

    running = [threading.Thread(target=run) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(_LONG)
    assert not errors and not any(thread.is_alive() for thread in running), errors
