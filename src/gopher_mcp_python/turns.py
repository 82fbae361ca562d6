"""Runs of one agent that coroutines await: first awaited, first run, though each has a thread of its own."""

from __future__ import annotations

import threading
from collections import deque

from . import stopping

__all__ = ["Line", "Place"]


class Line:
    """First come, first served. A place is taken at once; a thread waits there for its turn."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a dropped coroutine may be closed on the thread that holds it
        self._places: deque[Place] = deque()

    def join(self) -> Place:
        place = Place(self)
        with self._lock:
            self._places.append(place)
            self._places[0].turn.set()
        return place

    def leave(self, place: Place) -> None:
        with self._lock:
            if place in self._places:
                self._places.remove(place)
            if self._places:
                self._places[0].turn.set()


class Place:
    """One place in a line."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self.turn = threading.Event()

    def wait(self) -> None:
        """Until it is this place's turn. Raises AgentError when the waiting is called off."""
        with stopping.waking(self.turn.set):
            self.turn.wait()
        stopping.check("the run")

    def leave(self) -> None:
        """Idempotent; any thread."""
        self._line.leave(self)
