"""Blocking calls as coroutines: each runs on a thread of its own and can be called off by whoever awaits it.

The thread is not one of the event loop's executor, which is small and is waited for at exit; it is a daemon, for a
call into the native library can't be ended. Coroutines of asyncio and of trio may await it, also under anyio.
"""

from __future__ import annotations

import contextvars
import functools
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Generic, ParamSpec, TypeVar

from . import stopping
from .errors import AgentError
from .telling import Over, over_here
from .turns import Place

__all__ = ["as_coroutine", "on_a_thread"]

P = ParamSpec("P")
T = TypeVar("T")


def as_coroutine(
    function: Callable[P, T], *, discard: Callable[[T], object] | None = None
) -> Callable[P, Coroutine[Any, Any, T]]:
    """`function` under the name `<name>_async` as a coroutine function with the same parameters and annotations.

    `discard` gets rid of a result that comes after the awaiting task was cancelled.
    """

    @functools.wraps(function)
    async def awaited(*args: P.args, **kwargs: P.kwargs) -> T:
        return await on_a_thread(functools.partial(function, *args, **kwargs), discard=discard)

    name = function.__name__
    awaited.__name__ = f"{name}_async"
    awaited.__qualname__ = f"{function.__qualname__}_async"
    if function.__doc__:
        awaited.__doc__ = (
            f"{function.__doc__.rstrip()}\n\n"
            f"        Awaitable form of `{name}`: it blocks no event loop, and ends early when its task is cancelled.\n"
            "        "
        )
    return awaited


async def on_a_thread(
    call: Callable[[], T], *, discard: Callable[[T], object] | None = None, place: Place | None = None
) -> T:
    """Runs `call` on a daemon thread, in a copy of the current context, and returns or raises what it does, also
    KeyboardInterrupt and SystemExit.

    When the awaiting task is cancelled, `stopping.CURRENT` of that context is set, which ends what the call asks and
    waits for; a result that comes all the same is given to `discard`. `place` is left when the call is over.
    Raises AgentError when no thread can be started and when no event loop of asyncio or trio runs.
    """
    try:
        over = over_here()
        work = _Work(call, over, discard, place)
        try:
            work.start()
            await over.wait()
        except BaseException as gone:
            work.call_off()
            if not isinstance(gone, GeneratorExit):  # a coroutine that is closed can't await
                await over.linger()
            raise
        return work.result()
    finally:
        if place is not None:
            place.leave()


class _Work(Generic[T]):
    """A call on its thread, and who has its result: the awaiting task, or else `discard`."""

    def __init__(
        self, call: Callable[[], T], over: Over, discard: Callable[[T], object] | None, place: Place | None
    ) -> None:
        self._call = call
        self._over = over
        self._discard = discard
        self._place = place
        self._stop = stopping.Stop()
        self._lock = threading.RLock()  # a dropped coroutine may be closed on the thread that holds it
        self._values: list[T] = []
        self._error: BaseException | None = None

    def start(self) -> None:
        context = contextvars.copy_context()
        context.run(stopping.CURRENT.set, self._stop)
        try:
            threading.Thread(target=context.run, args=(self._main,), name="gopher agent call", daemon=True).start()
        except RuntimeError as error:
            raise AgentError(f"No thread could be started for the call: {error}") from error

    def _main(self) -> None:
        try:
            self._keep(self._call())
        except BaseException as error:  # raised again where it is awaited
            self._error = error
        if self._place is not None:
            self._place.leave()
        if not self._over.tell() or self._stop.is_set():
            self.call_off()

    def _keep(self, value: T) -> None:
        with self._lock:
            self._values.append(value)

    def call_off(self) -> None:
        """Nobody awaits it any more. Idempotent; any thread."""
        self._stop.set()
        with self._lock:
            values, self._values, self._error = self._values, [], None
        if self._discard is not None:
            for value in values:
                self._discard(value)

    def result(self) -> T:
        try:
            if self._error is not None:
                raise self._error
            return self._values.pop()
        finally:
            self._error = None  # its traceback refers to this frame
            del self
