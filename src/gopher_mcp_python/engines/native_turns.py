"""First come, first served: the library does one run per agent at a time, so further ones wait here."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from .. import stopping
from ..errors import AgentError

_SLICE = 0.2  # seconds between looks at the queue and, where a lock's wait does not notice them (Windows), at signals


class Turns:
    """A queue of runs; the first in it has the turn. Waiting ends when it is one's turn, at Ctrl-C (which passes), when
    the agent is disposed, or when the run is called off.

    No lock: Ctrl-C, a signal handler or a finaliser that disposes of the agent can come at any point in here. The
    queue's own steps are whole, a ticket leaves it whatever happens, and the wake-up of the next one may get lost: it
    looks for itself.
    """

    def __init__(self) -> None:
        self._queue: deque[threading.Event] = deque()
        self._closed = False

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Raises AgentError when the agent is disposed of, or the run called off, before it is one's turn."""
        ticket = threading.Event()
        try:
            self._queue.append(ticket)
            self._wait(ticket)
            yield
        finally:
            if ticket in self._queue:  # not when Ctrl-C came before it
                self._queue.remove(ticket)
            with suppress(IndexError):
                self._queue[0].set()

    def close(self) -> None:
        """Nobody waits any longer, nobody comes in. Never blocks."""
        self._closed = True
        for ticket in self._queue.copy():
            ticket.set()

    def _wait(self, ticket: threading.Event) -> None:
        with stopping.waking(ticket.set):
            while True:
                if self._closed:
                    raise AgentError("Agent has been disposed")
                stopping.check("the run")
                if self._queue[0] is ticket:
                    return
                ticket.wait(_SLICE)
