"""Postgres goes away: killed between any two statements, frozen, restarted; notifications get lost."""

from __future__ import annotations

import selectors
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest

from gopher_mcp_python.store.core import Store
from gopher_mcp_python.store.errors import StoreError
from gopher_mcp_python.store.keys import KeyRing
from gopher_mcp_python.store.model import ElicitationStatus, string_input
from gopher_mcp_python.store.postgres import Limits, PostgresBackend
from gopher_mcp_python.store.postgres.connecting import _bounded
from tests.support import children, store_postgres
from tests.support.postgres import Postgres
from tests.support.store_postgres import Database

KEY = bytes(range(32))
FAR = 60  # seconds: no test waits that long, a failing one ends


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with store_postgres.running() as running:
        yield running


@pytest.fixture
def database(server: Postgres) -> Database:
    return store_postgres.database(server)


@pytest.fixture
def backend(database: Database) -> Iterator[PostgresBackend]:
    with closing(PostgresBackend(database.app)) as opened:
        yield opened


@pytest.fixture
def store(backend: PostgresBackend) -> Iterator[Store]:
    with Store(backend, KeyRing([KEY]), rate=None) as opened:
        yield opened


# ---- Away and back --------------------------------------------------------------------------------------------------


def test_a_server_that_is_down_is_an_error_at_once_and_used_again_when_it_is_back(
    store: Store, server: Postgres
) -> None:
    asked = store.create_confirmation("ada", tool="t", arguments={})
    store.respond("ada", asked.id, {"confirmed": True})
    server.kill()
    try:
        for attempt in (
            lambda: store.get("ada", asked.id),
            lambda: store.create("ada", string_input("Name?")),
            lambda: store.consume("ada", asked.id, tool="t", arguments={}),
            lambda: store.is_confirmed("ada", asked.id),
            store.sweep,
            store.check,
        ):
            with pytest.raises(StoreError, match="can't be reached"):
                attempt()
    finally:
        server.start()
    store.check()  # the first call, not one after some pause
    assert store.is_confirmed("ada", asked.id)
    assert store.consume("ada", asked.id, tool="t", arguments={}) == "consumed"


def test_a_store_may_be_opened_before_its_server_is_there(database: Database, server: Postgres) -> None:
    server.kill()
    try:
        with closing(PostgresBackend(database.app)) as backend, Store(backend, KeyRing([KEY])) as store:
            with pytest.raises(StoreError, match="can't be reached"):
                store.check()
            server.start()
            store.create("ada", string_input("Name?"))
    finally:
        if not server.running:
            server.start()


def test_a_server_that_neither_answers_nor_closes_is_given_up(backend: PostgresBackend, server: Postgres) -> None:
    with backend.transaction("ada"):
        pass
    (idle,) = backend._pool._idle
    idle.answer_s = 0.3
    server.freeze()
    try:
        with pytest.raises(StoreError, match="does not answer"), backend.transaction("ada"):
            pass
    finally:
        server.thaw()
    with backend.transaction("ada") as tx:
        assert tx.get("el_1") is None


def test_a_row_that_somebody_holds_too_long_is_an_error(database: Database, store: Store) -> None:
    asked = store.create("ada", string_input("Name?"))
    limits = Limits(lock_s=0.2)
    with psycopg.connect(database.superuser) as holder:
        holder.execute("SELECT FROM gopher_mcp.mcp_elicitations WHERE id = %s FOR UPDATE", [asked.id])
        with closing(PostgresBackend(database.app, limits=limits)) as impatient:
            with pytest.raises(StoreError, match="too busy"), impatient.transaction("ada") as tx:
                tx.lock(asked.id)
    assert store.respond("ada", asked.id, {"value": "Ada"}).kind == "recorded"


def test_every_connection_cut_at_once_is_noticed_by_nobody(store: Store, database: Database) -> None:
    asked = store.create("ada", string_input("Name?"))
    assert database.terminate("%") >= 1
    assert store.respond("ada", asked.id, {"value": "Ada"}).kind == "recorded"
    assert database.terminate("%") >= 1
    assert store.result("ada", asked.id) == {"value": "Ada"}


# ---- Killed between two statements ----------------------------------------------------------------------------------


class Killing:
    """Kills the server with SIGKILL before the n-th statement of an action, counted from 0; None only counts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, server: Postgres) -> None:
        self._server = server
        self._real = _bounded().execute
        self.before: int | None = None
        self.seen = 0
        killing = self

        def execute(connection: Any, query: Any, *args: Any, **more: Any) -> Any:
            if killing.seen == killing.before:
                killing.before = None
                killing._server.kill()
            killing.seen += 1
            return killing._real(connection, query, *args, **more)

        monkeypatch.setattr(_bounded(), "execute", execute)

    def statements(self, action: Callable[[], Any]) -> int:
        """How many statements an action takes."""
        self.seen, self.before = 0, None
        action()
        return self.seen

    def kill_before(self, number: int, action: Callable[[], Any]) -> bool:
        """Whether the action was acknowledged although the server died before its statement `number`."""
        self.seen, self.before = 0, number
        try:
            action()
        except StoreError:
            acknowledged = False
        else:
            acknowledged = True
        assert self.before is None, "the server was not killed"
        self._server.start()
        return acknowledged


def test_killed_before_each_statement_of_an_answer_and_of_its_use(
    store: Store, server: Postgres, monkeypatch: pytest.MonkeyPatch, database: Database
) -> None:
    """Nothing is half done, nothing acknowledged is lost, an approval is used once, and the chain stays whole."""

    def ask() -> str:
        return store.create_confirmation("ada", tool="t", arguments={"a": 1}).id

    killing = Killing(monkeypatch, server)
    warm = ask()
    answering = killing.statements(lambda: store.respond("ada", warm, {"confirmed": True}))
    using = killing.statements(lambda: store.consume("ada", warm, tool="t", arguments={"a": 1}))
    finishing = killing.statements(lambda: store.complete("ada", warm))
    assert min(answering, using, finishing) >= 4  # begin, lock, update, audit, commit
    for number in range(answering):
        id = ask()
        assert not killing.kill_before(number, lambda id=id: store.respond("ada", id, {"confirmed": True}))
        assert store.confirmation_state("ada", id) == "pending", f"killed before statement {number}"
        assert store.respond("ada", id, {"confirmed": True}).kind == "recorded"
        assert store.confirmation_state("ada", id) == "approved"
    for number in range(using):
        id = ask()
        store.respond("ada", id, {"confirmed": True})
        use = lambda id=id: store.consume("ada", id, tool="t", arguments={"a": 1})  # noqa: E731
        assert not killing.kill_before(number, use)
        assert store.confirmation_state("ada", id) == "approved", f"killed before statement {number}"
        assert [use(), use()] == ["consumed", "unknown"]
    # Between the answer and its use, and between the use and the end of the call.
    id = ask()
    store.respond("ada", id, {"confirmed": True})
    server.kill()
    server.start()
    assert store.consume("ada", id, tool="t", arguments={"a": 1}) == "consumed"
    server.kill()
    server.start()
    assert store.consume("ada", id, tool="t", arguments={"a": 1}) == "unknown"
    store.complete("ada", id)
    server.kill()
    server.start()
    assert store.consume("ada", id, tool="t", arguments={"a": 1}) == "used"
    assert store.verify().ok


def test_killed_after_a_commit_that_nobody_acknowledged(
    store: Store, server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server has it and can't say so any more: an error, and asking again tells what became of it."""
    real = _bounded().execute

    def unheard(action: Callable[[], Any]) -> None:
        def execute(connection: Any, query: Any, *args: Any, **more: Any) -> Any:
            done = real(connection, query, *args, **more)
            if isinstance(query, bytes) and query.endswith(b" COMMIT"):
                server.kill()
                connection.close()
                raise psycopg.OperationalError("the connection is gone")
            return done

        with monkeypatch.context() as patched:
            patched.setattr(_bounded(), "execute", execute)
            with pytest.raises(StoreError, match="can't be reached"):
                action()
        server.start()

    asked = store.create_confirmation("ada", tool="t", arguments={"a": 1})
    unheard(lambda: store.respond("ada", asked.id, {"confirmed": True}))
    assert store.respond("ada", asked.id, {"confirmed": True}).kind == "already_recorded"
    assert store.respond("ada", asked.id, {"confirmed": False}).kind == "conflict"
    unheard(lambda: store.consume("ada", asked.id, tool="t", arguments={"a": 1}))
    assert store.consume("ada", asked.id, tool="t", arguments={"a": 1}) == "unknown"
    assert store.verify().ok


_HOLDER = """
import sys
from gopher_mcp_python.store.postgres import PostgresBackend
with PostgresBackend(sys.argv[1]).transaction("ada") as tx:
    tx.lock(sys.argv[2])
    tx.update(sys.argv[2], status="cancelled", ended_at=tx.now())
    tx.append_audit("{}")
    print("holding", flush=True)
    sys.stdin.read()
"""


def test_a_replica_that_is_killed_lets_go_of_what_it_held(store: Store, database: Database) -> None:
    """The row, and the turn at the audit's chain."""
    asked = store.create("ada", string_input("Name?"))
    argv = [sys.executable, "-c", _HOLDER, database.app, asked.id]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=children.environment()) as replica:
        try:
            assert replica.stdout is not None and replica.stdout.readline() == b"holding\n"
        finally:
            replica.kill()
    assert store.respond("ada", asked.id, {"value": "Ada"}).kind == "recorded"
    assert store.verify().ok


# ---- Waiting and hearing --------------------------------------------------------------------------------------------


class Waiting:
    """A thread in `wait`, and a moment at which it surely is."""

    def __init__(self, store: Store, id: str) -> None:
        self.inside = threading.Event()
        self.ended: Any = None
        self._thread = threading.Thread(target=self._run, args=[store, id])
        self._thread.start()
        assert self.inside.wait(FAR)

    def _run(self, store: Store, id: str) -> None:
        def wanted() -> bool:  # asked after the first look at the row, under the watch of the notifications
            self.inside.set()
            return True

        self.ended = store.wait("ada", id, timeout_s=FAR, still_wanted=wanted)

    def over(self) -> ElicitationStatus:
        self._thread.join(FAR + 10)
        status: ElicitationStatus = self.ended.status
        return status


def test_an_answer_of_another_replica_wakes_a_waiter(store: Store, database: Database) -> None:
    asked = store.create("ada", string_input("Name?"))
    waiting = Waiting(store, asked.id)
    with closing(PostgresBackend(database.app)) as backend, Store(backend, KeyRing([KEY])) as other:
        other.respond("ada", asked.id, {"value": "Ada"})
    assert waiting.over() is ElicitationStatus.RESPONDED


def test_a_waiter_is_woken_though_its_notification_was_lost(
    store: Store, backend: PostgresBackend, database: Database
) -> None:
    """The connection that listens is cut, and cut again while it comes back: the poll behind it sees the answer."""
    asked = store.create("ada", string_input("Name?"))
    waiting = Waiting(store, asked.id)
    assert database.terminate("LISTEN%") == 1
    with closing(PostgresBackend(database.app)) as other, Store(other, KeyRing([KEY])) as replica:
        replica.respond("ada", asked.id, {"value": "Ada"})
    database.terminate("LISTEN%")
    assert waiting.over() is ElicitationStatus.RESPONDED


def test_a_waiter_is_woken_though_nobody_listens_any_more(
    store: Store, backend: PostgresBackend, database: Database
) -> None:
    asked = store.create("ada", string_input("Name?"))
    waiting = Waiting(store, asked.id)
    assert backend._listener is not None
    backend._listener.close()
    store.respond("ada", asked.id, {"value": "Ada"})
    assert waiting.over() is ElicitationStatus.RESPONDED


def test_waiters_hear_again_after_a_restart(store: Store, backend: PostgresBackend, server: Postgres) -> None:
    heard: list[str | None] = []
    again, told = threading.Event(), threading.Event()

    def hear(id: str | None) -> None:
        heard.append(id)
        (again if id is None else told).set()

    end = backend.listen(hear)
    again.clear()
    server.kill()
    server.start()
    assert again.wait(FAR), "the listener did not come back"
    assert heard.count(None) >= 1
    asked = store.create("ada", string_input("Name?"))
    assert told.wait(FAR) and heard[-1] == asked.id
    end()
    told.clear()
    store.cancel("ada", asked.id)
    assert not told.is_set()


def test_notifications_carry_an_id_and_nothing_else(store: Store, database: Database) -> None:
    with psycopg.connect(database.superuser, autocommit=True) as connection:
        connection.execute("LISTEN gopher_mcp_elicitations")
        asked = store.create_confirmation("ada", tool="t", arguments={"a": "secret"})
        store.respond("ada", asked.id, {"confirmed": True})
        told = [notify.payload for notify in connection.notifies(timeout=FAR, stop_after=2)]
    assert told == [asked.id, asked.id]


def test_a_notification_that_comes_with_the_probe_of_an_idle_connection_is_heard(
    backend: PostgresBackend, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """psycopg takes it then, since a statement runs."""
    told, probed = threading.Event(), threading.Event()

    class Idle(selectors.DefaultSelector):
        def select(self, timeout: float | None = None) -> Any:
            if probed.is_set():
                return super().select(timeout)
            with psycopg.connect(database.superuser, autocommit=True) as other:
                other.execute("SELECT pg_notify('gopher_mcp_elicitations', 'el_probe')")
            probed.set()
            return []

    monkeypatch.setattr(selectors, "DefaultSelector", Idle)  # psycopg has its own name for it
    end = backend.listen(lambda id: told.set() if id == "el_probe" else None)
    assert told.wait(FAR) and probed.is_set()
    end()


def test_what_strangers_notify_is_a_hint_and_no_more(
    store: Store, backend: PostgresBackend, database: Database
) -> None:
    asked = store.create("ada", string_input("Name?"))
    waiting = Waiting(store, asked.id)
    changes: list[Any] = []
    known = threading.Event()

    def change(told: Any) -> None:
        changes.append(told)
        if told.id == asked.id:
            known.set()

    end = store.subscribe(change)
    with psycopg.connect(database.superuser, autocommit=True) as stranger:
        for payload in ("", "x" * 7000, "el_nobody", "'; DROP TABLE a; --", "\u2028é", asked.id):
            stranger.execute("SELECT pg_notify('gopher_mcp_elicitations', %s)", [payload])
    assert known.wait(FAR)
    assert [one.status for one in changes if one.id is not None] == [ElicitationStatus.PENDING]
    end()
    store.respond("ada", asked.id, {"value": "Ada"})
    assert waiting.over() is ElicitationStatus.RESPONDED


def test_nothing_that_was_rolled_back_is_told(store: Store, backend: PostgresBackend) -> None:
    heard: list[str | None] = []
    told = threading.Event()

    def hear(id: str | None) -> None:
        heard.append(id)
        if id == "el_after":
            told.set()

    end = backend.listen(hear)

    def fail() -> None:
        with backend.transaction("ada") as tx:
            tx.notify("el_before")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    with backend.transaction("ada") as tx:
        tx.notify("el_after")
    assert told.wait(FAR) and "el_before" not in heard
    end()


def test_listening_begins_though_the_server_is_away(database: Database, server: Postgres) -> None:
    heard = threading.Event()
    server.kill()
    try:
        with closing(PostgresBackend(database.app)) as backend:
            end = backend.listen(lambda id: heard.set())
            assert not heard.is_set()
            server.start()
            assert heard.wait(FAR)
            end()
    finally:
        if not server.running:
            server.start()


def test_a_listener_is_closed_whose_thread_has_just_seen_that_it_ends(database: Database, server: Postgres) -> None:
    """It pauses, as there is no server, and is gone before `close` would wake it."""
    server.kill()
    try:
        backend = PostgresBackend(database.app)
        backend.listen(lambda id: None)
        listener = backend._listener
        assert listener is not None
        stopping = listener._stopping
        tell = stopping.set

        def told_and_gone() -> None:
            tell()
            listener._thread.join(FAR)

        stopping.set = told_and_gone  # type: ignore[method-assign]
        backend.close()
        assert not listener._thread.is_alive()
    finally:
        server.start()
