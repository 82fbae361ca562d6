"""First come, first served: the library does one run per agent at a time, so further ones wait here."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from .. import stopping
from ..errors import AgentError

_SLICE = 0.2  # seconds between looks at signals, where a lock's wait does not notice them (Windows)


class Turns:
    """A queue of runs. Waiting ends when it is one's turn, at Ctrl-C (which passes), when the agent is disposed, or
    when the run is called off."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[threading.Event] = deque()
        self._taken = False
        self._closed = False

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Raises AgentError when the agent is disposed of before it is one's turn."""
        self._wait()
        try:
            yield
        finally:
            self._pass_on()

    def close(self) -> None:
        """Nobody waits any longer, nobody comes in. Never blocks."""
        with self._lock:
            self._closed = True
            for ticket in self._waiting:
                ticket.set()

    def _wait(self) -> None:
        ticket = threading.Event()
        with self._lock:
            self._refuse_closed()
            if not self._taken:
                self._taken = True
                return
            self._waiting.append(ticket)
        try:
            with stopping.waking(ticket.set):
                while not ticket.wait(_SLICE):
                    pass
            stopping.check("the run")
            with self._lock:
                self._refuse_closed()
        except BaseException:
            self._give_up(ticket)
            raise

    def _give_up(self, ticket: threading.Event) -> None:
        """A turn that was handed over already goes to the next."""
        with self._lock:
            waiting = ticket in self._waiting
            if waiting:
                self._waiting.remove(ticket)
        if not waiting:
            self._pass_on()

    def _pass_on(self) -> None:
        with self._lock:
            self._taken = bool(self._waiting)
            if self._taken:
                self._waiting.popleft().set()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise AgentError("Agent has been disposed")
