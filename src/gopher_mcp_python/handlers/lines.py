"""One prompt at a time for each person, first come first served, for handlers that event loops wait for."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from weakref import WeakValueDictionary

__all__ = ["BUSY", "PersonLine", "line_of"]

_Place = tuple[asyncio.AbstractEventLoop, "asyncio.Future[None]"]


class PersonLine:
    """The line before one person. Any thread and any event loop may stand in it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a finaliser may leave the line on the thread that holds it
        self._places: deque[_Place] = deque()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Waits for the turn. Whoever is cancelled meanwhile leaves the line."""
        loop = asyncio.get_running_loop()
        place = loop, loop.create_future()
        with self._lock:
            while self._places and not self._places[0][0].is_running():
                self._places.popleft()
            self._places.append(place)
            first = self._places[0] is place
        try:
            if not first:
                await place[1]
            yield
        finally:
            self._leave(place)

    def _leave(self, place: _Place) -> None:
        with self._lock:
            if place not in self._places:
                return
            was_first = self._places[0] is place
            self._places.remove(place)
            if was_first:
                self._call_next()

    def _call_next(self) -> None:
        """A loop that has ended, or stands still, holds up nobody: if it goes on, its turn has come."""
        while self._places:
            loop, turn = self._places[0]
            with suppress(RuntimeError):  # it is closed
                loop.call_soon_threadsafe(_begin, turn)
                if loop.is_running():
                    return
            self._places.popleft()


def _begin(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)


#: Lines whose turn the handler around has: what its own calls ask of the same person can't wait for that handler.
BUSY: ContextVar[frozenset[PersonLine]] = ContextVar("gopher_mcp_lines", default=frozenset())
_lock = threading.Lock()
_lines: WeakValueDictionary[Hashable, PersonLine] = WeakValueDictionary()


def line_of(person: Hashable) -> PersonLine:
    """The line before a person; the same one for the same person as long as anybody keeps it."""
    with _lock:
        line = _lines.get(person)
        if line is None:
            line = _lines[person] = PersonLine()
        return line
