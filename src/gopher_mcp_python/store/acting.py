"""One transaction with the store's rules around it: what is audited is logged, and who waits is woken, after it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

from .audit import audit_text, log_records
from .backend import Backend, Row, Tx

__all__ = ["Act", "acting", "overdue"]


class Act:
    """Changes rows of one transaction, never without an audit record."""

    def __init__(self, tx: Tx) -> None:
        self.tx = tx
        self.now: datetime = tx.now()
        self.records: list[str] = []

    def add(self, row: Row) -> Row:
        self.tx.insert(row)
        self._tell("requested", row, None)
        return row

    def change(self, row: Row, event: str, by: str | None = None, **columns: Any) -> Row:
        """Sets columns of a locked row; returns what it is then."""
        self.tx.update(row.id, **columns)
        after = replace(row, **columns)
        self._tell(event, after, by)
        return after

    def expire(self, row: Row) -> Row:
        return self.change(row, "timeout", status="expired", ended_at=self.now)

    def note(self, event: str, **more: Any) -> None:
        """A record that is of no row."""
        self._append(audit_text(event, self.now, None, **more))

    def _tell(self, event: str, row: Row, by: str | None) -> None:
        self._append(audit_text(event, self.now, row, by=by))
        self.tx.notify(row.id)

    def _append(self, text: str) -> None:
        self.tx.append_audit(text)
        self.records.append(text)


@contextmanager
def acting(backend: Backend, caller: str | None) -> Iterator[Act]:
    """A writing transaction. Raises StoreError; what the body raises rolls back."""
    with backend.transaction(caller) as tx:
        act = Act(tx)
        yield act
    log_records(act.records)


def overdue(row: Row, now: datetime) -> bool:
    """Whether nobody answered in time, though nobody wrote that down yet."""
    return row.status == "pending" and row.expires_at <= now
