"""The numbered migrations: from nothing, again, by two at once, and what they refuse."""

from __future__ import annotations

import dataclasses
import sys
import threading
from collections.abc import Iterator

import psycopg
import pytest

from gopher_mcp_python.store.errors import StoreError
from gopher_mcp_python.store.model import ElicitationStatus, ElicitationType
from gopher_mcp_python.store.postgres import migrate
from gopher_mcp_python.store.postgres.migrating import Migration, migrations
from tests.support import children, store_postgres
from tests.support.postgres import PASSWORD, Postgres
from tests.support.store_postgres import Database

ALL = [migration.name for migration in migrations()]


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with store_postgres.running() as running:
        yield running


@pytest.fixture
def empty(server: Postgres) -> Database:
    return store_postgres.database(server, migrated=False)


def test_from_nothing_and_again(empty: Database) -> None:
    assert migrate(empty.owner) == ALL
    assert migrate(empty.owner) == []
    assert [name for _, name in empty.all_rows("number, name", "schema_migrations")] == ALL
    with empty.transaction("ada") as tx:
        assert tx.get("el_1") is None


def test_numbers_have_no_gap() -> None:
    assert [migration.number for migration in migrations()] == list(range(1, len(ALL) + 1))


def test_the_enums_have_exactly_the_labels_of_the_model(empty: Database) -> None:
    migrate(empty.owner)
    with psycopg.connect(empty.superuser) as connection:
        found = dict(
            connection.execute(
                "SELECT t.typname, array_agg(e.enumlabel::text ORDER BY e.enumsortorder) FROM pg_type t "
                "JOIN pg_enum e ON e.enumtypid = t.oid WHERE t.typnamespace = 'gopher_mcp'::regnamespace GROUP BY 1"
            ).fetchall()
        )
    assert found == {
        "mcp_elicitation_type": [one.value for one in ElicitationType],
        "mcp_elicitation_status": [one.value for one in ElicitationStatus],
    }
    assert all(len(labels) == 5 for labels in found.values())


def test_replicas_that_start_at_once_migrate_once(empty: Database) -> None:
    together = threading.Barrier(4)
    applied: list[list[str]] = []

    def start() -> None:
        together.wait(30)
        applied.append(migrate(empty.owner))

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(applied) == [[], [], [], ALL]


def test_two_databases_of_a_cluster_may_make_the_roles_at_once() -> None:
    """Roles are the cluster's, and the lock is a database's."""
    server = Postgres()
    try:
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            for name in ("one", "two", "three"):
                connection.execute(f"CREATE DATABASE {name}")
        together = threading.Barrier(3)
        done: list[list[str]] = []

        def start(name: str) -> None:
            together.wait(30)
            done.append(migrate(server.dsn(name)))

        threads = [threading.Thread(target=start, args=[name]) for name in ("one", "two", "three")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert done == [ALL] * 3
    finally:
        server.close()


def test_a_migration_that_fails_leaves_nothing(empty: Database) -> None:
    broken = Migration(len(ALL) + 1, "0099_broken.sql", "CREATE TABLE gopher_mcp.half (a int); SELECT 1 / 0;")
    with pytest.raises((StoreError, ValueError)):
        migrate(empty.owner, known=[*migrations(), broken])
    with psycopg.connect(empty.superuser) as connection:
        assert connection.execute("SELECT to_regnamespace('gopher_mcp')").fetchone() == (None,)
    assert migrate(empty.owner) == ALL


def test_a_newer_schema_is_refused_by_migrate_and_by_the_store(empty: Database) -> None:
    later = Migration(len(ALL) + 1, "0099_later.sql", "CREATE TABLE gopher_mcp.later (a int)")
    assert migrate(empty.owner, known=[*migrations(), later]) == [*ALL, later.name]
    with pytest.raises(StoreError, match=r"ahead of this package \(it has 0099_later.sql\): update it"):
        migrate(empty.owner)
    with pytest.raises(StoreError, match="ahead of this package"), empty.transaction("ada"):
        pass


def test_a_changed_migration_is_refused(empty: Database) -> None:
    migrate(empty.owner)
    first, *others = migrations()
    changed = dataclasses.replace(first, sql=first.sql + "\n-- changed")
    with pytest.raises(StoreError, match=f"{first.name} is not what was applied as number 1"):
        migrate(empty.owner, known=[changed, *others])


def test_a_store_on_a_database_that_lacks_migrations_says_what_to_run(empty: Database) -> None:
    with (
        pytest.raises(StoreError, match=r"run python -m gopher_mcp_python\.store\.postgres DSN"),
        empty.transaction("ada"),
    ):
        pass
    migrate(empty.owner, known=migrations()[:1])
    with pytest.raises(StoreError, match=f"version 1 of {len(ALL)}: run python -m gopher"):
        with empty.transaction("ada"):
            pass


def test_a_login_that_may_not_migrate_is_told_what_it_needs(empty: Database, server: Postgres) -> None:
    with pytest.raises(StoreError, match="needs CREATE on the database") as caught:
        migrate(server.dsn(empty.name, user=store_postgres.STRANGER))
    assert PASSWORD not in str(caught.value)


def test_a_dsn_is_never_in_a_message(server: Postgres) -> None:
    with pytest.raises((StoreError, ValueError)) as caught:
        migrate("host=127.0.0.1 pass-word-42=x")
    assert "pass-word-42" not in str(caught.value)
    with pytest.raises(StoreError) as refused:
        migrate(server.dsn(user=store_postgres.OWNER, password="pass-word-43"))
    assert "pass-word-43" not in str(refused.value)


def test_the_command_migrates_and_says_what_it_did(empty: Database, server: Postgres) -> None:
    command = [sys.executable, "-m", "gopher_mcp_python.store.postgres"]
    dsn = empty.owner.replace(f"password={PASSWORD} ", "")  # a password on a command line is everybody's to see
    done = children.run([*command, dsn], env={"PGPASSWORD": PASSWORD}).check()
    assert done.out.splitlines() == [f"applied {name}" for name in ALL]
    assert children.run([*command, dsn], env={"PGPASSWORD": PASSWORD}).check().out == "up to date\n"
    refused = children.run([*command, dsn], env={"PGPASSWORD": "pass-word-45"})
    assert refused.code == 1 and "user and password in the DSN" in refused.err and "pass-word-45" not in refused.err
