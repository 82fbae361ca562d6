"""Places where a store's rows are, for the suite that every backend has to pass (store_suite.py)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Protocol

from gopher_mcp_python.store import KeyRing, MemoryBackend, SqliteBackend, Store
from gopher_mcp_python.store.backend import Backend
from gopher_mcp_python.store.memory import _Tables
from gopher_mcp_python.store.sqlite_tx import SqliteTx


class Place(Protocol):
    """One set of rows."""

    def open(self, *, keys: Any = None, **options: Any) -> Store:
        """Another store on the same rows, under the same keys unless others are given, without a rate unless one is
        given."""

    def backend(self) -> Backend:
        """A backend of its own, or a shared one, on the same rows."""

    def pass_time(self, seconds: float) -> None:
        """Lets that much time go by for all rows; a negative number sets the clock back."""

    def write(self, id: str, **columns: Any) -> None:
        """Changes a row as somebody does who has the database, stops at no trigger and has no key."""

    def close(self) -> None:
        """Closes every store and backend, and removes the rows."""


class Clock:
    """The time, and what it was changed by. One that stands still moves by that alone."""

    def __init__(self, *, still: bool = False) -> None:
        self.offset = timedelta()
        self.stands_at = datetime.now(timezone.utc) if still else None

    def __call__(self) -> datetime:
        return (self.stands_at or datetime.now(timezone.utc)) + self.offset


class LocalPlace:
    """What the places of this process have in common."""

    def __init__(self, *, still: bool = False) -> None:
        self.keys = KeyRing.generate()
        self.clock = Clock(still=still)
        self.opened: list[Store] = []

    def open(self, *, keys: Any = None, **options: Any) -> Store:
        store = Store(self.backend(), keys or self.keys, **{"rate": None, **options})
        self.opened.append(store)
        return store

    def backend(self) -> Backend:
        raise NotImplementedError

    def pass_time(self, seconds: float) -> None:
        self.clock.offset += timedelta(seconds=seconds)

    def close(self) -> None:
        for store in self.opened:
            store.close()


class MemoryPlace(LocalPlace):
    def __init__(self, *, still: bool = False) -> None:
        super().__init__(still=still)
        self._backend = MemoryBackend(clock=self.clock)

    def backend(self) -> Backend:
        return self._backend

    def write(self, id: str, **columns: Any) -> None:
        tables, anew = self._backend._tables, _Tables()
        for row in tables.rows.values():
            anew.put(replace(row, **columns) if row.id == id else row)
        anew.audit = tables.audit
        self._backend._tables = anew


class SqlitePlace(LocalPlace):
    def __init__(self, folder: Path, *, still: bool = False) -> None:
        super().__init__(still=still)
        self.path = folder / "elicitations.db"

    def backend(self) -> Backend:
        return SqliteBackend(self.path, clock=self.clock)

    def write(self, id: str, **columns: Any) -> None:
        connection = sqlite3.connect(self.path, isolation_level=None)
        try:
            connection.execute("DROP TRIGGER IF EXISTS elicitation_keeps")
            tx = SqliteTx(connection, None, self.clock())
            tx.update(id, **columns)
        finally:
            connection.close()


def closing(place: Place) -> Iterator[Place]:
    """For fixtures."""
    yield place
    place.close()
