"""A limit on an awaitable that follows a pausable clock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

import anyio

from .clock import PausableClock
from .errors import CallTimeoutError

T = TypeVar("T")


async def limited(awaitable: Awaitable[T], clock: PausableClock) -> T:
    """Awaits, but no longer than the clock has time left; time in which it stands still is not counted.

    Raises CallTimeoutError.
    """
    clock.start()
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle | None = None
    with anyio.CancelScope() as scope:

        def rearm() -> None:
            nonlocal timer
            if timer is not None:
                timer.cancel()
            left = clock.remaining()
            timer = None if left is None else loop.call_later(left, scope.cancel)

        clock.on_change(rearm)
        rearm()
        try:
            return await awaitable
        finally:
            clock.on_change(None)
            if timer is not None:
                timer.cancel()
    raise CallTimeoutError("the time is up")
