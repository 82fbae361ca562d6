"""What Postgres itself holds, whatever the program asks: callers apart, one answer, no deletion, nothing in clear."""

from __future__ import annotations

import base64
import itertools
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta, timezone
from typing import Any

import psycopg
import pytest

from benchmarks.store import _fill as fill
from gopher_mcp_python.store.backend import COLUMNS, GENESIS, Row, chain_hash
from gopher_mcp_python.store.core import Store
from gopher_mcp_python.store.errors import ElicitationNotFound, StoreError
from gopher_mcp_python.store.keys import KeyRing
from gopher_mcp_python.store.listing import PAGE_BYTES
from gopher_mcp_python.store.model import (
    ElicitationStatus,
    confirmation,
    file_upload,
    multi_choice,
    single_choice,
    string_input,
)
from gopher_mcp_python.store.postgres import PostgresBackend
from gopher_mcp_python.store.postgres.tx import _PENDING_BEHIND, _PENDING_FIRST
from tests.support import canary, children, store_postgres
from tests.support.store_postgres import Database

KEY = bytes(range(32))
SQL = "'); DROP TABLE gopher_mcp.mcp_elicitations; --\" $1 %s %(a)s $$ \\ \u2028 {0} E'\\x00'"
_numbers = itertools.count()


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with store_postgres.running() as server:
        yield store_postgres.database(server)


@pytest.fixture
def backend(database: Database) -> Iterator[PostgresBackend]:
    with closing(PostgresBackend(database.app)) as opened:
        yield opened


@pytest.fixture
def store(backend: PostgresBackend) -> Iterator[Store]:
    with Store(backend, KeyRing([KEY]), rate=None) as opened:
        yield opened


@pytest.fixture
def app(database: Database) -> Iterator[psycopg.Connection[Any]]:
    """The application's own login, as somebody who got hold of it would use it."""
    with psycopg.connect(database.app) as connection:
        yield connection


@pytest.fixture
def ada() -> str:
    return f"ada-{next(_numbers)}"


@pytest.fixture
def eve() -> str:
    return f"eve-{next(_numbers)}"


def become(connection: psycopg.Connection[Any], caller: str) -> None:
    connection.execute("SELECT set_config('gopher.caller', %s, true)", [caller])


# ---- Acceptance criterion 11 ----------------------------------------------------------------------------------------


def test_elicitation_persists_seals_and_is_caller_scoped(database: Database, ada: str, eve: str) -> None:
    with Store(PostgresBackend(database.app), KeyRing([KEY])) as store:
        asked = store.create_confirmation(ada, tool="delete_mail", arguments={"folder": "very-secret-folder"})
        assert store.confirmation_state(ada, asked.id) == "pending"
    with Store(PostgresBackend(database.app), KeyRing([KEY])) as store:  # another process, a day later
        assert [one.id for one in store.pending(ada)] == [asked.id]
        assert store.get(ada, asked.id).params["arguments"] == {"folder": "very-secret-folder"}
        # Another caller: not there, in each way of asking.
        assert store.pending(eve) == [] and store.confirmation_state(eve, asked.id) == "absent"
        for attempt in (
            lambda: store.get(eve, asked.id),
            lambda: store.respond(eve, asked.id, {"confirmed": True}),
            lambda: store.cancel(eve, asked.id),
            lambda: store.result(eve, asked.id),
        ):
            with pytest.raises(ElicitationNotFound):
                attempt()
        assert store.respond(ada, asked.id, {"confirmed": True}).kind == "recorded"
    with Store(PostgresBackend(database.app), KeyRing([KEY])) as store:
        assert store.is_confirmed(ada, asked.id) and store.result(ada, asked.id) == {"confirmed": True}
        assert store.get(ada, asked.id).status is ElicitationStatus.RESPONDED
    row = next(row for row in database.all_rows("id, question, response, confirmed, caller") if row[0] == asked.id)
    assert row[3:] == (True, ada)  # in clear beside what is sealed
    for sealed in row[1:3]:
        assert sealed and b"very-secret-folder" not in sealed and b"confirmed" not in sealed
    with Store(PostgresBackend(database.app), KeyRing([bytes(32)])) as store, pytest.raises(StoreError):
        store.result(ada, asked.id)


# ---- Row-level security and rights, without the package -------------------------------------------------------------


def test_without_a_caller_nothing_is_visible(store: Store, app: psycopg.Connection[Any], ada: str, eve: str) -> None:
    asked = store.create(ada, string_input("Name?"))
    everything = "SELECT id FROM gopher_mcp.mcp_elicitations"
    assert app.execute(everything).fetchall() == []
    become(app, eve)
    assert app.execute(everything).fetchall() == []
    assert app.execute("SELECT id FROM gopher_mcp.mcp_elicitations WHERE id = %s", [asked.id]).fetchall() == []
    become(app, ada)
    assert app.execute(everything).fetchall() == [(asked.id,)]
    app.commit()
    # The setting is the transaction's: the next one begins with none, though the session now knows the name.
    assert app.execute("SELECT current_setting('gopher.caller', true)").fetchone() == ("",)
    assert app.execute(everything).fetchall() == []
    assert app.execute("SELECT id FROM gopher_mcp.mcp_elicitations WHERE caller = ''").fetchall() == []


def test_another_callers_row_can_be_neither_locked_nor_changed_nor_forged(
    store: Store, database: Database, app: psycopg.Connection[Any], ada: str, eve: str
) -> None:
    asked = store.create(ada, string_input("Name?"))
    become(app, eve)
    assert app.execute(f"SELECT FROM gopher_mcp.mcp_elicitations WHERE id = '{asked.id}' FOR UPDATE").fetchall() == []
    changed = app.execute(
        f"UPDATE gopher_mcp.mcp_elicitations SET status = 'cancelled', ended_at = now() WHERE id = '{asked.id}'"
    )
    assert changed.rowcount == 0
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
        app.execute(
            "INSERT INTO gopher_mcp.mcp_elicitations (id, caller, mode, status, retries, created_at, expires_at) "
            "VALUES ('el_forged', %s, 'form', 'pending', 0, now(), now() + interval '1 minute')",
            [ada],
        )
    app.rollback()
    assert (asked.id, "pending") in database.all_rows()


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM gopher_mcp.mcp_elicitations",
        "TRUNCATE gopher_mcp.mcp_elicitations",
        "ALTER TABLE gopher_mcp.mcp_elicitations DISABLE ROW LEVEL SECURITY",
        "ALTER TABLE gopher_mcp.mcp_elicitations NO FORCE ROW LEVEL SECURITY",
        "DROP POLICY mcp_own_rows ON gopher_mcp.mcp_elicitations",
        "DROP TABLE gopher_mcp.mcp_elicitations",
        "ALTER TABLE gopher_mcp.mcp_elicitations DISABLE TRIGGER ALL",
        "SET session_replication_role = replica",
        "CREATE TABLE gopher_mcp.mine (a int)",
        "SET ROLE gopher_mcp_keeper",
        f"SET ROLE {store_postgres.OWNER}",
        *(
            f"UPDATE gopher_mcp.mcp_elicitations SET {column} = {column}"
            for column in ("id", "caller", "mode", "type", "server", "tool", "question", "binding_mac", "created_at",
                           "expires_at")
        ),
        "INSERT INTO gopher_mcp.mcp_elicitation_audit VALUES (1, '', repeat('0', 64), repeat('0', 64))",
        "UPDATE gopher_mcp.mcp_elicitation_audit SET text = ''",
        "DELETE FROM gopher_mcp.mcp_elicitation_audit",
        "TRUNCATE gopher_mcp.mcp_elicitation_audit",
        "DELETE FROM gopher_mcp.schema_migrations",
        "CREATE OR REPLACE FUNCTION gopher_mcp.mcp_clear(wanted text) RETURNS void LANGUAGE sql AS 'SELECT'",
    ],
)  # fmt: skip
def test_the_application_has_no_right_to(app: psycopg.Connection[Any], statement: str) -> None:
    become(app, "ada")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        app.execute(statement.encode())
    app.rollback()


def test_the_columns_that_may_be_updated_are_the_answers(app: psycopg.Connection[Any]) -> None:
    from gopher_mcp_python.store.backend import ANSWER_COLUMNS

    table = "gopher_mcp.mcp_elicitations"
    may = "SELECT has_column_privilege(current_user, %s, %s, 'UPDATE')"
    assert {name for name in COLUMNS if app.execute(may, [table, name]).fetchone() == (True,)} == ANSWER_COLUMNS


@pytest.mark.parametrize("statement", ["UPDATE {} SET text = ''", "DELETE FROM {}", "TRUNCATE {}"])
def test_not_even_the_owner_changes_the_audit_in_passing(store: Store, database: Database, statement: str) -> None:
    store.create("ada", string_input("Name?"))
    with psycopg.connect(database.owner) as connection:
        with pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="can not be changed"):
            connection.execute(statement.format("gopher_mcp.mcp_elicitation_audit").encode())


def test_the_owner_and_the_keeper_are_bound_too(store: Store, database: Database, ada: str) -> None:
    store.create(ada, string_input("Name?"))
    with psycopg.connect(database.owner) as connection:
        become(connection, ada)
        assert connection.execute("SELECT id FROM gopher_mcp.mcp_elicitations").fetchall() == []
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SET ROLE gopher_mcp_keeper")
    with psycopg.connect(database.superuser) as connection:
        connection.execute("SET ROLE gopher_mcp_keeper")
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
            connection.execute("UPDATE gopher_mcp.mcp_elicitations SET response = 'an answer' WHERE status = 'pending'")


@pytest.mark.parametrize(
    ("change", "allowed"),
    [
        ("status = 'cancelled', confirmed = NULL", False),
        ("status = 'pending', ended_at = NULL, confirmed = NULL", False),
        ("confirmed = false", False),
        ("ended_at = now()", False),
        ("response = 'other'", False),
        ("response_mac = 'other'", False),
        ("retries = 2", False),
        ("response = NULL", True),
        ("consumed_at = now()", True),
    ],
)
def test_what_was_recorded_stays(
    store: Store, app: psycopg.Connection[Any], ada: str, change: str, allowed: bool
) -> None:
    """A fault in the program can't answer twice either."""
    asked = store.create_confirmation(ada, tool="t", arguments={})
    store.respond(ada, asked.id, {"confirmed": True})
    become(app, ada)
    statement = f"UPDATE gopher_mcp.mcp_elicitations SET {change} WHERE id = '{asked.id}'"
    if allowed:
        assert app.execute(statement.encode()).rowcount == 1
    else:
        with pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="can not be changed"):
            app.execute(statement.encode())
    app.rollback()


def test_an_approval_is_used_once(store: Store, app: psycopg.Connection[Any], ada: str) -> None:
    asked = store.create_confirmation(ada, tool="t", arguments={})
    use = f"UPDATE gopher_mcp.mcp_elicitations SET consumed_at = clock_timestamp() WHERE id = '{asked.id}'".encode()
    become(app, ada)
    with pytest.raises(psycopg.errors.CheckViolation, match="only_an_approval_is_used"):
        app.execute(use)
    app.rollback()
    store.respond(ada, asked.id, {"confirmed": False})
    become(app, ada)
    with pytest.raises(psycopg.errors.CheckViolation, match="only_an_approval_is_used"):
        app.execute(use)
    app.rollback()
    yes = store.create_confirmation(ada, tool="t", arguments={})
    store.respond(ada, yes.id, {"confirmed": True})
    assert store.consume(ada, yes.id, tool="t", arguments={}) == "consumed"
    become(app, ada)
    with pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="can not be changed"):
        app.execute(use.replace(asked.id.encode(), yes.id.encode()))
    app.rollback()


def test_the_statements_ask_for_the_caller_too(store: Store, database: Database, ada: str, eve: str) -> None:
    """Where row-level security binds nobody, as here, the other lock holds alone."""
    asked = store.create_confirmation(ada, tool="t", arguments={})
    with closing(PostgresBackend(database.superuser)) as backend:
        backend._pool._prepare = lambda connection: None
        with backend.transaction(eve) as tx:
            past = tx.now() - timedelta(1)
            assert tx.get(asked.id) is None and tx.lock(asked.id) is None
            assert not tx.pending(10, None, 1) and not tx.pending(10, (past, ""), 1)
            assert not tx.creations(past, tx.now(), 10) and not tx.bound("t", past, 10)
            with pytest.raises(StoreError, match="not there"):
                tx.update(asked.id, retries=1)
        with backend.transaction(ada) as tx:
            assert tx.get(asked.id) and tx.pending(10, (past, ""), 1) and tx.bound("t", past, 10)


# ---- Maintenance ----------------------------------------------------------------------------------------------------


def test_maintenance_sees_rows_and_no_payload(
    store: Store, backend: PostgresBackend, app: psycopg.Connection[Any], ada: str
) -> None:
    asked = store.create(ada, single_choice("Where?", ["here", "there"]))
    store.respond(ada, asked.id, {"choice": "here"})
    with backend.transaction(None, write=False) as tx:
        row = tx.get(asked.id)
    assert row is not None and row.caller == ada and row.status == "responded" and row.response_mac
    assert row.question is None and row.response is None
    for call in ("mcp_known(%s)", "mcp_expired(1000)", "mcp_overdue(1000)", "mcp_prunable(now(), 1000)"):
        values = [asked.id] if "%s" in call else []
        found = app.execute(f"SELECT question, response FROM gopher_mcp.{call}".encode(), values).fetchall()
        assert set(found) <= {(None, None)}


def test_every_function_that_is_run_with_other_rights_has_a_fixed_search_path(database: Database) -> None:
    with psycopg.connect(database.superuser) as connection:
        found = connection.execute(
            "SELECT p.proname, r.rolname, p.proconfig, r.rolsuper OR r.rolbypassrls OR r.rolcanlogin, "
            "has_function_privilege('public', p.oid, 'EXECUTE') FROM pg_proc p JOIN pg_roles r ON r.oid = p.proowner "
            "WHERE p.pronamespace = 'gopher_mcp'::regnamespace AND p.prosecdef"
        ).fetchall()
    assert len(found) == 7
    for name, owner, settings, mighty, everybody in found:
        assert (owner, settings, mighty, everybody) == (
            "gopher_mcp_keeper", ["search_path=pg_catalog, pg_temp"], False, False
        ), name  # fmt: skip


def test_a_clear_needs_an_ended_row(store: Store, app: psycopg.Connection[Any], database: Database, ada: str) -> None:
    asked = store.create(ada, string_input("Name?"))
    app.execute("SELECT gopher_mcp.mcp_clear(%s)", [asked.id])
    app.commit()
    assert store.get(ada, asked.id).message == "Name?"


def test_due_is_what_has_ended_or_should_have(
    store: Store, backend: PostgresBackend, database: Database, ada: str
) -> None:
    waiting, late, ended = (store.create(ada, string_input("Name?")).id for _ in range(3))
    store.cancel(ada, ended)
    with psycopg.connect(database.superuser) as connection:
        connection.execute("UPDATE gopher_mcp.mcp_elicitations SET created_at = now() - interval '2 minutes', "
                           "expires_at = now() - interval '1 minute' WHERE id = %s", [late])  # fmt: skip
    with backend.transaction(None, write=False) as tx:
        assert tx.due([waiting, late, ended, "el_nobody"]) == {late, ended}
    assert store.get(ada, late).status is ElicitationStatus.EXPIRED


def test_sweep_and_prune_pass_over_what_another_replica_has_locked(
    store: Store, backend: PostgresBackend, database: Database, ada: str
) -> None:
    ids = [store.create(ada, string_input("Name?")).id for _ in range(4)]
    with psycopg.connect(database.superuser) as connection:
        connection.execute("UPDATE gopher_mcp.mcp_elicitations SET created_at = now() - interval '2 minutes', "
                           "expires_at = now() - interval '1 minute' WHERE caller = %s", [ada])  # fmt: skip
    with backend.transaction(None) as other:
        assert set(ids) <= {row.id for row in other.expired(1000)}
        with backend.transaction(None) as tx:
            assert not set(ids) & {row.id for row in tx.expired(1000)}
        assert store.sweep() == 0
    assert store.sweep() == 4
    assert {status for id, status in database.all_rows() if id in ids} == {"expired"}
    with backend.transaction(None) as other:
        assert set(ids) <= {row.id for row in other.prunable(other.now(), 1000)}
        with backend.transaction(None) as tx:
            assert not set(ids) & {row.id for row in tx.prunable(tx.now(), 1000)}
    assert store.prune(days=0) >= 4
    rows: dict[str, Any] = dict(database.all_rows("id, question"))
    assert [rows[id] for id in ids] == [None] * 4


# ---- The audit ------------------------------------------------------------------------------------------------------


def test_the_chain_is_the_databases_and_checked_here(
    store: Store, backend: PostgresBackend, database: Database
) -> None:
    store.create("ada", string_input("Name?"))
    rows = database.all_rows("seq, text, previous, hash", "mcp_elicitation_audit")
    assert [row[0] for row in rows] == list(range(1, len(rows) + 1))
    previous = GENESIS
    for seq, text, before, hashed in rows:
        assert before == previous and hashed == chain_hash(seq, previous, text)
        previous = hashed
    assert store.verify().ok


def test_a_database_that_chains_otherwise_is_not_believed(database: Database) -> None:
    forging = store_postgres.database(database.server)
    with psycopg.connect(forging.superuser) as connection:
        connection.execute(
            "CREATE OR REPLACE FUNCTION gopher_mcp.mcp_append_audit(told text, OUT seq bigint, OUT previous text, "
            "OUT hash text) LANGUAGE sql AS $$ SELECT 1::bigint, repeat('0', 64), repeat('1', 64) $$"
        )
    with Store(PostgresBackend(forging.app), KeyRing([KEY])) as store:
        with pytest.raises(StoreError, match="chained the audit wrongly"):
            store.create("ada", string_input("Name?"))
    assert forging.all_rows() == []


def test_a_list_takes_the_index(database: Database) -> None:
    """Those of the caller that are pending, by the partial index."""
    large = store_postgres.database(database.server)
    fill(large, 20_000)
    for query, values in (
        (_PENDING_FIRST, ["ada", 101, PAGE_BYTES]),
        (_PENDING_BEHIND, ["ada", datetime.now(timezone.utc), "el_x", 101, PAGE_BYTES]),
    ):
        with psycopg.connect(large.app) as connection:
            become(connection, "ada")
            plan = "\n".join(line for (line,) in connection.execute(f"EXPLAIN {query}".encode(), values))
        assert "mcp_elicitations_pending_by_caller" in plan and "Seq Scan" not in plan, plan


def test_what_a_superuser_changed_in_the_audit_shows(database: Database) -> None:
    spoilt = store_postgres.database(database.server)
    with Store(PostgresBackend(spoilt.app), KeyRing([KEY])) as store:
        for _ in range(3):
            store.create("ada", string_input("Name?"))
        assert store.verify().ok
        with psycopg.connect(spoilt.superuser) as connection:
            connection.execute("ALTER TABLE gopher_mcp.mcp_elicitation_audit DISABLE TRIGGER ALL")
            connection.execute(
                "UPDATE gopher_mcp.mcp_elicitation_audit SET text = replace(text, 'ada', 'eve') WHERE seq = 2"
            )
        assert [fault.seq for fault in store.verify().faults][:1] == [2]


# ---- Texts ----------------------------------------------------------------------------------------------------------


def test_sql_in_every_field_is_text(store: Store, database: Database) -> None:
    caller = f"caller {SQL}"
    made = [
        store.create(caller, string_input(SQL)),
        store.create(caller, single_choice(SQL, [SQL, "b"])),
        store.create(caller, multi_choice(SQL, [SQL, "b"])),
        store.create(caller, file_upload(SQL)),
        store.create(caller, confirmation(SQL, tool=SQL, arguments={SQL: SQL}, server=SQL)),
    ]
    answers = [
        {"value": SQL},
        {"choice": SQL},
        {"choices": [SQL]},
        None,
        {"confirmed": True},
    ]
    assert [one.id for one in store.pending(caller)] == [one.id for one in made]
    for asked, answer in zip(made, answers, strict=True):
        if answer is not None:
            assert store.respond(caller, asked.id, answer, by=SQL).kind == "recorded"
            assert store.result(caller, asked.id) == answer
    assert store.cancel(caller, made[3].id, by=SQL).kind == "recorded"
    assert store.get(caller, made[4].id).tool == SQL and store.get(caller, made[4].id).server == SQL
    found = store.find_confirmation(caller, tool=SQL, arguments={SQL: SQL}, server=SQL)
    assert found is not None and found.id == made[4].id
    for act in (store.get, store.result, store.cancel, lambda caller, id: store.pending(caller, after=id)):
        with pytest.raises(ElicitationNotFound):
            act(caller, SQL)
    assert store.consume(caller, made[4].id, tool=SQL, arguments={SQL: SQL}, server=SQL) == "consumed"
    assert store.verify().ok
    assert {row[1] for row in database.all_rows("id, caller") if row[0] in {one.id for one in made}} == {caller}


def test_ids_that_no_row_can_have(backend: PostgresBackend) -> None:
    for caller in ("ada", None):
        with backend.transaction(caller) as tx:
            for id in (SQL, "\ud800", "é", "", "x" * 100_000, "a\0b"):
                assert tx.get(id) is None and tx.lock(id) is None
    with backend.transaction(None) as tx:
        assert tx.due([SQL, "\ud800", "é", ""]) == set()


def test_a_text_that_postgres_can_not_keep_is_a_value_error(backend: PostgresBackend, ada: str) -> None:
    def insert(tool: str) -> None:
        with backend.transaction(ada) as tx:
            now = tx.now()
            tx.insert(Row("el_t", ada, "form", None, "pending", None, tool, b"", None, now, now + timedelta(1)))

    for tool in ("a\0b", "a\ud800b"):
        with pytest.raises(ValueError) as caught:
            insert(tool)
        assert tool not in str(caught.value) and caught.value.__context__ is None
    with backend.transaction(ada) as tx:
        assert tx.get("el_t") is None


def test_nothing_secret_is_in_a_dump(database: Database) -> None:
    dumped = store_postgres.database(database.server)
    secrets = {kind: canary.secret(kind) for kind in ("message", "argument", "answer", "choice", "value", "dsn")}
    with Store(PostgresBackend(dumped.app), KeyRing([KEY])) as store:
        asked = store.create_confirmation(
            "ada", tool="send", arguments={"to": secrets["argument"]}, message=secrets["message"]
        )
        store.respond("ada", asked.id, {"confirmed": True})
        store.consume("ada", asked.id, tool="send", arguments={"to": secrets["argument"]})
        chosen = store.create("ada", single_choice(secrets["message"], [secrets["choice"], "b"]))
        store.respond("ada", chosen.id, {"choice": secrets["choice"]})
        given = store.create("ada", string_input(secrets["message"]))
        for _ in range(2):
            store.respond("ada", given.id, {"wrong": secrets["value"]})
        store.respond("ada", given.id, {"value": secrets["answer"]})
        text = dumped.server.dump(dumped.name)
    assert asked.id in text and chosen.id in text, "the dump has the rows"
    for plain in [*secrets.values(), canary.MARK]:
        for form in (plain, plain.encode().hex(), base64.b64encode(plain.encode()).decode()[:20]):
            assert form not in text, "a secret is in the dump"
    assert KEY.hex() not in text


# ---- Logins, the pool -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("login", "told"),
    [("superuser", "is a superuser or may bypass row-level security"), ("owner", "owns the tables")],
)
def test_a_login_that_rows_are_not_hidden_from_is_refused(database: Database, login: str, told: str) -> None:
    with closing(PostgresBackend(getattr(database, login))) as backend:
        with pytest.raises(StoreError, match=told), backend.transaction("ada"):
            pass


@pytest.mark.parametrize("role", ["gopher_mcp_keeper", store_postgres.OWNER])
def test_a_login_that_may_become_somebody_mightier_is_refused(database: Database, role: str) -> None:
    login = f"both_{role}"
    with psycopg.connect(database.superuser) as connection:
        made = (
            f"CREATE ROLE {login} LOGIN NOINHERIT PASSWORD '{store_postgres.PASSWORD}' IN ROLE gopher_mcp_app, {role}"
        )
        connection.execute(made.encode())
    dsn = database.server.dsn(database.name, user=login) + " options='-c role=gopher_mcp_app'"
    with closing(PostgresBackend(dsn)) as backend:
        with pytest.raises(StoreError, match="owns the tables or keeps house"), backend.transaction("ada"):
            pass


def test_a_missing_driver_is_named_on_first_use_and_not_before() -> None:
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "import gopher_mcp_python.store.postgres as place\n"
        "try: place.PostgresBackend('dbname=store')\n"
        "except Exception as why: print(type(why).__name__, why)"
    )
    told = children.python(code).check().out
    assert told.startswith("StoreError ") and 'pip install -U "gopher-mcp-python[postgres]"' in told
    old = children.python(
        code.replace("sys.modules['psycopg'] = None", "import psycopg; psycopg.__version__ = '3.2.9'")
    )
    assert old.check().out.startswith(
        "StoreError psycopg 3.2.9 can't give up on a server that is stuck: pip install -U"
    )


def test_a_login_without_the_role_is_told_so(database: Database) -> None:
    dsn = database.server.dsn(database.name, user=store_postgres.STRANGER)
    with closing(PostgresBackend(dsn)) as backend:
        with pytest.raises(StoreError, match="role gopher_mcp_app"), backend.transaction("ada"):
            pass


def test_a_table_whose_row_level_security_was_taken_off_is_refused(database: Database) -> None:
    open_one = store_postgres.database(database.server)
    with psycopg.connect(open_one.owner) as connection:
        connection.execute("ALTER TABLE gopher_mcp.mcp_elicitations NO FORCE ROW LEVEL SECURITY")
    with pytest.raises(StoreError, match="row-level security was taken off"), open_one.transaction("ada"):
        pass


def test_the_pool_is_bounded_and_says_so(database: Database, ada: str) -> None:
    with closing(PostgresBackend(database.app, pool_size=2, wait_s=0.05)) as backend:
        with backend.transaction(ada), backend.transaction(ada):
            with pytest.raises(StoreError, match="all 2 connections to Postgres were busy"), backend.transaction(ada):
                pass
        with backend.transaction(ada), backend.transaction(ada):
            pass


def test_a_connection_is_used_again_and_never_with_anothers_name(database: Database, ada: str, eve: str) -> None:
    pid = "SELECT pg_backend_pid(), current_setting('gopher.caller', true)"
    with closing(PostgresBackend(database.app, pool_size=1)) as backend:
        seen = []
        for caller in (ada, None, eve):
            with backend.transaction(caller) as tx:
                seen += tx._run(pid)
        with pytest.raises(KeyError), backend.transaction(ada):
            raise KeyError("the transaction fails")
        with backend.transaction(eve) as tx:
            seen += tx._run(pid)
        (idle,) = backend._pool._idle
        assert idle.execute("SELECT current_setting('gopher.caller', true)").fetchone() == ("",)
    assert len({number for number, _ in seen}) == 1
    assert [name for _, name in seen] == [ada, "", eve, eve]


def test_a_failed_statement_that_was_passed_over_is_no_commit(backend: PostgresBackend, ada: str) -> None:
    with pytest.raises(StoreError, match="nothing was recorded"), backend.transaction(ada) as tx:
        with pytest.raises(StoreError):
            tx._run("SELECT nothing_of_that_name")


def test_a_reading_transaction_can_not_write(backend: PostgresBackend, ada: str) -> None:
    with pytest.raises(StoreError), backend.transaction(ada, write=False) as tx:
        tx.append_audit("{}")


def test_nothing_tells_the_password(database: Database) -> None:
    backend = PostgresBackend(database.app)
    told = f"{backend!r} {backend.name} {backend._pool!r} {Store(backend, KeyRing([KEY]))!r}"
    assert store_postgres.PASSWORD not in told and "127.0.0.1" in told
    for dsn in ("hello pass-word-44", "postgresql://a:pass-word-44@["):
        with pytest.raises(ValueError, match="can't be read") as caught:
            PostgresBackend(dsn)
        assert "pass-word-44" not in str(caught.value) and caught.value.__context__ is None
    for dsn in ("postgresql://a:b@pass-word-44@host.test/db", "postgresql://a:b/pass-word-44@host.test/db"):
        assert "pass-word-44" not in PostgresBackend(dsn).name and "host.test" in PostgresBackend(dsn).name


@pytest.mark.parametrize(("set_to", "used"), [("off", "on"), ("local", "local")])
def test_what_is_acknowledged_is_on_disk_whatever_somebody_has_set(
    database: Database, ada: str, set_to: str, used: str
) -> None:
    with psycopg.connect(database.superuser, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {database.name} SET synchronous_commit = {set_to}")
        try:
            with database.transaction(ada) as tx:
                assert tx._connection.execute("SHOW synchronous_commit").fetchone() == (used,)
        finally:
            connection.execute(f"ALTER DATABASE {database.name} RESET synchronous_commit")


def test_a_forked_child_is_refused_and_harms_nothing(database: Database, ada: str) -> None:
    heard = threading.Event()
    with closing(PostgresBackend(database.app)) as backend:
        backend.listen(lambda id: heard.set() if id == "el_after" else None)
        with backend.transaction(ada):
            pass
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12: this process has threads
            child = os.fork()
        if child == 0:
            refused = 0
            try:
                for use in (lambda: backend.transaction(ada).__enter__(), lambda: backend.listen(print)):
                    try:
                        use()
                    except StoreError:
                        refused += 1
                backend.close()
            finally:
                os._exit(0 if refused == 2 else 1)
        assert os.waitpid(child, 0)[1] == 0
        (idle,) = backend._pool._idle
        with backend.transaction(ada) as tx:  # on the same connection as before
            assert tx._connection is idle
            tx.notify("el_after")
        assert heard.wait(60)


def test_closed(database: Database, ada: str) -> None:
    backend = PostgresBackend(database.app)
    with backend.transaction(ada):
        pass
    backend.close()
    backend.close()
    with pytest.raises(StoreError, match="closed"), backend.transaction(ada):
        pass
    with pytest.raises(StoreError, match="closed"):
        backend.listen(print)
