"""The numbered SQL files of `migrations/`, applied once each and in order, whoever starts first.

What was applied is recorded with a checksum: a file that was changed after it was applied, or a database that is ahead
of this package, is refused rather than guessed about.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any

from ..errors import StoreError
from .connecting import MIGRATE, Limits, connect, translated

if TYPE_CHECKING:
    import psycopg

__all__ = ["APP_ROLE", "SCHEMA", "Migration", "check_version", "migrate", "migrations"]

SCHEMA = "gopher_mcp"
APP_ROLE, KEEPER_ROLE = "gopher_mcp_app", "gopher_mcp_keeper"
OLDEST_SERVER = 150000  # PostgreSQL 15: what `server_version` counts as
_LOCK = 0x676F7068  # "goph": the advisory lock of whoever migrates this database
_NAME = re.compile(r"(\d{4})_[a-z0-9_]+\.sql")
# A migration may rewrite a large table, and a second replica waits for the first one.
_LIMITS = Limits(statement_s=3600, lock_s=600, idle_s=3600, answer_s=3700)

_MAY_NOT = (
    "this login may not migrate: it needs CREATE on the database and, the first time in a cluster, CREATEROLE "
    "(later: ADMIN on the role gopher_mcp_keeper); who has migrated before owns the schema"
)
_RECORD = f"""
CREATE TABLE {SCHEMA}.schema_migrations (
    number integer PRIMARY KEY,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
)"""


@dataclass(frozen=True)
class Migration:
    """One SQL file."""

    number: int
    name: str
    sql: str = field(repr=False)

    @property
    def checksum(self) -> str:
        """SHA-256 of the text."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def migrations() -> list[Migration]:
    """All that this package brings, in order; numbers are 1, 2, 3, ..."""
    folder = resources.files(__package__) / "migrations"
    found = sorted((entry.name, entry.read_text("utf-8")) for entry in folder.iterdir() if _NAME.fullmatch(entry.name))
    return [Migration(int(name[:4]), name, sql) for name, sql in found]


def migrate(dsn: str, *, known: Sequence[Migration] | None = None) -> list[str]:
    """Brings the database of `dsn` up to date and returns the names of the files that were applied, mostly none.

    The login becomes the owner of the schema `gopher_mcp` and needs CREATE on the database and, the first time in a
    cluster, CREATEROLE. Never run the store itself with it. All files are applied in one transaction, under a lock.

    Raises StoreError: the server is older than 15 or can't be reached, the database is ahead of this package, or a file
    was changed after it had been applied.
    """
    known = migrations() if known is None else known
    with connect(dsn, _LIMITS) as connection, translated(_MAY_NOT):
        if connection.info.server_version < OLDEST_SERVER:
            raise StoreError("the Postgres store needs PostgreSQL 15 or newer; this server is older")
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
            if not _is_there(connection):  # "IF NOT EXISTS" would ask for the right to create it again
                connection.execute(f"CREATE SCHEMA {SCHEMA}")
                connection.execute(_RECORD)
            missing = _missing(_applied(connection), known)
            for migration in missing:
                _apply(connection, migration)
        return [migration.name for migration in missing]


def _is_there(connection: psycopg.Connection[Any]) -> bool:
    return connection.execute("SELECT to_regnamespace(%s)", [SCHEMA]).fetchone() != (None,)


def check_version(connection: psycopg.Connection[Any]) -> None:
    """Raises StoreError when the tables are not those that this package works with."""
    applied = _applied(connection)
    missing = _missing(applied, migrations())
    if missing:
        raise StoreError(
            f"the store's tables are at version {len(applied)} of {len(applied) + len(missing)}: {MIGRATE}"
        )


def _applied(connection: psycopg.Connection[Any]) -> dict[int, tuple[str, str]]:
    rows = connection.execute(f"SELECT number, name, checksum FROM {SCHEMA}.schema_migrations ORDER BY number")
    return {number: (name, checksum) for number, name, checksum in rows}


def _missing(applied: dict[int, tuple[str, str]], known: Sequence[Migration]) -> list[Migration]:
    newest = known[-1].number if known else 0
    ahead = [name for number, (name, _) in applied.items() if number > newest]
    if ahead:
        raise StoreError(
            f"the database is ahead of this package (it has {ahead[-1]}): update it (pip install -U gopher-mcp-python)"
        )
    for migration in known:
        name, checksum = applied.get(migration.number, (migration.name, migration.checksum))
        if (name, checksum) != (migration.name, migration.checksum):
            raise StoreError(
                f"{migration.name} is not what was applied as number {migration.number} ({name}): "
                "a migration must never change; install the package that this database was made with"
            )
    return [migration for migration in known if migration.number not in applied]


def _apply(connection: psycopg.Connection[Any], migration: Migration) -> None:
    connection.execute(migration.sql.encode())  # bytes: no placeholders; without parameters many statements may come
    connection.execute(
        f"INSERT INTO {SCHEMA}.schema_migrations (number, name, checksum) VALUES (%s, %s, %s)",
        [migration.number, migration.name, migration.checksum],
    )
