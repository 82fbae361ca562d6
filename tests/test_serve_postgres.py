"""The REST interface over a real PostgreSQL server: text stays text in every field, and a dump tells nothing of it."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from gopher_mcp_python.store import KeyRing, PostgresBackend, Store, model
from tests.support import canary, store_postgres
from tests.support.postgres import Postgres
from tests.support.serving import BASE, Serving

SQL = "'); DROP TABLE gopher_mcp.mcp_elicitations; --\" $1 %s %(a)s $$ \\ {0}"


@pytest.fixture(scope="module")
def _server() -> Iterator[Postgres]:
    with store_postgres.running() as server:
        yield server


@pytest.fixture
def database(_server: Postgres) -> store_postgres.Database:
    return store_postgres.database(_server)


@pytest.fixture
def serving(database: store_postgres.Database, tmp_path: Path) -> Iterator[Serving]:
    running = Serving(tmp_path, Store(PostgresBackend(database.app), KeyRing.generate(), rate=None))
    yield running
    running.close()


def test_sql_in_every_field_is_text(serving: Serving, database: store_postgres.Database) -> None:
    store = serving.store
    text = store.create("ada", model.string_input(SQL))
    choice = store.create("ada", model.single_choice(SQL, [SQL, "b"]))
    call = store.create_confirmation("ada", tool=SQL, arguments={SQL: SQL})
    file = store.create("ada", model.file_upload(SQL, media_types=["text/plain"]))
    for path in ("%27%3B--", "el_%27%3BDROP", f"el_{'A' * 21}%27"):
        assert serving.get(f"{BASE}/{path}").status == 404
        assert serving.get(f"{BASE}?after={path}").status == 422
        assert serving.get(f"{BASE}?limit={path}").status == 422
    assert serving.get(f"{BASE}/{text.id}").json["message"] == SQL
    assert serving.get(f"{BASE}/{call.id}").json["tool"] == SQL
    assert serving.respond(call.id, {"confirmed": True, SQL: SQL}).status == 422
    assert serving.respond(text.id, {"value": SQL}).status == 200
    assert serving.respond(choice.id, {"choice": SQL}).status == 200
    assert serving.respond(call.id, {"confirmed": True}).status == 200
    sent = serving.send_file(file.id, SQL.encode(), "text/plain", name="%27%3B--")
    assert (sent.status, sent.json["name"]) == (201, "';--")
    assert serving.respond(file.id, {"file_id": SQL}).status == 422
    assert serving.respond(file.id, {"file_id": sent.json["file_id"]}).status == 200
    answered = store.get("ada", text.id)
    assert answered.status == "responded" and serving.get("/ready").status == 200
    assert store.verify().ok
    with psycopg.connect(database.server.dsn(database.name)) as connection:
        rows = connection.execute("SELECT count(*) FROM gopher_mcp.mcp_elicitations").fetchone()
    assert rows == (4,), "the table is there, with all that was asked"


def test_nothing_that_is_answered_over_rest_is_in_a_dump(serving: Serving, database: store_postgres.Database) -> None:
    secrets = {kind: canary.secret(kind) for kind in ("message", "answer", "wrong", "argument")}
    asked = serving.store.create("ada", model.string_input(secrets["message"]))
    assert serving.respond(asked.id, {"wrong": secrets["wrong"]}).status == 422
    assert serving.respond(asked.id, {"value": secrets["answer"]}).status == 200
    call = serving.store.create_confirmation("ada", tool="t", arguments={"to": secrets["argument"]})
    assert serving.respond(call.id, {"confirmed": True}).status == 200
    text = database.server.dump(database.name)
    assert asked.id in text and call.id in text, "the dump has the rows"
    for plain in [*secrets.values(), serving.answer, serving.other]:
        for form in (plain, plain.encode().hex(), base64.b64encode(plain.encode()).decode()[:20]):
            assert form not in text, "a secret is in the dump"
