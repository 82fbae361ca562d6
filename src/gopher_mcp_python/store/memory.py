"""Rows in this process's memory: for tests, for one program alone, and gone with it."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timezone
from itertools import islice
from typing import Any

from .backend import GENESIS, AuditRow, Row, chain_hash, up_to
from .errors import StoreError
from .listeners import Listeners

__all__ = ["MemoryBackend"]


def utc_now() -> datetime:
    return datetime.now(timezone.utc)


class MemoryBackend:
    """One transaction at a time; nothing of one that fails stays."""

    name = "memory"

    def __init__(self, *, clock: Callable[[], datetime] = utc_now) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._tables = _Tables()
        self._listeners = Listeners()
        self._closed = False

    @contextmanager
    def transaction(self, caller: str | None, *, write: bool = True) -> Iterator[_MemoryTx]:
        """See `backend.Backend`. Raises StoreError when it is closed."""
        with self._lock:
            if self._closed:
                raise StoreError("The store is closed")
            tx = _MemoryTx(self._tables, caller, self._clock())
            yield tx
            if write:
                tx.commit()
        self._listeners.tell(tx.changed)

    def listen(self, callback: Callable[[str | None], None]) -> Callable[[], None]:
        """See `backend.Backend`; there is no other process that could tell."""
        return self._listeners.add(callback)

    def close(self) -> None:
        """Idempotent; the rows are gone with the object."""
        with self._lock:
            self._closed = True


class _Tables:
    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.pending: dict[str, list[tuple[datetime, str]]] = {}  # by caller; sorted
        self.created: dict[str, list[datetime]] = {}  # by caller, sorted
        self.bound: dict[tuple[str, str | None], list[tuple[datetime, str]]] = {}  # by caller and tool, sorted
        self.audit: list[AuditRow] = []

    def put(self, row: Row) -> None:
        """Adds a row, or replaces it by a later state of it."""
        if row.id not in self.rows:
            insort(self.created.setdefault(row.caller, []), row.created_at)
            if row.binding_mac is not None:
                insort(self.bound.setdefault((row.caller, row.tool), []), (row.created_at, row.id))
        before = self.rows.get(row.id)
        self.rows[row.id] = row
        was, is_now = before is not None and before.status == "pending", row.status == "pending"
        if is_now and not was:
            insort(self.pending.setdefault(row.caller, []), (row.created_at, row.id))
        elif was and not is_now:
            mine = self.pending[row.caller]
            del mine[bisect_left(mine, (row.created_at, row.id))]
            if not mine:
                del self.pending[row.caller]


class _MemoryTx:
    """What it writes is kept aside until the commit."""

    def __init__(self, tables: _Tables, caller: str | None, now: datetime) -> None:
        self._tables = tables
        self._caller = caller
        self._now = now
        self._written: dict[str, Row] = {}
        self._audited: list[AuditRow] = []
        self.changed: list[str] = []

    def commit(self) -> None:
        for row in self._written.values():
            self._tables.put(row)
        self._tables.audit += self._audited

    def now(self) -> datetime:
        return self._now

    def insert(self, row: Row) -> None:
        if row.caller != self._caller or row.id in self._tables.rows or row.id in self._written:
            raise StoreError("The row is another caller's, or is there already")
        self._written[row.id] = row

    def get(self, id: str) -> Row | None:
        row = self._written.get(id) or self._tables.rows.get(id)
        return row if row is not None and self._caller in (None, row.caller) else None

    lock = get  # there is one transaction at a time

    def update(self, id: str, **columns: Any) -> None:
        row = self.get(id)
        if row is None:
            raise StoreError("The row that was to be changed is not there")
        self._written[id] = replace(row, **columns)

    def pending(self, limit: int, after: tuple[datetime, str] | None, most_bytes: int) -> Sequence[Row]:
        mine = self._tables.pending.get(self._caller or "", [])
        begin = 0 if after is None else bisect_right(mine, after)
        rows = (self._tables.rows[mine[at][1]] for at in range(begin, len(mine)))
        return up_to(most_bytes, islice((row for row in rows if row.expires_at > self._now), limit))

    def bound(self, tool: str, after: datetime, limit: int) -> Sequence[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        for created_at, id in reversed(self._tables.bound.get((self._caller or "", tool), [])):
            if created_at <= after or len(found) == limit:
                break
            found.append((id, self._tables.rows[id].binding_mac or ""))
        return found

    def creations(self, after: datetime, until: datetime, limit: int) -> Sequence[datetime]:
        mine = self._tables.created.get(self._caller or "", [])
        found = mine[bisect_right(mine, after) : bisect_right(mine, until)]
        return found[::-1][:limit]

    def expired(self, limit: int) -> Sequence[Row]:
        every = (self._tables.rows[id] for mine in self._tables.pending.values() for _, id in mine)
        rows = [row for row in every if row.expires_at <= self._now]
        return sorted(rows, key=lambda row: row.expires_at)[:limit]

    def prunable(self, before: datetime, limit: int) -> Sequence[Row]:
        found = []
        for row in self._tables.rows.values():
            if row.ended_at is not None and row.ended_at < before and (row.question or row.response):
                found.append(row)
                if len(found) == limit:
                    break
        return found

    def due(self, ids: Sequence[str]) -> set[str]:
        rows = (self._tables.rows.get(id) for id in ids)
        return {row.id for row in rows if row is not None and (row.status != "pending" or row.expires_at <= self._now)}

    def append_audit(self, text: str) -> AuditRow:
        last = self.audit_head()
        seq, previous = (last.seq + 1, last.hash) if last else (1, GENESIS)
        made = AuditRow(seq, text, previous, chain_hash(seq, previous, text))
        self._audited.append(made)
        return made

    def audit_rows(self, after: int, limit: int) -> Sequence[AuditRow]:
        kept = self._tables.audit[after : after + limit]
        start = max(0, after - len(self._tables.audit))
        return kept + self._audited[start : start + limit - len(kept)]

    def audit_head(self) -> AuditRow | None:
        both = self._audited or self._tables.audit
        return both[-1] if both else None

    def notify(self, id: str) -> None:
        self.changed.append(id)
