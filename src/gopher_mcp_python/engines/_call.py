"""A call into an agent's event loop, seen from the thread that waits for it; the same methods as `_bridge.Call`."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from ..errors import AgentError
from ..ffi._bridge import WAKE_CLOSED, WAKE_DONE, WAKE_REQUEST, WAKE_TICK, WAKE_TIMEOUT
from ..toolset.clock import PausableClock
from ._pending import LoopPending

if TYPE_CHECKING:
    from ._loop import LoopThread


class LoopCall:
    """A call under way on a loop; the same methods as `_bridge.Call`, for `engines.drive`."""

    def __init__(self, thread: LoopThread) -> None:
        self._thread = thread
        self._changed = threading.Condition()  # reentrant: a signal handler may dispose on the thread that holds it
        self._requests: deque[LoopPending] = deque()
        self._open: set[LoopPending] = set()
        self._task: asyncio.Task[Any] | None = None
        self._attached = True
        self._done = self._is_closed = False
        self._value: Any = None
        self._error: BaseException | None = None
        self.clock = PausableClock(None)

    # ---- the waiting thread ----------------------------------------------------------------------------------------

    def wait(self, slice_ms: int) -> int:
        """What is new, waiting at most `slice_ms` (in milliseconds) for it; one of the bridge's WAKE_* numbers.

        Order when several hold: DONE, CLOSED, REQUEST, TIMEOUT, TICK.
        """
        with self._changed:
            wake = self._wake()
            if wake == WAKE_TICK and slice_ms > 0:
                left = self.clock.remaining()
                self._changed.wait(slice_ms / 1000 if left is None else min(slice_ms / 1000, left))
                wake = self._wake()
        return wake

    def _wake(self) -> int:
        if self._done:
            return WAKE_DONE
        if self._is_closed:
            return WAKE_CLOSED
        if self._requests:
            return WAKE_REQUEST
        left = self.clock.remaining()
        return WAKE_TIMEOUT if left is not None and left <= 0 else WAKE_TICK

    def take(self) -> LoopPending | None:
        """The next request to answer, oldest first; one that was withdrawn meanwhile is left out."""
        with self._changed:
            while self._requests:
                pending = self._requests.popleft()
                if pending.is_open():
                    return pending
        return None

    def set_timeout(self, timeout_ms: int) -> None:
        """Limit in milliseconds from the moment the call's turn comes, person's time excluded; 0 is none."""
        self.clock.set_budget(timeout_ms / 1000 if timeout_ms > 0 else None)

    def untaken(self) -> list[LoopPending]:
        """After DONE: requests that nobody has taken, emptied. They belong to the session, not to the call."""
        with self._changed:
            left = [pending for pending in self._requests if pending.is_open()] if self._done else []
            if self._done:
                self._requests.clear()
        return left

    def leave(self) -> None:
        """The waiter leaves. A call that has not ended is cancelled together with its open requests. Idempotent."""
        with self._changed:
            attached, self._attached = self._attached, False
            self._requests.clear()
            done, still_open = self._done, list(self._open)
        self._thread._forget(self)
        if done or not attached:
            return
        for pending in still_open:
            pending.close()
        self._thread.give_up(self)

    def outcome(self) -> Any:
        """After DONE: what the call returned. Raises what it raised."""
        if self._error is not None:
            raise self._error
        return self._value

    @property
    def running(self) -> bool:
        return not self._done and self._attached

    # ---- the loop's thread -----------------------------------------------------------------------------------------

    def _begin(self, main: Callable[[LoopCall], Coroutine[Any, Any, Any]]) -> None:
        self._task = asyncio.get_running_loop().create_task(self._main(main))
        if not self._attached or self._is_closed:
            self._task.cancel()

    async def _main(self, main: Callable[[LoopCall], Coroutine[Any, Any, Any]]) -> None:
        value: Any = None
        error: BaseException | None = None
        try:
            value = await main(self)
        except asyncio.CancelledError:
            error = AgentError("the call was cancelled")
        except BaseException as raised:  # handed to the waiting thread
            error = raised
        with self._changed:
            self._value, self._error, self._done = value, error, True
            self._changed.notify_all()
        # Hands the interpreter over: the waiting thread goes on now, not when the loop has tidied up after the call.
        time.sleep(0)

    def offer(self, pending: LoopPending) -> bool:
        """Puts a request before the waiter; False when nobody waits (any more)."""
        with self._changed:
            if not self._attached or self._done or self._is_closed:
                return False
            self._requests.append(pending)
            self._open.add(pending)
            self.clock.pause()
            pending.on_end(self._ended)
            self._changed.notify_all()
        return True

    def _ended(self, pending: LoopPending) -> None:
        self.clock.resume()
        with self._changed:
            self._open.discard(pending)
            self._changed.notify_all()

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    # ---- any thread ------------------------------------------------------------------------------------------------

    def _close(self) -> None:
        """The agent is disposed: the waiter wakes with CLOSED, open requests end with cancel."""
        with self._changed:
            self._is_closed = True
            still_open = list(self._open)
            self._changed.notify_all()
        for pending in still_open:
            pending.close()
        self._thread.give_up(self)
