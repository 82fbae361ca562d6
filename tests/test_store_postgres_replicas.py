"""Two processes on one database: every question is answered once, every approval used once, nothing is lost."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from gopher_mcp_python.store.core import Store
from gopher_mcp_python.store.errors import RateLimited
from gopher_mcp_python.store.keys import KeyRing
from gopher_mcp_python.store.model import string_input
from gopher_mcp_python.store.postgres import PostgresBackend
from tests.support import children, store_postgres
from tests.support.postgres import Postgres
from tests.support.store_postgres import Database

KEY = bytes(range(32))
MANY = 1_000

# Answers every question both ways on several threads, then tries to use every approval.
_REPLICA = """
import json, sys, threading
from concurrent.futures import ThreadPoolExecutor
from gopher_mcp_python.store.core import Store
from gopher_mcp_python.store.keys import KeyRing
from gopher_mcp_python.store.postgres import PostgresBackend

dsn, verdict, ids = sys.argv[1], sys.argv[2] == "yes", json.load(sys.stdin)
with Store(PostgresBackend(dsn, pool_size=4), KeyRing([bytes(range(32))]), rate=None) as store:
    store.check()
    print("ready", flush=True)
    ids = ids if verdict else ids[::-1]
    with ThreadPoolExecutor(4) as threads:
        answered = dict(zip(ids, threads.map(lambda id: store.respond("ada", id, {"confirmed": verdict}).kind, ids)))
        used = dict(zip(ids, threads.map(lambda id: store.consume("ada", id, tool="t", arguments={"n": 1}), ids)))
print(json.dumps([answered, used]))
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with store_postgres.running() as running:
        yield running


@pytest.fixture
def database(server: Postgres) -> Database:
    return store_postgres.database(server)


@pytest.fixture
def store(database: Database) -> Iterator[Store]:
    with Store(PostgresBackend(database.app), KeyRing([KEY]), rate=None) as opened:
        yield opened


def _replicas(database: Database, ids: list[str]) -> list[Any]:
    """What two processes report, which start answering when both are there."""
    argv = [sys.executable, "-c", _REPLICA, database.app]
    running = [
        subprocess.Popen(
            [*argv, verdict], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=children.environment()
        )
        for verdict in ("yes", "no")
    ]
    for one in running:
        assert one.stdin is not None
        one.stdin.write(json.dumps(ids))
        one.stdin.close()
        one.stdin = None
    told = [one.communicate(timeout=150)[0] for one in running]
    assert [one.returncode for one in running] == [0, 0]
    return [json.loads(text.splitlines()[-1]) for text in told]


def test_a_thousand_confirmations_answered_by_two_replicas(store: Store, database: Database) -> None:
    ids = [store.create_confirmation("ada", tool="t", arguments={"n": 1}).id for _ in range(MANY)]
    (yes, used_here), (no, used_there) = _replicas(database, ids)
    rows = {id: (status, confirmed) for id, status, confirmed in database.all_rows("id, status, confirmed")}
    assert set(ids) <= set(rows)
    uses: Counter[str] = Counter()
    for id in ids:
        assert sorted((yes[id], no[id])) == ["conflict", "recorded"], "one winner each"
        assert rows[id] == ("responded", yes[id] == "recorded"), "the winner's answer is the one that is kept"
        uses[id] = [used_here[id], used_there[id]].count("consumed")
        assert uses[id] == (1 if yes[id] == "recorded" else 0), "used once, if it was a yes"
    assert store.pending("ada") == []
    assert store.verify().ok
    events = Counter(json.loads(text)["event"] for _, text in database.all_rows("seq, text", "mcp_elicitation_audit"))
    assert events == {"requested": MANY, "responded": MANY, "consumed": sum(uses.values())}


def test_the_rate_limit_holds_across_replicas(database: Database) -> None:
    """Two that ask at once don't both find room for the last one."""
    stores = [Store(PostgresBackend(database.app), KeyRing([KEY]), rate=(5, 3600)) for _ in range(2)]
    made: list[str] = []
    together = threading.Barrier(8)

    def ask(store: Store) -> None:
        together.wait(60)
        try:
            for _ in range(5):
                made.append(store.create("bob", string_input("Name?")).id)
        except RateLimited:
            pass

    threads = [threading.Thread(target=ask, args=[stores[number % 2]]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    for store in stores:
        store.close()
    assert len(made) == 5


def test_replicas_that_sweep_and_prune_together_do_each_row_once(store: Store, database: Database) -> None:
    ids = {store.create("eve", string_input("Name?")).id for _ in range(250)}
    with psycopg.connect(database.superuser) as connection:
        connection.execute("UPDATE gopher_mcp.mcp_elicitations SET created_at = now() - interval '2 minutes', "
                           "expires_at = now() - interval '1 minute' WHERE caller = 'eve'")  # fmt: skip
    store.prune(days=0)  # what other tests have left
    others = [Store(PostgresBackend(database.app), KeyRing([KEY])) for _ in range(3)]

    def all_at_once(chore: Callable[[Store], int]) -> int:
        done: list[int] = []
        together = threading.Barrier(len(others))

        def do(other: Store) -> None:
            together.wait(60)
            done.append(chore(other))

        threads = [threading.Thread(target=do, args=[other]) for other in others]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        return sum(done) + chore(store)

    before = len(database.all_rows("seq", "mcp_elicitation_audit"))
    assert all_at_once(lambda one: one.sweep()) == 250
    assert all_at_once(lambda one: one.prune(days=0)) == 250
    for other in others:
        other.close()
    texts = [json.loads(text) for _, text in database.all_rows("seq, text", "mcp_elicitation_audit")][before:]
    timeouts = Counter(text["elicitation"] for text in texts if text["event"] == "timeout")
    assert set(timeouts) == ids and set(timeouts.values()) == {1}
    assert sum(text["count"] for text in texts if text["event"] == "pruned") == 250
    assert {row[1:] for row in database.all_rows("id, question, response") if row[0] in ids} == {(None, None)}
