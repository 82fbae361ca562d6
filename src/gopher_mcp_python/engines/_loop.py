"""An event loop on a thread of its own, and calls into it that a thread waits for like for a call of the bridge.

One loop thread per agent, not a shared one: an `on_event` callback or a non-blocking handler runs on that thread, and
one that is slow must hold up its own agent only; and an agent's thread, sockets and child processes end together with
it. A thread costs some 0.2 ms to start, a session a hundred times that.

The threads are daemons and are ended at exit, within EXIT_SECONDS for all of them together: a process never hangs on a
server that does not answer.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from ..errors import AgentError
from ..ffi._bridge import WAKE_CLOSED, WAKE_DONE, WAKE_REQUEST, WAKE_TICK, WAKE_TIMEOUT
from ..toolset.clock import PausableClock
from ._pending import LoopPending

# Seconds that closing may take before what is left is cancelled, and that the exit of the process waits for all loops.
CLOSE_SECONDS = 3.0
EXIT_SECONDS = 1.0
# Seconds that an answer has to reach its server when the call that asked is given up at the same time.
ANSWER_SECONDS = 0.25
_live: weakref.WeakSet[LoopThread] = weakref.WeakSet()


class LoopThread:
    """An event loop that runs until `close`. Belongs to the process that made it."""

    def __init__(self, name: str) -> None:
        self._pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._closed = False
        self._lock = threading.Lock()
        self._calls: set[LoopCall] = set()
        self._answers_until = 0.0  # time.monotonic(), until which answers of calls that were given up are on their way
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()
        _live.add(self)

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def inherited(self) -> bool:
        """Whether this is the copy of a loop in a forked child, where its thread does not exist."""
        return os.getpid() != self._pid

    def is_current(self) -> bool:
        """Whether the caller runs on the loop's own thread, where waiting for a call would be waiting for oneself."""
        return threading.current_thread() is self._thread

    def start(self, main: Callable[[LoopCall], Coroutine[Any, Any, Any]]) -> LoopCall:
        """Starts `main(call)` on the loop, in the context of the caller. Raises AgentError when the loop is closed."""
        call = LoopCall(self)
        with self._lock:
            if self._closed:
                raise AgentError("Agent has been disposed")
            self._calls.add(call)
        self._loop.call_soon_threadsafe(call._begin, main, context=contextvars.copy_context())
        return call

    def soon(self, callback: Callable[..., Any], *args: Any) -> None:
        """Runs `callback` on the loop's thread; nothing happens after the loop has ended."""
        try:
            self._loop.call_soon_threadsafe(callback, *args)
        except RuntimeError:  # closed meanwhile
            pass

    def close(self, cleanup: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """Ends every call, runs `cleanup` on the loop, ends the thread. Never blocks; idempotent; any thread."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            calls = list(self._calls)
        if self.inherited:
            return
        for call in calls:
            call._close()
        self.soon(lambda: self._loop.create_task(self._end(cleanup)))

    def join(self, seconds: float) -> None:
        """Waits until the thread has ended, at most so many seconds."""
        if not self.inherited and not self.is_current():
            self._thread.join(seconds)

    def give_up(self, call: LoopCall, answering: bool) -> None:
        """Cancels a call, but not before an answer that was given just now can have left."""
        seconds = ANSWER_SECONDS if answering else 0.0
        self._answers_until = max(self._answers_until, time.monotonic() + seconds)
        self.soon(self._loop.call_later, seconds, call._cancel)

    async def _end(self, cleanup: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        try:
            await asyncio.sleep(max(0.0, self._answers_until - time.monotonic()))
            await asyncio.wait_for(cleanup(), CLOSE_SECONDS)
        except Exception:  # closing what is already broken; nobody is left to tell
            pass
        finally:
            self._loop.stop()

    def _forget(self, call: LoopCall) -> None:
        with self._lock:
            self._calls.discard(call)

    def _run(self) -> None:
        loop = self._loop
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
        finally:
            try:
                _cancel_all(loop)
                loop.run_until_complete(loop.shutdown_asyncgens())
            finally:
                asyncio.set_event_loop(None)
                loop.close()


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.set_exception_handler(lambda *_: None)  # errors of tasks that nobody waits for any more
        loop.run_until_complete(asyncio.wait(tasks, timeout=CLOSE_SECONDS))


class LoopCall:
    """A call under way on a loop; the same methods as `_bridge.Call`, for `engines.drive`."""

    def __init__(self, thread: LoopThread) -> None:
        self._thread = thread
        self._changed = threading.Condition(threading.Lock())
        self._requests: deque[LoopPending] = deque()
        self._open: set[LoopPending] = set()
        self._task: asyncio.Task[Any] | None = None
        self._attached = True
        self._done = self._is_closed = False
        self._answered_at = float("-inf")  # time.monotonic() of the last answer
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
        self._thread.give_up(self, self._answering())

    def _answering(self) -> bool:
        """Whether an answer was given (by a person or by an end) so lately that it may still be on its way."""
        return time.monotonic() - self._answered_at < ANSWER_SECONDS

    def outcome(self) -> Any:
        """After DONE: what the call returned. Raises what it raised."""
        if self._error is not None:
            raise self._error
        return self._value

    @property
    def running(self) -> bool:
        return not self._done and self._attached

    def belongs_to(self, thread: LoopThread) -> bool:
        return self._thread is thread

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
        self._answered_at = time.monotonic()
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
        self._thread.give_up(self, self._answering())


def _at_exit() -> None:
    threads = [thread for thread in list(_live) if not thread.inherited]
    for thread in threads:
        thread.close(_nothing)  # one that is closing already needs no more than its time
    deadline = time.monotonic() + EXIT_SECONDS
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))


async def _nothing() -> None:
    return None


atexit.register(_at_exit)
