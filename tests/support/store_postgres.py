"""Databases for the elicitation store on a real PostgreSQL server: migrated by an owner, used by another login."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg

from gopher_mcp_python.store.postgres import PostgresBackend, migrate
from gopher_mcp_python.store.postgres.tx import PostgresTx
from tests.support.postgres import PASSWORD, Postgres

OWNER, APP, STRANGER = "store_owner", "store_app", "store_stranger"
_TEMPLATE = "store_template"
_numbers = itertools.count(1)


@dataclass
class Database:
    """One migrated database."""

    server: Postgres = field(repr=False)
    name: str

    @property
    def app(self) -> str:
        """The DSN that a store works with."""
        return self.server.dsn(self.name, user=APP)

    @property
    def owner(self) -> str:
        return self.server.dsn(self.name, user=OWNER)

    @property
    def superuser(self) -> str:
        return self.server.dsn(self.name)

    @contextmanager
    def transaction(self, caller: str | None, **options: Any) -> Iterator[PostgresTx]:
        """One transaction of a backend of its own."""
        with closing(PostgresBackend(self.app)) as backend, backend.transaction(caller, **options) as tx:
            yield tx

    def all_rows(self, columns: str = "id, status", table: str = "mcp_elicitations") -> list[tuple[Any, ...]]:
        """What is really there, past row-level security."""
        with psycopg.connect(self.superuser) as connection:
            return connection.execute(f"SELECT {columns} FROM gopher_mcp.{table} ORDER BY 1").fetchall()

    def terminate(self, query: str = "LISTEN%") -> int:
        """Ends the connections whose last statement is like this; how many there were."""
        with psycopg.connect(self.superuser) as connection:
            found = connection.execute(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = %s AND query LIKE %s "
                "AND pid <> pg_backend_pid()",
                [self.name, query],
            )
            return len(found.fetchall())


def prepare(server: Postgres) -> None:
    """The logins of a server, and the database that others are copied from."""
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {OWNER} LOGIN CREATEROLE PASSWORD '{PASSWORD}'")
        connection.execute(f"CREATE ROLE {STRANGER} LOGIN PASSWORD '{PASSWORD}'")
        connection.execute(f"CREATE DATABASE {_TEMPLATE} OWNER {OWNER}")
    migrate(server.dsn(_TEMPLATE, user=OWNER))
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {APP} LOGIN PASSWORD '{PASSWORD}' IN ROLE gopher_mcp_app")


def database(server: Postgres, *, migrated: bool = True) -> Database:
    """A new one; the logins are there already (`prepare`)."""
    name = f"store_{next(_numbers)}"
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        template = _TEMPLATE if migrated else "template0"
        connection.execute(f"CREATE DATABASE {name} OWNER {OWNER} TEMPLATE {template}")
    return Database(server, name)


@contextmanager
def running(*, durable: bool = False) -> Iterator[Postgres]:
    """A server with the logins, for the tests of one file."""
    server = Postgres(durable=durable)
    try:
        prepare(server)
        yield server
    finally:
        server.close()
