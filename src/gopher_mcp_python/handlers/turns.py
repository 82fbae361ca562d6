"""One prompt at a time on one terminal, in the order in which they came."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["TERMINAL", "Turns"]

_LOOK_EVERY = 0.05  # seconds; how soon a prompt that waits for its turn notices that nobody needs it any more


def _nothing() -> None:
    """No status line is shown."""


class Turns:
    """A fair lock whose waiters can give up."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._queue: deque[object] = deque()
        #: Called when a turn has come: takes a status line off the terminal before a prompt is written.
        self.at_start: Callable[[], None] = _nothing

    @contextmanager
    def turn(self, still_wanted: Callable[[], bool]) -> Iterator[bool]:
        """Waits for the turn; the block gets False when `still_wanted` said no before it came."""
        ticket = object()
        with self._changed:
            self._queue.append(ticket)
        try:
            yield self._wait(ticket, still_wanted)
        finally:
            with self._changed:
                self._queue.remove(ticket)
                self._changed.notify_all()

    def _wait(self, ticket: object, still_wanted: Callable[[], bool]) -> bool:
        while still_wanted():
            with self._changed:
                if self._queue[0] is ticket:
                    self.at_start()
                    return True
                self._changed.wait(_LOOK_EVERY)
        return False

    def reset_after_fork(self) -> None:
        """A child has one thread and none of the parent's prompts."""
        self._changed = threading.Condition()
        self._queue = deque()


#: The process's terminal.
TERMINAL = Turns()
