"""One transaction: the statements of the seam. No rule is decided here.

Every statement names the caller although row-level security does too: two locks, each of which holds alone. The status
is written into the statements, since a prepared statement with a parameter could not use the partial indexes.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ..backend import ANSWER_COLUMNS, COLUMNS, AuditRow, Row, chain_hash
from ..errors import StoreError
from .connecting import translated
from .migrating import SCHEMA

if TYPE_CHECKING:
    import psycopg

__all__ = ["PostgresTx"]

_ROWS, _AUDIT = f"{SCHEMA}.mcp_elicitations", f"{SCHEMA}.mcp_elicitation_audit"
_ALL = ", ".join(COLUMNS)
_INSERT = f"INSERT INTO {_ROWS} ({_ALL}) VALUES ({', '.join(['%s'] * len(COLUMNS))})"
_GET = f"SELECT {_ALL} FROM {_ROWS} WHERE id = %s AND caller = %s"
_LOCK = f"{_GET} FOR UPDATE"
_BEHIND = " AND (created_at, id) > (%s, %s)"
_BYTES_BEFORE = (  # of the questions that come first; no payload is read for it
    "coalesce(sum(octet_length(question)) OVER"
    " (ORDER BY created_at, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)"
)
_PENDING = (
    f"SELECT {_ALL} FROM (SELECT {_ALL}, {_BYTES_BEFORE} AS before FROM {_ROWS}"
    " WHERE caller = %s AND status = 'pending' AND expires_at > now(){} ORDER BY created_at, id LIMIT %s) AS page"
    " WHERE before < %s ORDER BY created_at, id"
)
_PENDING_FIRST, _PENDING_BEHIND = _PENDING.format(""), _PENDING.format(_BEHIND)
_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(1735356520 + 1, hashtext(%s))"
_BOUND = (
    f"SELECT id, binding_mac FROM {_ROWS} WHERE caller = %s AND created_at > %s AND tool = %s"
    " AND binding_mac IS NOT NULL ORDER BY created_at DESC LIMIT %s"
)
_CREATIONS = (
    f"SELECT created_at FROM {_ROWS} WHERE caller = %s AND created_at > %s AND created_at <= %s "
    "ORDER BY created_at DESC LIMIT %s"
)
_FOR = "SELECT set_config('gopher.caller', %s, true)"


_TRANSLATED = translated()


class PostgresTx:
    """See `backend.Tx`. In maintenance (no caller) rows come without their sealed parts."""

    def __init__(self, connection: psycopg.Connection[Any], caller: str | None, now: datetime, *, write: bool) -> None:
        self._connection = connection
        self._caller = caller
        self._now = now
        self._write = write
        self._owners: dict[str, str] = {}  # of the rows that maintenance has seen
        self._stands_for: str | None = None  # whose rights maintenance has at the moment
        self.changed: dict[str, None] = {}  # ids to notify, in order

    def now(self) -> datetime:
        return self._now

    def insert(self, row: Row) -> None:
        self._do(_INSERT, [getattr(row, name) for name in COLUMNS])

    def get(self, id: str) -> Row | None:
        return self._one(_GET, id)

    def lock(self, id: str) -> Row | None:
        return self._one(_LOCK, id)

    def update(self, id: str, **columns: Any) -> None:
        """Raises KeyError when maintenance has not seen the row, and StoreError when it is not there."""
        if self._caller is not None:
            self._update(id, self._caller, columns)
            return
        owner = self._owners[id]
        if "question" in columns:
            self._clear(id, columns)
            columns = {name: value for name, value in columns.items() if name not in ("question", "response")}
        if columns:
            # The same right as any caller's answer: maintenance has none of its own to change a row.
            if self._stands_for != owner:
                self._run(_FOR, [owner])
                self._stands_for = owner
            self._update(id, owner, columns)

    def pending(self, limit: int, after: tuple[datetime, str] | None, most_bytes: int) -> Sequence[Row]:
        if after is None:
            return self._rows(_PENDING_FIRST, [self._caller, limit, most_bytes])
        return self._rows(_PENDING_BEHIND, [self._caller, *after, limit, most_bytes])

    def bound(self, tool: str, after: datetime, limit: int) -> Sequence[tuple[str, str]]:
        return [(id, mac) for id, mac in self._run(_BOUND, [self._caller, after, tool, limit])]

    def creations(self, after: datetime, until: datetime, limit: int) -> Sequence[datetime]:
        self._run(_ONE_AT_A_TIME, [self._caller])  # on its own: a statement sees what was committed before it began
        return [moment for (moment,) in self._run(_CREATIONS, [self._caller, after, until, limit])]

    def expired(self, limit: int) -> Sequence[Row]:
        function = "mcp_expired" if self._write else "mcp_overdue"
        return self._rows(f"SELECT {_ALL} FROM {SCHEMA}.{function}(%s)", [limit])

    def prunable(self, before: datetime, limit: int) -> Sequence[Row]:
        return self._rows(f"SELECT {_ALL} FROM {SCHEMA}.mcp_prunable(%s, %s)", [before, limit])

    def due(self, ids: Sequence[str]) -> set[str]:
        asked = [id for id in ids if _can_be_an_id(id)]
        return {id for (id,) in self._run(f"SELECT * FROM {SCHEMA}.mcp_due(%s)", [asked])}

    def append_audit(self, text: str) -> AuditRow:
        """Raises StoreError when the database chains otherwise than this package: nothing of it is believed."""
        (made,) = self._run(f"SELECT seq, %s::text, previous, hash FROM {SCHEMA}.mcp_append_audit(%s)", [text, text])
        row = AuditRow(*made)
        if row.hash != chain_hash(row.seq, row.previous, text):
            raise StoreError("the database chained the audit wrongly: its function mcp_append_audit was changed")
        return row

    def audit_rows(self, after: int, limit: int) -> Sequence[AuditRow]:
        found = f"SELECT seq, text, previous, hash FROM {_AUDIT} WHERE seq > %s ORDER BY seq LIMIT %s"
        return [AuditRow(*row) for row in self._run(found, [after, limit])]

    def audit_head(self) -> AuditRow | None:
        found = self._run(f"SELECT seq, text, previous, hash FROM {_AUDIT} ORDER BY seq DESC LIMIT 1")
        return AuditRow(*found[0]) if found else None

    def notify(self, id: str) -> None:
        self.changed[id] = None

    def _update(self, id: str, caller: str, columns: dict[str, Any]) -> None:
        unknown = columns.keys() - ANSWER_COLUMNS
        if unknown:
            raise ValueError(f"these columns are written once and not changed: {', '.join(sorted(unknown))}")
        names = sorted(columns)
        assigned = ", ".join(f"{name} = %s" for name in names)
        query = f"UPDATE {_ROWS} SET {assigned} WHERE id = %s AND caller = %s"
        if self._do(query, [*(columns[name] for name in names), id, caller]) != 1:
            raise StoreError("the row that was locked is not there any more")

    def _clear(self, id: str, columns: dict[str, Any]) -> None:
        if columns["question"] is not None or columns.get("response") is not None:
            raise ValueError("maintenance takes payloads away and writes none")
        self._run(f"SELECT {SCHEMA}.mcp_clear(%s)", [id])

    def _one(self, query: str, id: str) -> Row | None:
        if not _can_be_an_id(id):
            return None
        if self._caller is None:
            found = self._rows(f"SELECT {_ALL} FROM {SCHEMA}.mcp_known(%s)", [id])
        else:
            found = self._rows(query, [id, self._caller])
        return found[0] if found else None

    def _rows(self, query: str, values: Sequence[Any]) -> list[Row]:
        found = [Row(*record) for record in self._run(query, values)]
        if self._caller is None:
            self._owners.update((row.id, row.caller) for row in found)
        return found

    def _do(self, query: str, values: Sequence[Any]) -> int:
        """How many rows were written."""
        with _TRANSLATED:
            return self._connection.execute(query, values).rowcount

    def _run(self, query: str, values: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        with _TRANSLATED:
            return self._connection.execute(query, values).fetchall()


def _can_be_an_id(text: str) -> bool:
    """Whether Postgres can be asked for it at all; our ids are ASCII."""
    return text.isascii() and "\0" not in text
