"""What a prompt has to notice while it waits for a person."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Watch", "deadline_after"]

_NEARLY = 0.06  # seconds; how late one look at a limit can be after another


def _nothing() -> None:
    pass


def _true() -> bool:
    return True


def _false() -> bool:
    return False


def _no_limit() -> int | None:
    return None


def deadline_after(timeout_ms: int | None) -> float | None:
    """The monotonic time (in seconds) at which a limit that starts now is over; None when there is no limit."""
    return time.monotonic() + timeout_ms / 1000 if timeout_ms else None


@dataclass(slots=True)
class Watch:
    """`is_open`: somebody still waits for the answer. `is_finished`: the server has said that the person is done.
    `engine_limit_ms`: time that the engine leaves (milliseconds, None: no limit). `deadline`: our own limit, on the
    monotonic clock (in seconds), made from `limit_ms`. `on_shown` is called when the person has the request before
    them. `wakes` is a descriptor that becomes readable when there is something to notice at once. `lasting`: how long
    "decline everything of this server" can hold; empty where that can't be offered."""

    is_open: Callable[[], bool] = _true
    is_finished: Callable[[], bool] = _false
    engine_limit_ms: Callable[[], int | None] = _no_limit
    deadline: float | None = None
    limit_ms: int | None = None
    on_shown: Callable[[], None] = _nothing
    wakes: int | None = None
    lasting: tuple[Literal["session", "always"], ...] = ()
    _engine_end: float | None = field(default=None, init=False)  # when the engine's limit was to be over, as last told

    @staticmethod
    def for_limit(timeout_ms: int | None) -> Watch:
        """Only a time limit (milliseconds; None or 0: none)."""
        return Watch(deadline=deadline_after(timeout_ms), limit_ms=timeout_ms)

    def remaining(self) -> float | None:
        """Seconds until the time is up, by the nearer of the two limits; None when there is none."""
        limits = [] if self.deadline is None else [self.deadline - time.monotonic()]
        engine = self.engine_limit_ms()
        if engine is not None:
            limits.append(engine / 1000)
        if engine:
            self._engine_end = time.monotonic() + engine / 1000
        return max(0.0, min(limits)) if limits else None

    def ran_out(self) -> bool:
        """Whether it was a limit that ended the request. A request that ended before was withdrawn, though an engine
        has no time left for it either."""
        now = time.monotonic() + _NEARLY
        return any(end is not None and now >= end for end in (self.deadline, self._engine_end))

    def wanted(self) -> bool:
        """Whether an answer would still be taken."""
        return self.is_open() and self.remaining() != 0.0
