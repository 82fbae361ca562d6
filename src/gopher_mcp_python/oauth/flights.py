"""One renewal of a token at a time, whoever asks for it: threads and event loops wait for the same one.

A renewal (a refresh, a sign-in) runs on a thread and an event loop of its own. So it belongs to nobody's loop: a caller
may leave, its loop may end, and a refresh that has gone out is still completed and stored, as a server that rotates its
refresh tokens would never accept the old one again.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import copy
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future, wait
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from ..errors import AgentError
from ..own_loop import new_loop

__all__ = ["Flight", "alone", "join", "join_blocking"]

_LOOK_EVERY = 0.05  # seconds; how soon a blocked caller notices a signal
_EXIT_SECONDS = 2.0  # that the exit of the process waits for refreshes under way
Main = Callable[["Flight"], Coroutine[Any, Any, Any]]


class _State:
    """What is under way in this process. A forked child begins with nothing."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # a signal handler may leave on the thread that holds it
        self.flights: dict[Any, Flight] = {}
        self.person = threading.Lock()


class Flight:
    """One renewal under way. Ends early when everybody has left, except where it must not."""

    def __init__(self, key: Any) -> None:
        self.key = key
        self.waiting = 0
        self.future: Future[tuple[Any, BaseException | None]] = Future()  # the result, or what was raised
        self.future.set_running_or_notify_cancel()  # so that no waiter's cancellation cancels it for all
        self.abandoned = False
        self._unbreakable = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None

    def start(self, main: Main) -> None:
        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(self._run, main), name="gopher-mcp sign-in", daemon=True).start()

    @contextmanager
    def unbreakable(self) -> Iterator[None]:
        """While open the flight goes on without anybody who waits; it ends after it then. It ends before it when they
        have left already: the cancellation that is on its way would come in the middle."""
        with _state.lock:
            if self.abandoned:
                raise asyncio.CancelledError
            self._unbreakable = True
        try:
            yield
        finally:
            with _state.lock:
                self._unbreakable = False
                abandoned = self.abandoned
        if abandoned:
            raise asyncio.CancelledError

    @property
    def must_finish(self) -> bool:
        return self._unbreakable

    def give_up(self) -> None:
        """Nobody waits any more. Called with the state's lock held."""
        self.abandoned = True
        if not self._unbreakable and self._loop is not None and self._task is not None:
            self._loop.call_soon_threadsafe(self._task.cancel)

    def _run(self, main: Main) -> None:
        loop = new_loop()
        try:
            task = loop.create_task(main(self))
            with _state.lock:
                self._loop, self._task = loop, task
                if self.abandoned:
                    task.cancel()
            result, error = _outcome(loop, task)
            _give_up_the_rest(loop)
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
        finally:
            with _state.lock:
                self._loop = self._task = None
                if _state.flights.get(self.key) is self:
                    del _state.flights[self.key]
            loop.close()
        self.future.set_result((result, error))


def _outcome(loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]) -> tuple[Any, BaseException | None]:
    try:
        return loop.run_until_complete(task), None
    except asyncio.CancelledError:
        return None, asyncio.CancelledError()
    except BaseException as error:  # handed to those who wait
        return None, _own(error)


def _give_up_the_rest(loop: asyncio.AbstractEventLoop) -> None:
    """What a flight has left running when it ended: sign-ins to other servers, when the first one was refused."""
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))


async def join(key: Any, main: Main) -> Any:
    """The result of the flight of that key, which is started unless there is one. Raises what it raised."""
    flight = _enter(key, main)
    try:
        return _given(*await asyncio.wrap_future(flight.future))
    finally:
        _leave(flight)


def join_blocking(key: Any, main: Main, check: Callable[[], None]) -> Any:
    """`join` for a thread without a loop. `check` is called every 50 ms and may raise, to leave."""
    flight = _enter(key, main)
    try:
        while True:
            check()
            if wait((flight.future,), _LOOK_EVERY).done:
                return _given(*flight.future.result())
    finally:
        _leave(flight)


def _given(result: Any, error: BaseException | None) -> Any:
    """What one of those who wait gets."""
    if error is None:
        return result
    raise _own(error)


def _own(error: BaseException) -> BaseException:
    """An error for one alone: threads that raise the same object write into one traceback and keep each other's frames
    alive, and those of the flight, which hold codes and tokens. Its text says enough."""
    return copy.copy(error) if isinstance(error, AgentError) else error


def _enter(key: Any, main: Main) -> Flight:
    with _state.lock:
        flight = _state.flights.get(key)
        if flight is not None and flight.must_finish:
            flight.abandoned = False  # somebody waits again
        if flight is None or flight.abandoned:
            flight = Flight(key)
            flight.start(main)
            _state.flights[key] = flight
        flight.waiting += 1
        return flight


def _leave(flight: Flight) -> None:
    with _state.lock:
        flight.waiting -= 1
        if flight.waiting or flight.future.done():
            return
        if _state.flights.get(flight.key) is flight and not flight.must_finish:
            del _state.flights[flight.key]  # whoever comes now begins anew
        flight.give_up()


@asynccontextmanager
async def alone() -> AsyncIterator[None]:
    """One sign-in of a person at a time in this process: they share a terminal, and perhaps a fixed port."""
    person = _state.person
    while not person.acquire(blocking=False):
        await asyncio.sleep(_LOOK_EVERY)
    try:
        yield
    finally:
        person.release()


def _reset() -> None:
    global _state
    _state = _State()


def _at_exit() -> None:
    """Waits for refreshes under way: cut off, their new token would be lost, and with it the old one."""
    end = time.monotonic() + _EXIT_SECONDS
    while time.monotonic() < end and any(flight.must_finish for flight in list(_state.flights.values())):
        time.sleep(0.01)


_state = _State()
atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset)
