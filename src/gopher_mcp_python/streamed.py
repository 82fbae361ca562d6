"""The run behind a stream: its thread, and the queue of what it has told, which never blocks it."""

from __future__ import annotations

import contextvars
import os
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from . import stopping
from .errors import AgentError
from .events import GopherAgentEvent
from .telling import Over

if TYPE_CHECKING:
    from .engines.base import RunOutcome
    from .run_events import Sink
    from .turns import Place

__all__ = ["End", "Work"]


class End:
    """The last thing in the queue: how the run ended; neither: the iteration is over, for whoever waits for an item."""

    def __init__(self, outcome: RunOutcome | None = None, error: BaseException | None = None) -> None:
        self.outcome, self.error = outcome, error


class Work:
    """The run on its thread and what it has told. It never refers to the stream: one that is dropped ends its run."""

    def __init__(self, run: Callable[[Sink], RunOutcome], place: Place) -> None:
        self.items: queue.SimpleQueue[GopherAgentEvent | End] = queue.SimpleQueue()
        self.ended = False
        self._waiting: list[Over] = []  # of the tasks that wait for something new
        self._lock = threading.RLock()  # a signal handler may come upon it
        self._run: Callable[[Sink], RunOutcome] | None = run
        self._place = place
        self._around = stopping.CURRENT.get()  # of a handler that iterates: where that is called off, so is this
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
            with nullcontext() if self._around is None else self._around.waking(self._stop.set):
                end = End(run(self.put))
        except BaseException as error:  # raised again where it is iterated
            end = End(None, error)
        finally:
            del run
            self._place.leave()
        self.ended = True
        self.put(end)

    def put(self, item: GopherAgentEvent | End) -> None:
        """Wakes everybody who waits: one of them takes it, the others look again."""
        if self._stop.is_set() and isinstance(item, GopherAgentEvent):
            return
        self.items.put(item)
        with self._lock:
            waiting, self._waiting = self._waiting, []
        told = [over.tell() for over in waiting]
        if told and not any(told):  # their event loops are closed
            self.call_off()

    @contextmanager
    def waking(self, over: Over) -> Iterator[None]:
        """While open, what is new is told to `over`, once. Look whether it is there already."""
        with self._lock:
            self._waiting.append(over)
        try:
            yield
        finally:
            with self._lock:
                if over in self._waiting:
                    self._waiting.remove(over)
