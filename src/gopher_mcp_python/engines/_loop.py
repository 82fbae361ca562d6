"""An event loop on a thread of its own, and calls into it that a thread waits for like for a call of the bridge.

One loop thread per agent, not a shared one: an `on_event` callback or a non-blocking handler runs on that thread, and
one that is slow must hold up its own agent only; and an agent's thread, sockets and child processes end together with
it. A thread costs some 0.2 ms to start, a session a hundred times that.

The threads are daemons and are ended at exit, within EXIT_SECONDS for all of them together: a process never hangs on a
server that does not answer. Only a command that goes on after the end of its input gets a few seconds more, until it is
killed: it would be left behind.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import os
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

from .. import exiting
from ..errors import AgentError
from ..own_loop import new_loop
from ._call import LoopCall

# Seconds that closing may take before what is left is cancelled (a command that ignores the end of its input is killed
# after 4), and that the exit of the process waits for all loops, and for those that have processes of their own.
CLOSE_SECONDS = 8.0
EXIT_SECONDS = 1.0
EXIT_WITH_PROCESSES_SECONDS = 6.0
# Seconds that answers have to reach their servers when the call that asked is given up at the same time.
ANSWER_SECONDS = 0.8
# Those whose thread runs, which would keep them in any case. No weak set: before Python 3.14 none can be looked through
# while another thread adds to it.
_live: set[LoopThread] = set()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_live.clear)


class LoopThread:
    """An event loop that runs until `close`. Belongs to the process that made it."""

    def __init__(self, name: str) -> None:
        self._pid = os.getpid()
        self._loop = new_loop()
        self._closed = False
        self.has_processes = False  # child processes, which would outlive this one
        self._lock = threading.RLock()  # a signal handler or a finaliser may close on the thread that holds it
        self._calls: set[LoopCall] = set()
        self.answering: Callable[[], bool] = _never  # whether an answer is still on its way to its server
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        try:
            self._thread.start()
        except BaseException as error:  # Ctrl-C while the thread starts: nobody would ever close it
            if isinstance(error, RuntimeError):  # there is no thread
                self._loop.close()
            else:
                self._loop.call_soon_threadsafe(self._loop.stop)
            raise
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
            # Under the lock: who closes meanwhile could have ended the loop before.
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

    def give_up(self, call: LoopCall) -> None:
        """Cancels a call, but not before an answer that was given just now has left."""
        self.soon(lambda: self._loop.create_task(self._give_up(call)))

    async def _give_up(self, call: LoopCall) -> None:
        await self._answers_sent()
        call._cancel()

    async def _answers_sent(self) -> None:
        end = self._loop.time() + ANSWER_SECONDS
        while self.answering() and self._loop.time() < end:
            await asyncio.sleep(0.01)

    async def _end(self, cleanup: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        try:
            await self._answers_sent()
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
                _live.discard(self)


def _never() -> bool:
    return False


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.set_exception_handler(lambda *_: None)  # errors of tasks that nobody waits for any more
        loop.run_until_complete(asyncio.wait(tasks, timeout=CLOSE_SECONDS))


def _at_exit() -> None:
    exiting.begin()
    threads = [thread for thread in list(_live) if not thread.inherited]
    for thread in threads:
        thread.close(_nothing)  # one that is closing already needs no more than its time
    began = time.monotonic()
    for thread in threads:
        seconds = EXIT_WITH_PROCESSES_SECONDS if thread.has_processes else EXIT_SECONDS
        thread.join(max(0.0, began + seconds - time.monotonic()))


async def _nothing() -> None:
    return None


atexit.register(_at_exit)
