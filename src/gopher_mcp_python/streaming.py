"""A run as an iterator over what happens in it, for threads and for tasks.

The run has a thread of its own, as one that a coroutine awaits has (`awaiting`); its events go through a queue that
never blocks it. Leaving the iterator, in whatever way, calls the run off.
"""

from __future__ import annotations

import contextvars
import os
import queue
import threading
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from . import stopping
from .errors import AgentError
from .events import GopherAgentEvent
from .runs import failed_result, result_of
from .telling import Over, over_here

if TYPE_CHECKING:
    from .engines.base import RunOutcome
    from .result import AgentResult
    from .run_events import Sink
    from .turns import Place

__all__ = ["GopherAgentAsyncStream", "GopherAgentStream"]

_SLICE = 0.2  # seconds between looks, where a queue's wait does not notice Ctrl-C (Windows)
# Seconds that `close` gives the run's thread to answer cancel and to let go; what takes longer ends by itself.
_LINGER = 1.0


class _End:
    """The last thing in the queue: how the run ended."""

    def __init__(self, outcome: RunOutcome | None, error: BaseException | None) -> None:
        self.outcome, self.error = outcome, error


class _Work:
    """The run on its thread and what it has told. It never refers to the stream: one that is dropped ends its run."""

    def __init__(self, run: Callable[[Sink], RunOutcome], place: Place) -> None:
        self.items: queue.SimpleQueue[GopherAgentEvent | _End] = queue.SimpleQueue()
        self.waker: Over | None = None  # of the task that waits for the next item
        self._run: Callable[[Sink], RunOutcome] | None = run
        self._place = place
        self._stop = stopping.Stop()
        self._pid = os.getpid()
        context = contextvars.copy_context()
        context.run(stopping.CURRENT.set, self._stop)
        self.thread = threading.Thread(target=context.run, args=(self._main,), name="gopher agent stream", daemon=True)
        try:
            self.thread.start()
        except RuntimeError as error:
            place.leave()
            raise AgentError(f"No thread could be started for the run: {error}") from error

    @property
    def inherited(self) -> bool:
        return self._pid != os.getpid()

    def call_off(self) -> None:
        """Nobody listens any more. Idempotent; any thread; never blocks."""
        if not self.inherited:
            self._stop.set()

    def refuse_inherited(self) -> None:
        if self.inherited:
            raise AgentError("This stream was opened before a fork and belongs to the parent process")

    def _main(self) -> None:
        run, self._run = self._run, None
        assert run is not None
        try:
            end = _End(run(self._put), None)
        except BaseException as error:  # raised again where it is iterated
            end = _End(None, error)
        finally:
            del run
            self._place.leave()
        self._put(end)

    def _put(self, item: GopherAgentEvent | _End) -> None:
        if self._stop.is_set() and isinstance(item, GopherAgentEvent):
            return
        self.items.put(item)
        waker, self.waker = self.waker, None
        if waker is not None and not waker.tell():  # the event loop is closed
            self.call_off()


class _Stream:
    """What both streams are."""

    def __init__(self, run: Callable[[Sink], RunOutcome], place: Place) -> None:
        self._over = False
        self._result: AgentResult | None = None
        self._work = _Work(run, place)
        self._finalizer = weakref.finalize(self, self._work.call_off)
        self._finalizer.atexit = False

    @property
    def result(self) -> AgentResult:
        """How the run ended, as `run_detailed` returns it. Raises AgentError before the iteration came to its end."""
        if self._result is None:
            raise AgentError("There is no result: the stream was not iterated to its end")
        return self._result

    @property
    def text(self) -> str:
        """The answer; "" for a run that failed. Raises AgentError before the iteration came to its end."""
        return self.result.response

    def _take(self, item: GopherAgentEvent | _End) -> GopherAgentEvent | None:
        """The event, or None at the end. Raises what the run raised."""
        if isinstance(item, GopherAgentEvent):
            return item
        self._over = True
        self._finalizer.detach()
        self._work.items.put(_End(None, None))  # for another thread that waits for an item
        if item.outcome is not None:
            self._result = result_of(item.outcome)
        error, item.error = item.error, None
        if isinstance(error, AgentError):
            self._result = failed_result(error)
        if error is not None:
            try:
                raise error
            finally:
                del error  # its traceback refers to this frame
        return None

    def __repr__(self) -> str:
        state = "under way" if not self._over else "closed" if self._result is None else self._result.status.value
        return f"<{type(self).__name__}, {state}>"


class GopherAgentStream(_Stream):
    """The events of a run, as they happen: an iterator, made by `GopherAgent.run_stream`.

    The last event is the run's `run_completed`; then `result` and `text` are there, or what `run` raises is raised.
    Leaving early (`close`, the end of a `with` statement, Ctrl-C, dropping it) cancels what is being asked and the run.
    """

    def __iter__(self) -> GopherAgentStream:
        return self

    def __next__(self) -> GopherAgentEvent:
        """Waits for the next event. Raises AgentError and its kinds when the run failed."""
        if self._over:
            raise StopIteration
        self._work.refuse_inherited()
        try:
            event = self._take(self._next())
        except BaseException:
            self.close()
            raise
        if event is None:
            raise StopIteration
        return event

    def _next(self) -> GopherAgentEvent | _End:
        while True:
            try:
                return self._work.items.get(timeout=_SLICE)
            except queue.Empty:
                continue

    def close(self) -> None:
        """Ends the run unless it has ended: what is asked is answered with cancel. Idempotent; any thread; waits a
        moment for the run's thread."""
        if self._over:
            return
        self._over = True
        self._finalizer.detach()
        self._work.call_off()
        if not self._work.inherited and threading.current_thread() is not self._work.thread:
            self._work.thread.join(_LINGER)

    def __enter__(self) -> GopherAgentStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class GopherAgentAsyncStream(_Stream):
    """The same for a task of asyncio or trio, made by `GopherAgent.run_stream_async`: an async iterator.

    Leaving early (`aclose`, the end of an `async with`, cancelling the task that waits for an event, dropping it)
    cancels what is being asked and the run.
    """

    def __aiter__(self) -> GopherAgentAsyncStream:
        return self

    async def __anext__(self) -> GopherAgentEvent:
        """Waits for the next event. Raises AgentError and its kinds when the run failed."""
        if self._over:
            raise StopAsyncIteration
        self._work.refuse_inherited()
        try:
            event = self._take(await self._next())
        except GeneratorExit:  # a coroutine that is closed can't await
            self._leave()
            raise
        except BaseException:
            await self.aclose()
            raise
        if event is None:
            raise StopAsyncIteration
        return event

    async def _next(self) -> GopherAgentEvent | _End:
        items = self._work.items
        while items.empty():
            over = over_here()
            self._work.waker = over
            if items.empty():  # else it came before the waker
                await over.wait()
        return items.get()

    def _leave(self) -> bool:
        """Whether there is a thread to wait for."""
        if self._over:
            return False
        self._over = True
        self._finalizer.detach()
        self._work.call_off()
        return not self._work.inherited

    async def aclose(self) -> None:
        """Ends the run unless it has ended: what is asked is answered with cancel. Idempotent; waits a moment for the
        run's thread."""
        if not self._leave():
            return
        over = over_here()
        self._work.waker = over
        if self._work.thread.is_alive():
            await over.linger()

    async def __aenter__(self) -> GopherAgentAsyncStream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()
