"""The suite of every backend (support/store_suite.py), on a real PostgreSQL server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from gopher_mcp_python.store import Store
from gopher_mcp_python.store.postgres import PostgresBackend
from tests.support import store_postgres
from tests.support.store_places import LocalPlace, Place, closing
from tests.support.store_postgres import Database
from tests.support.store_suite import StoreSuite

_TIMES = ("created_at", "expires_at", "ended_at", "consumed_at", "completed_at")


class PostgresPlace(LocalPlace):
    """One database, emptied at the end. The server's clock stays: the rows are moved instead."""

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database = database
        self._backends: list[PostgresBackend] = []

    def backend(self) -> PostgresBackend:
        self._backends.append(PostgresBackend(self._database.app))
        return self._backends[-1]

    def pass_time(self, seconds: float) -> None:
        moved = ", ".join(f"{name} = {name} - make_interval(secs => %(s)s)" for name in _TIMES)
        self.tamper(f"UPDATE gopher_mcp.mcp_elicitations SET {moved}", {"s": seconds})

    def tamper(self, statement: str, values: Any = None) -> None:
        """As a superuser who lets no trigger stand in the way."""
        with psycopg.connect(self._database.superuser) as connection:
            connection.execute("SET session_replication_role = replica")
            connection.execute(statement.encode(), values)

    def write(self, id: str, **columns: Any) -> None:
        sets = ", ".join(f"{column} = %({column})s" for column in columns)
        self.tamper(f"UPDATE gopher_mcp.mcp_elicitations SET {sets} WHERE id = %(id)s", {**columns, "id": id})

    def let_records_change(self) -> None:
        self.tamper("ALTER TABLE gopher_mcp.mcp_elicitations DISABLE TRIGGER mcp_recorded_stays")

    def close(self) -> None:
        super().close()
        for backend in self._backends:
            backend.close()
        self.tamper("TRUNCATE gopher_mcp.mcp_elicitations, gopher_mcp.mcp_elicitation_audit")
        self.tamper("ALTER TABLE gopher_mcp.mcp_elicitations ENABLE TRIGGER mcp_recorded_stays")


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with store_postgres.running() as server:
        yield store_postgres.database(server)


class TestPostgres(StoreSuite):
    @pytest.fixture
    def place(self, database: Database) -> Iterator[Place]:
        yield from closing(PostgresPlace(database))

    # What these two put into the rows Postgres refuses by itself (test_store_postgres.py); here it is made to take it.

    def test_the_yes_that_counts_is_the_sealed_one(self, place: PostgresPlace, store: Store) -> None:
        place.let_records_change()
        super().test_the_yes_that_counts_is_the_sealed_one(place, store)

    def test_blobs_belong_to_their_row_and_part(self, place: PostgresPlace, store: Store) -> None:
        place.let_records_change()
        super().test_blobs_belong_to_their_row_and_part(store)
