"""Waiting for an elicitation's end, and hearing of changes, whoever makes them.

A backend tells of changes; behind it stands a look at the database every second for all who wait together, since a
notification may be lost.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from .. import stopping
from ..redaction import log_failure
from .errors import StoreError
from .model import ElicitationStatus
from .outcome import Change
from .threads import started

if TYPE_CHECKING:
    from .backend import Backend, Row
    from .core import Store
    from .model import StoredElicitation

__all__ = ["Deadline", "Waiters", "wait_for"]

_log = logging.getLogger("gopher_mcp_python.store")
PULSE_S = 1.0  # between looks at the database, and at whether an answer is still wanted
_GRACE_S = 1.0  # by which the clock of this process may lag behind the database's
_MOST_CHANGES = 10_000  # that a slow subscriber has not seen; then it is told to look at everything


class Waiters:
    """Who waits for what. Its one thread is there from the first wait or subscription until `close`."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._lock = threading.Condition()
        self._wakers: dict[str, list[Callable[[], object]]] = {}
        self._subscribers: dict[object, Callable[[Change], object]] = {}
        self._changed: deque[str | None] = deque()
        self._thread: threading.Thread | None = None
        self._stop_listening: Callable[[], None] | None = None
        self._next_look = 0.0
        self._closed = False

    @contextmanager
    def watching(self, id: str, wake: Callable[[], object]) -> Iterator[None]:
        """While open, `wake` is called, on any thread, when the row may have changed. It neither blocks nor raises."""
        self.start()
        with self._lock:
            if not self._wakers:
                self._next_look = monotonic() + PULSE_S
                self._lock.notify_all()
            self._wakers.setdefault(id, []).append(wake)
        try:
            yield
        finally:
            with self._lock:
                rest = self._wakers[id]
                rest.remove(wake)
                if not rest:
                    del self._wakers[id]

    def subscribe(self, callback: Callable[[Change], object]) -> Callable[[], None]:
        self.start()
        key = object()
        with self._lock:
            self._subscribers[key] = callback

        def end() -> None:
            with self._lock:
                self._subscribers.pop(key, None)

        return end

    def close(self) -> None:
        """Wakes everybody and ends the thread."""
        with self._lock:
            self._closed = True
            thread, stop = self._thread, self._stop_listening
            self._lock.notify_all()
        if stop is not None:
            stop()
        self._wake(None)
        if thread is not None and thread is not threading.current_thread():
            thread.join(5.0)

    def start(self) -> None:
        """Begins to listen, which may take as long as connecting does; the first wait or subscription does it, too."""
        with self._lock:
            if self._closed:
                raise StoreError("The store is closed")
            if self._thread is not None:
                return
            stop = self._backend.listen(self._changes)
            try:
                self._thread = started("gopher-mcp-store", self._run)
            except StoreError:
                stop()
                raise
            self._stop_listening = stop

    def _changes(self, id: str | None) -> None:
        """What the backend calls."""
        if id is not None:
            self._wake(id)
        with self._lock:
            if id is None:  # one look for all who wait, so that thousands don't look at the same time
                self._next_look = 0.0
            if self._subscribers:
                if len(self._changed) >= _MOST_CHANGES:
                    self._changed.clear()
                    id = None
                self._changed.append(id)
            self._lock.notify_all()

    def _wake(self, id: str | None) -> None:
        with self._lock:
            lists = list(self._wakers.values()) if id is None else [self._wakers.get(id, [])]
            wakers = [wake for some in lists for wake in some]
        for wake in wakers:
            wake()

    def _run(self) -> None:
        while True:
            with self._lock:
                while not (self._closed or self._changed or self._look_is_due()):
                    self._lock.wait(self._next_look - monotonic() if self._wakers else None)
                if self._closed:
                    return
                changed, self._changed = self._changed, deque()
                ids = list(self._wakers) if self._look_is_due() else []
                if ids:
                    self._next_look = monotonic() + PULSE_S
            for id in dict.fromkeys(changed):
                self._publish(id)
            self._look(ids)

    def _look_is_due(self) -> bool:
        return bool(self._wakers) and monotonic() >= self._next_look

    def _look(self, ids: list[str]) -> None:
        """Wakes those whose elicitation has ended without our hearing of it; all of them when the store fails, so that
        they find out."""
        try:
            for start in range(0, len(ids), 1000):
                with self._backend.transaction(None, write=False) as tx:
                    due = tx.due(ids[start : start + 1000])
                for id in due:
                    self._wake(id)
        except Exception as error:
            if not isinstance(error, StoreError):
                log_failure(_log, "looking for ended elicitations failed", error)
            self._wake(None)

    def _publish(self, id: str | None) -> None:
        change = Change(None, None, None)
        if id is not None:
            try:
                with self._backend.transaction(None, write=False) as tx:
                    row = tx.get(id)
            except Exception:
                row = None  # nobody knows what became of it: everybody looks again
            change = change if row is None else _change(row)
        with self._lock:
            subscribers = list(self._subscribers.values())
        for callback in subscribers:
            try:
                callback(change)
            except Exception as error:
                log_failure(_log, "a subscriber of the store failed", error)


class Deadline:
    """How long a wait can last, by a clock that nobody sets (seconds)."""

    def __init__(self, timeout_s: float | None) -> None:
        self._mine = None if timeout_s is None else monotonic() + timeout_s
        self._theirs: float | None = None

    def meet(self, row: Row) -> None:
        """The elicitation's own end: no later than its whole time after it was first seen here."""
        if self._theirs is None:
            self._theirs = monotonic() + (row.expires_at - row.created_at).total_seconds() + _GRACE_S

    @property
    def surely_over(self) -> bool:
        """Whether the elicitation's time is up although the wall clock, which was set back, says otherwise."""
        return self._theirs is not None and monotonic() >= self._theirs

    @property
    def passed(self) -> bool:
        return self._mine is not None and monotonic() >= self._mine

    def left(self, most: float) -> float:
        ends = [end for end in (self._mine, self._theirs) if end is not None]
        return max(0.0, min([most, *(end - monotonic() for end in ends)]))


def wait_for(
    store: Store, caller: str, id: str, timeout_s: float | None, still_wanted: Callable[[], bool] | None
) -> StoredElicitation:
    """See Store.wait."""
    store._usable()
    deadline, event = Deadline(timeout_s), threading.Event()
    with store._waiters.watching(id, event.set), stopping.waking(event.set):
        while True:
            event.clear()
            row = store._row(caller, id, surely_over=deadline.surely_over)
            deadline.meet(row)
            unwanted = stopping.called_off() or (still_wanted is not None and not still_wanted())
            if row.status != ElicitationStatus.PENDING or deadline.passed or unwanted:
                return store._unsealed(row)
            while not event.wait(deadline.left(PULSE_S)):
                if deadline.passed or deadline.surely_over or (still_wanted is not None and not still_wanted()):
                    break


def _change(row: Row) -> Change:
    return Change(row.id, row.caller, ElicitationStatus(row.status))
