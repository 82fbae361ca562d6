"""The seam between the store's rules and where its rows are: memory, SQLite, Postgres.

The rules (`core.Store`) decide everything inside one transaction of a backend; a backend keeps rows and says when one
changed. It never sees a question or an answer in clear, and knows no rule.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

__all__ = ["ANSWER_COLUMNS", "COLUMNS", "GENESIS", "AuditRow", "Backend", "Row", "Tx", "chain_hash", "up_to"]


@dataclass(frozen=True)
class Row:
    """One elicitation at rest. Times are aware datetimes in UTC; `bytes` are sealed; nothing else is secret.

    Texts hold no NUL and no lone surrogate, `id` is ASCII. `mode` is "fixed", "form" or "url"; `type` is a label of
    ElicitationType for "fixed", else None; `status` is a label of ElicitationStatus.
    """

    id: str
    caller: str
    mode: str
    type: str | None
    status: str
    server: str | None
    tool: str | None
    question: bytes | None = field(repr=False)  # None after a prune
    binding_mac: str | None  # of a confirmation: "<key id>:<hex>", at most 512 characters
    created_at: datetime
    expires_at: datetime
    response: bytes | None = field(default=None, repr=False)
    response_mac: str | None = None
    confirmed: bool | None = None
    retries: int = 0
    ended_at: datetime | None = None
    consumed_at: datetime | None = None
    completed_at: datetime | None = None


COLUMNS = tuple(Row.__dataclass_fields__)
# What an answer changes. A prune also changes `question`; everything else is written once.
ANSWER_COLUMNS = frozenset(
    ("status", "response", "response_mac", "confirmed", "retries", "ended_at", "consumed_at", "completed_at")
)


@dataclass(frozen=True)
class AuditRow:
    """One link of the audit's chain. `text` is a JSON object in ASCII, kept character by character.

    `seq` counts from 1 without a gap; `previous` is the hash of the row before, GENESIS for the first.
    """

    seq: int
    text: str
    previous: str
    hash: str


GENESIS = "0" * 64


def chain_hash(seq: int, previous: str, text: str) -> str:
    """SHA-256, in lower-case hex, over the number, the hash before and the text, with a line feed after the first two.
    A database can compute it: sha256(convert_to(seq || E'\\n' || previous || E'\\n' || text, 'UTF8'))."""
    return hashlib.sha256(f"{seq}\n{previous}\n{text}".encode()).hexdigest()


def up_to(most_bytes: int, rows: Iterable[Row]) -> list[Row]:
    """The first of these rows, no more of them read than until their sealed questions have `most_bytes`."""
    found, size = [], 0
    for row in rows:
        found.append(row)
        size += len(row.question or b"")
        if size >= most_bytes:
            break
    return found


class Tx(Protocol):
    """One transaction. With a caller, only that caller's rows are there, for reading and for writing."""

    def now(self) -> datetime:
        """The time (UTC) by which everything is judged: the database's clock where there is one. It may be that of the
        transaction's beginning."""

    def insert(self, row: Row) -> None:
        """Adds a row of this transaction's caller."""

    def get(self, id: str) -> Row | None:
        """The row, or None; `id` may be any text without NUL."""

    def lock(self, id: str) -> Row | None:
        """The row as it is when no other transaction changes it any more; until this one ends nobody else does."""

    def update(self, id: str, **columns: Any) -> None:
        """Sets columns (of ANSWER_COLUMNS; in maintenance also `question`) of a row that this transaction has locked,
        also by `expired` or `prunable`."""

    def pending(self, limit: int, after: tuple[datetime, str] | None, most_bytes: int) -> Sequence[Row]:
        """Rows of the caller with status "pending" and expires_at > now(), oldest first by (created_at, id), only those
        behind `after`. It ends with the row by which the sealed questions have `most_bytes`."""

    def bound(self, tool: str, after: datetime, limit: int) -> Sequence[tuple[str, str]]:
        """(id, binding_mac) of the caller's confirmations of this tool with created_at > after, newest first."""

    def creations(self, after: datetime, until: datetime, limit: int) -> Sequence[datetime]:
        """created_at of the caller's rows with after < created_at <= until, newest first. Until this transaction ends,
        no other one passes this method for the same caller (two at once would both find room)."""

    def expired(self, limit: int) -> Sequence[Row]:
        """Maintenance: rows with status "pending" and expires_at <= now(), oldest first by expires_at, locked; those
        that another transaction has locked are passed over."""

    def prunable(self, before: datetime, limit: int) -> Sequence[Row]:
        """Maintenance: rows with ended_at < before of which question or response is still there, locked; those that
        another transaction has locked are passed over."""

    def due(self, ids: Sequence[str]) -> set[str]:
        """Maintenance: which of these rows are not pending, or have expires_at <= now()."""

    def append_audit(self, text: str) -> AuditRow:
        """Adds a link to the chain. Transactions that do so go one after the other until they end."""

    def audit_rows(self, after: int, limit: int) -> Sequence[AuditRow]:
        """Links with seq > after, in order."""

    def audit_head(self) -> AuditRow | None:
        """The last link; None while there is none."""

    def notify(self, id: str) -> None:
        """Tells every listener of every process that this row changed, once this transaction is committed. It comes
        with an `append_audit` in the same transaction, whose text names the row as "elicitation"."""


class Backend(Protocol):
    """Where rows are. Any thread may use it, several at once. Failures of the place itself are StoreError, raised
    within seconds, whose text names the place and the remedy, and no values."""

    name: str  # for messages: "memory", "SQLite file elicitations.db"

    def transaction(self, caller: str | None, *, write: bool = True) -> AbstractContextManager[Tx]:
        """Commits at the end, rolls back on an exception, which goes on. `caller=None` is maintenance: all rows, and
        the audit's. `write=False`: only reads, of one state. Raises StoreError, also when the commit fails."""

    def listen(self, callback: Callable[[str | None], None]) -> Callable[[], None]:
        """Calls `callback(id)` for each committed notify of any process, this one's own too, at least once; None stands
        for "any of them" (something may have been missed). The callback is quick and raises nothing; it is called on
        any thread, with no lock of the backend held. Returns what ends it, which waits for no callback."""

    def close(self) -> None:
        """Idempotent. Transactions that are begun afterwards raise StoreError."""
