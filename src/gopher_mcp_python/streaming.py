"""A run as an iterator over what happens in it, for threads and for tasks.

The run has a thread of its own, as one that a coroutine awaits has (`awaiting`). Leaving the iterator, in
whatever way, calls the run off and ends the iteration for all who take part in it.
"""

from __future__ import annotations

import queue
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING

from .errors import AgentError
from .events import GopherAgentEvent
from .runs import failed_result, result_of
from .streamed import End, Work
from .telling import over_here

if TYPE_CHECKING:
    from .engines.base import RunOutcome
    from .result import AgentResult
    from .run_events import Sink
    from .turns import Place

__all__ = ["GopherAgentAsyncStream", "GopherAgentStream"]

_SLICE = 0.2  # seconds between looks, where a queue's wait does not notice Ctrl-C (Windows)
# Seconds that `close` gives the run's thread to answer cancel and to let go; what takes longer ends by itself.
_LINGER = 1.0


class _Stream:
    """What both streams are."""

    def __init__(self, run: Callable[[Sink], RunOutcome], place: Place) -> None:
        self._over = self._left = False  # no more is iterated; it was closed before its end
        self._result: AgentResult | None = None
        self._work = Work(run, place)
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

    def _take(self, item: GopherAgentEvent | End) -> GopherAgentEvent | None:
        """The event, or None at the end, which comes at once when somebody has closed the stream. Raises what the run
        raised."""
        if isinstance(item, GopherAgentEvent) and not self._left:
            return item  # also where another thread has come to the end meanwhile
        if self._over or isinstance(item, GopherAgentEvent):
            self._work.items.put(End())  # for the next thread that waits for an item
            return None
        if item.outcome is not None:
            self._result = result_of(item.outcome)
        error, item.error = item.error, None
        if isinstance(error, AgentError):
            self._result = failed_result(error)
        self._end()
        if error is not None:
            try:
                raise error
            finally:
                del error  # its traceback refers to this frame
        return None

    def _end(self) -> None:
        """It is over, for everybody who iterates."""
        self._over = True
        self._finalizer.detach()
        if not self._work.inherited:
            self._work.put(End())

    def _leave(self) -> bool:
        """Ends the run, too. Whether it has a thread to wait for."""
        if self._over:
            return False
        self._left = True
        self._end()  # first: nobody hears what the run ends with then
        self._work.call_off()
        return not self._work.inherited and threading.current_thread() is not self._work.thread

    def __repr__(self) -> str:
        state = "under way" if not self._over else "closed" if self._result is None else self._result.status.value
        return f"<{type(self).__name__}, {state}>"


class GopherAgentStream(_Stream):
    """The events of a run, as they happen: an iterator, made by `GopherAgent.run_stream`.

    The last event is the run's `run_completed`; then `result` and `text` are there, or what `run` raises is raised.
    Leaving early (`close`, the end of a `with` statement, Ctrl-C, dropping it) cancels what is being asked and the run.
    Several threads may iterate it: each event goes to one of them, and the end to all.
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

    def _next(self) -> GopherAgentEvent | End:
        while True:
            try:
                return self._work.items.get(timeout=_SLICE)
            except queue.Empty:
                continue

    def close(self) -> None:
        """Ends the run unless it has ended: what is asked is answered with cancel, and the iteration ends, also
        on other threads. Idempotent; any thread; waits a moment for the run's thread."""
        if self._leave():
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
    cancels what is being asked and the run. Several tasks may iterate it: each event goes to one of them, and the end
    to all.
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

    async def _next(self) -> GopherAgentEvent | End:
        items = self._work.items
        while not self._over:
            with suppress(queue.Empty):
                return items.get_nowait()
            over = over_here()
            with self._work.waking(over):
                if items.empty() and not self._over:  # else it came before anybody could be told
                    await over.wait()
        return End()

    async def aclose(self) -> None:
        """Ends the run unless it has ended: what is asked is answered with cancel, and the iteration ends, also
        in other tasks. Idempotent; any task; waits a moment for the run's thread."""
        if not self._leave():
            return
        over = over_here()
        with self._work.waking(over):
            if not self._work.ended:
                await over.linger()

    async def __aenter__(self) -> GopherAgentAsyncStream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()
