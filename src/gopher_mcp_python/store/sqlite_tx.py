"""One transaction of a SQLite store."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from .backend import COLUMNS, GENESIS, AuditRow, Row, chain_hash, up_to
from .errors import StoreError

if TYPE_CHECKING:
    import sqlite3

__all__ = ["SqliteTx", "micros"]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_TIMES = frozenset(("created_at", "expires_at", "ended_at", "consumed_at", "completed_at"))
_ALL = ", ".join(COLUMNS)
_INSERT = f"INSERT INTO elicitation ({_ALL}) VALUES ({', '.join('?' * len(COLUMNS))})"
_DUE_AT_ONCE = 500  # parameters of one statement; old libraries take 999


def micros(moment: datetime) -> int:
    """Microseconds since 1970, exactly."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


class SqliteTx:
    """A writer holds SQLite's write lock from the beginning, so that every row it sees is locked."""

    def __init__(self, connection: sqlite3.Connection, caller: str | None, now: datetime) -> None:
        self._connection = connection
        self._caller = caller
        self._now = now
        self.changed: list[str] = []

    def now(self) -> datetime:
        return self._now

    def insert(self, row: Row) -> None:
        if row.caller != self._caller:
            raise StoreError("The row is another caller's")
        self._connection.execute(_INSERT, [_stored(column, getattr(row, column)) for column in COLUMNS])

    def get(self, id: str) -> Row | None:
        rows = self._rows(f"SELECT {_ALL} FROM elicitation WHERE id = ?", id)
        return rows[0] if rows and self._caller in (None, rows[0].caller) else None

    lock = get

    def update(self, id: str, **columns: Any) -> None:
        sets = ", ".join(f"{column} = ?" for column in columns if column in COLUMNS)
        values = [_stored(column, value) for column, value in columns.items()]
        done = self._connection.execute(
            f"UPDATE elicitation SET {sets} WHERE id = ? AND (? IS NULL OR caller = ?)",
            (*values, id, self._caller, self._caller),
        )
        if done.rowcount != 1:
            raise StoreError("The row that was to be changed is not there")

    def pending(self, limit: int, after: tuple[datetime, str] | None, most_bytes: int) -> Sequence[Row]:
        # Written out, since row values, (a, b) > (?, ?), need 3.15.
        mark, last = (micros(after[0]), after[1]) if after is not None else (-(2**62), "")
        found = self._connection.execute(
            f"SELECT {_ALL} FROM elicitation WHERE status = 'pending' AND caller = ? AND created_at >= ?"
            " AND (created_at > ? OR id > ?) AND expires_at > ? ORDER BY created_at, id LIMIT ?",
            (self._caller, mark, mark, last, micros(self._now), limit),
        )
        with closing(found):
            return up_to(most_bytes, map(_row, found))

    def bound(self, tool: str, after: datetime, limit: int) -> Sequence[tuple[str, str]]:
        found = self._connection.execute(
            "SELECT id, binding_mac FROM elicitation WHERE caller = ? AND created_at > ? AND tool = ?"
            " AND binding_mac IS NOT NULL ORDER BY created_at DESC LIMIT ?",
            (self._caller, micros(after), tool, limit),
        )
        return [(id, mac) for id, mac in found.fetchall()]

    def creations(self, after: datetime, until: datetime, limit: int) -> Sequence[datetime]:
        found = self._connection.execute(
            "SELECT created_at FROM elicitation WHERE caller = ? AND created_at > ? AND created_at <= ?"
            " ORDER BY created_at DESC LIMIT ?",
            (self._caller, micros(after), micros(until), limit),
        )
        return [_moment(value) for (value,) in found.fetchall()]

    def expired(self, limit: int) -> Sequence[Row]:
        return self._rows(
            f"SELECT {_ALL} FROM elicitation WHERE status = 'pending' AND expires_at <= ? ORDER BY expires_at LIMIT ?",
            micros(self._now), limit,
        )  # fmt: skip

    def prunable(self, before: datetime, limit: int) -> Sequence[Row]:
        return self._rows(
            f"SELECT {_ALL} FROM elicitation WHERE ended_at < ? AND (question IS NOT NULL OR response IS NOT NULL)"
            " LIMIT ?",
            micros(before), limit,
        )  # fmt: skip

    def due(self, ids: Sequence[str]) -> set[str]:
        found: set[str] = set()
        for start in range(0, len(ids), _DUE_AT_ONCE):
            some = ids[start : start + _DUE_AT_ONCE]
            marks = ", ".join("?" * len(some))
            rows = self._connection.execute(
                f"SELECT id FROM elicitation WHERE id IN ({marks}) AND (status <> 'pending' OR expires_at <= ?)",
                (*some, micros(self._now)),
            )
            found.update(id for (id,) in rows.fetchall())
        return found

    def append_audit(self, text: str) -> AuditRow:
        last = self.audit_head()
        seq, previous = (last.seq + 1, last.hash) if last else (1, GENESIS)
        made = AuditRow(seq, text, previous, chain_hash(seq, previous, text))
        values = (made.seq, made.text, made.previous, made.hash)
        self._connection.execute("INSERT INTO audit (seq, text, previous, hash) VALUES (?, ?, ?, ?)", values)
        return made

    def audit_rows(self, after: int, limit: int) -> Sequence[AuditRow]:
        return self._audit("WHERE seq > ? ORDER BY seq LIMIT ?", after, limit)

    def audit_head(self) -> AuditRow | None:
        found = self._audit("ORDER BY seq DESC LIMIT 1")
        return found[0] if found else None

    def notify(self, id: str) -> None:
        self.changed.append(id)

    def _rows(self, statement: str, *values: Any) -> list[Row]:
        return [_row(values) for values in self._connection.execute(statement, values).fetchall()]

    def _audit(self, rest: str, *values: Any) -> list[AuditRow]:
        found = self._connection.execute(f"SELECT seq, text, previous, hash FROM audit {rest}", values)
        return [AuditRow(*row) for row in found.fetchall()]


def _row(values: Sequence[Any]) -> Row:
    return Row(**{name: _read(name, value) for name, value in zip(COLUMNS, values, strict=True)})


def _stored(column: str, value: Any) -> Any:
    return micros(value) if column in _TIMES and value is not None else value


def _read(column: str, value: Any) -> Any:
    if value is None:
        return None
    if column in _TIMES:
        return _moment(value)
    return bool(value) if column == "confirmed" else value


def _moment(value: int) -> datetime:
    return _EPOCH + timedelta(microseconds=value)
