"""The tables of a SQLite store, and what the library must be able to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .backend import ANSWER_COLUMNS, COLUMNS
from .errors import StoreError

if TYPE_CHECKING:
    import sqlite3

__all__ = ["APPLICATION_ID", "check_library", "prepare"]

APPLICATION_ID = 0x474D4350  # "GMCP": tells our file from other programs'
_VERSION = 1
_OLDEST = (3, 8, 0)  # partial indexes
_FIXED = [column for column in COLUMNS if column not in ANSWER_COLUMNS and column not in ("id", "question")]

# Times are microseconds since 1970, UTC.
_TABLES = f"""
CREATE TABLE elicitation (
    id TEXT NOT NULL PRIMARY KEY,
    caller TEXT NOT NULL,
    mode TEXT NOT NULL CHECK (mode IN ('fixed', 'form', 'url')),
    type TEXT CHECK (type IN ('string_input', 'single_choice', 'multi_choice', 'confirmation', 'file_upload')),
    status TEXT NOT NULL CHECK (status IN ('pending', 'responded', 'expired', 'cancelled', 'validation_failed')),
    server TEXT,
    tool TEXT,
    question BLOB,
    binding_mac TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    response BLOB,
    response_mac TEXT,
    confirmed INTEGER,
    retries INTEGER NOT NULL,
    ended_at INTEGER,
    consumed_at INTEGER,
    completed_at INTEGER,
    CHECK ((mode = 'fixed') = (type IS NOT NULL))
);
CREATE INDEX elicitation_pending ON elicitation (caller, created_at, id) WHERE status = 'pending';
CREATE INDEX elicitation_expiry ON elicitation (expires_at) WHERE status = 'pending';
CREATE INDEX elicitation_created ON elicitation (caller, created_at);
CREATE INDEX elicitation_payload ON elicitation (ended_at) WHERE question IS NOT NULL OR response IS NOT NULL;
CREATE TABLE audit (
    seq INTEGER NOT NULL PRIMARY KEY,
    text TEXT NOT NULL,
    previous TEXT NOT NULL,
    hash TEXT NOT NULL
);
CREATE TRIGGER audit_keeps BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
CREATE TRIGGER audit_stays BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
CREATE TRIGGER elicitation_stays BEFORE DELETE ON elicitation
    BEGIN SELECT RAISE(ABORT, 'elicitations are not deleted'); END;
CREATE TRIGGER elicitation_keeps BEFORE UPDATE OF id, {", ".join(_FIXED)} ON elicitation
    BEGIN SELECT RAISE(ABORT, 'only the answer of an elicitation changes'); END;
"""


def check_library() -> Any:
    """The module sqlite3. Raises StoreError when it can't be loaded or its library is too old."""
    remedy = "import sqlite3 before the native agent library is loaded, which may bring an old copy of its own"
    try:
        import sqlite3
    except ImportError as error:
        raise StoreError(f"SQLite can't be loaded here ({error!s:.200}): {remedy}") from None
    if sqlite3.sqlite_version_info < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        raise StoreError(f"SQLite {sqlite3.sqlite_version} is too old, {oldest} is the oldest that will do: {remedy}")
    return sqlite3


def prepare(connection: sqlite3.Connection) -> None:
    """Makes the tables in an empty file. Raises StoreError for another program's file, or a later version's."""
    if connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
        connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("BEGIN IMMEDIATE")
    (version,), (application,) = (
        connection.execute(f"PRAGMA {name}").fetchone() for name in ("user_version", "application_id")
    )
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if not tables and not version:
        _make(connection)
    elif application != APPLICATION_ID:
        connection.execute("ROLLBACK")
        raise StoreError("The SQLite file is another program's: name another file for the store")
    elif version != _VERSION:
        connection.execute("ROLLBACK")
        raise StoreError(f"The SQLite file has format {version}, this version knows {_VERSION}: update this package")
    connection.execute("COMMIT")


def _make(connection: sqlite3.Connection) -> None:
    for statement in _TABLES.split(";\n"):
        if statement.strip():
            connection.execute(statement)  # executescript would commit first
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {_VERSION}")
