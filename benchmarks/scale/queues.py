"""A discrete-event simulation in a few lines: processes that wait for places, take time, and share flushes of a log."""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Generator
from typing import Any

Step = tuple[str, Any]
Process = Generator[Step, None, None]


class Place:
    """Room for `capacity` at once, first come first served."""

    def __init__(self, capacity: int) -> None:
        self.capacity, self.taken = capacity, 0
        self.queue: deque[Process] = deque()
        self.busy = 0.0
        """Seconds of use so far, over all places."""
        self._since = 0.0

    def count(self, now: float, change: int) -> None:
        self.busy += self.taken * (now - self._since)
        self.taken, self._since = self.taken + change, now


class Log:
    """A disk on which commits are made lasting: all that have come when a flush begins are done when it ends."""

    def __init__(self, seconds: Callable[[], float]) -> None:
        self.seconds = seconds
        self.waiting: list[Process] = []
        self.flushing = False
        self.busy = 0.0


class Simulation:
    """Steps of a process: ("take", place), ("give", place), ("pass", seconds), ("flush", log)."""

    def __init__(self) -> None:
        self.now = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()

    def at(self, when: float, what: Callable[[], None]) -> None:
        """`what` happens at this time; at the same time what was said first comes first."""
        heapq.heappush(self._events, (when, next(self._numbers), what))

    def start(self, process: Process) -> None:
        """Goes on with a process until it has to wait."""
        while True:
            try:
                kind, value = next(process)
            except StopIteration:
                return
            if kind == "pass":
                self.at(self.now + value, lambda: self.start(process))
                return
            if kind == "take" and not self._take(value, process):
                return
            if kind == "give":
                self._give(value)
            if kind == "flush":
                value.waiting.append(process)
                self._flush(value)
                return

    def run(self, until: float) -> None:
        """Everything that happens until then."""
        while self._events and self._events[0][0] <= until:
            self.now, _, what = heapq.heappop(self._events)
            what()
        self.now = until

    def _take(self, place: Place, process: Process) -> bool:
        if place.taken < place.capacity:
            place.count(self.now, 1)
            return True
        place.queue.append(process)
        return False

    def _give(self, place: Place) -> None:
        place.count(self.now, -1)
        if place.queue:
            place.count(self.now, 1)
            process = place.queue.popleft()
            self.at(self.now, lambda: self.start(process))

    def _flush(self, log: Log) -> None:
        if log.flushing or not log.waiting:
            return
        log.flushing, group, log.waiting = True, log.waiting, []
        seconds = log.seconds()
        log.busy += seconds

        def done() -> None:
            log.flushing = False
            for process in group:
                self.start(process)
            self._flush(log)

        self.at(self.now + seconds, done)
