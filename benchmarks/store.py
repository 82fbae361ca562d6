"""The elicitation store on a real PostgreSQL server: how soon a waiter wakes, how lists grow, what the rules cost.

The server has its own settings: what it has acknowledged is on the disk. `fast_*` are the figures of a server that
waits for no disk, where the SQL takes less time and our own share is the larger.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks._report import Compared, Target, main, median, note, rounded

WAKES, POLLS = 60, 30
LISTS, PAIRS = 60, 400
MANY, FEW = 1_000_000, 1_000
OPEN = 20  # questions that the caller has to answer, in both tables
POLL_S = 0.1

TARGETS = (
    Target("wake_ratio", "<=", 0.2, "respond until a waiter has the answer, against polling every 100 ms"),
    Target("pending_ratio", "<=", 1.5, f"pending at {MANY:,} rows against {FEW:,}"),
    Target("write_ratio", "<=", 1.3, "create and respond against the same SQL without us"),
)
COMPARED = (
    Compared("answered until a waiter has it", "wake_ms", "polled_ms", "wake_ratio", "polling every 100 ms"),
    Compared(f"list of who has to answer, {MANY:,} rows", "pending_many_ms", "pending_few_ms", "pending_ratio",
             f"the same at {FEW:,} rows"),
    Compared("question and answer stored", "write_ms", "sql_ms", "write_ratio", "the same SQL without us"),
    Compared("the same on a server that waits for no disk", "fast_write_ms", "fast_sql_ms", "fast_write_ratio",
             "the same SQL without us"),
)  # fmt: skip
QUICK = {"WAKES": 6, "POLLS": 6, "LISTS": 6, "PAIRS": 40}

# Rows of a thousand callers, of whom ours is one; every fiftieth is still open.
_FILL = """
INSERT INTO gopher_mcp.mcp_elicitations (id, caller, mode, type, status, server, tool, question, binding_mac,
    created_at, expires_at, response, response_mac, confirmed, retries, ended_at)
SELECT 'el_' || md5(n::text), CASE n %% 1000 WHEN 0 THEN 'ada' ELSE 'caller-' || n %% 1000 END, 'fixed', 'confirmation',
    CASE WHEN is_open THEN 'pending' ELSE 'responded' END::gopher_mcp.mcp_elicitation_status, 'files', 'delete_file',
    decode(repeat(md5(n::text), 8), 'hex'), repeat(md5(n::text), 2), made, made + interval '30 minutes',
    CASE WHEN NOT is_open THEN decode(repeat(md5(n::text), 2), 'hex') END,
    CASE WHEN NOT is_open THEN repeat(md5(n::text), 2) END, CASE WHEN NOT is_open THEN true END, 0,
    CASE WHEN NOT is_open THEN made + interval '1 minute' END
FROM (SELECT n, n %% 50 = 7 AND n %% 1000 <> 0 AS is_open, now() - n * interval '1 second' / 1000 AS made
      FROM generate_series(1, %s) AS n) AS rows"""


def _seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


@contextmanager
def _stores(*databases: Any) -> Iterator[list[Any]]:
    """A store on each database, all under one key."""
    from gopher_mcp_python.store import KeyRing, Store
    from gopher_mcp_python.store.postgres import PostgresBackend

    keys = KeyRing.generate()
    opened = [Store(PostgresBackend(database.app), keys, rate=None) for database in databases]
    try:
        yield opened
    finally:
        for store in opened:
            store.close()


# ---- Waking ---------------------------------------------------------------------------------------------------------


def _polled(store: Any, id: str) -> None:
    while store.get("ada", id).status == "pending":
        time.sleep(POLL_S)


def _answered(asking: Any, answering: Any, wait: Callable[[Any, str], object]) -> float:
    """Seconds from the beginning of `respond` until the waiter, which is at any point of its pause, has the answer."""
    id = asking.create_confirmation("ada", tool="t", arguments={}).id
    ended: list[float] = []
    waiter = threading.Thread(target=lambda: (wait(asking, id), ended.append(time.perf_counter())))
    waiter.start()
    time.sleep(0.05 + random.random() * POLL_S)
    begin = time.perf_counter()
    answering.respond("ada", id, {"confirmed": True})
    waiter.join()
    return ended[0] - begin


def _waking(database: Any) -> tuple[float, float]:
    note(f"{WAKES} waiters that are told, {POLLS} that poll")
    with _stores(database, database) as (asking, answering):
        told = [_answered(asking, answering, lambda store, id: store.wait("ada", id)) for _ in range(WAKES)]
        polled = [_answered(asking, answering, _polled) for _ in range(POLLS)]
    return median(told), median(polled)


# ---- Lists ----------------------------------------------------------------------------------------------------------


def _fill(database: Any, rows: int) -> None:
    import psycopg

    with psycopg.connect(database.superuser, autocommit=True) as connection:
        connection.execute(_FILL, [rows])
        connection.execute("VACUUM ANALYZE gopher_mcp.mcp_elicitations")


def _listing(few: Any, many: Any) -> tuple[list[float], list[float], list[float]]:
    """Times at few rows, at many, and the turns' ratios."""
    note(f"{MANY:,} rows")
    with _stores(few, many) as stores:
        for database, store, rows in ((few, stores[0], FEW), (many, stores[1], MANY)):
            _fill(database, rows)
            for _ in range(OPEN):
                store.create_confirmation("ada", tool="t", arguments={"path": "/tmp/a"}, timeout_s=1800)
        for store in stores * 10:
            assert len(store.pending("ada")) == OPEN
        times = [[_seconds(lambda store=store: store.pending("ada")) for store in stores] for _ in range(LISTS)]
    return [one for one, _ in times], [other for _, other in times], [other / one for one, other in times]


# ---- Writing --------------------------------------------------------------------------------------------------------


class _Raw:
    """What the store says to the server for one question and its answer, and nothing else: values that were made
    before, results that are fetched and dropped. The statements are those that it was heard to say."""

    def __init__(self, dsn: str, said: list[tuple[Any, Any, dict[str, Any]]]) -> None:
        import psycopg

        self._connection = psycopg.connect(dsn, autocommit=True)
        self._said = said
        self._number = 0

    def once(self) -> None:
        """The same statements for another id."""
        self._number += 1
        id = f"el_{self._number:022d}"
        for query, values, more in self._said:
            given = values and [id if value == "el_" else value for value in values]
            cursor = self._connection.execute(query, given, **more)
            while cursor.nextset():
                pass
            if cursor.rownumber is not None:  # it has rows
                cursor.fetchall()

    def close(self) -> None:
        self._connection.close()


def _heard(store: Any) -> list[tuple[Any, Any, dict[str, Any]]]:
    """The statements of one question and its answer; "el_" stands for the id."""
    from gopher_mcp_python.store.postgres import connecting

    said: list[tuple[Any, Any, dict[str, Any]]] = []
    kind = connecting._bounded()
    real = kind.execute

    def execute(connection: Any, query: Any, values: Any = None, **more: Any) -> Any:
        said.append((query, values, more))
        return real(connection, query, values, **more)

    kind.execute = execute
    try:
        id = _pair(store)
    finally:
        kind.execute = real
    return [
        (query, values and ["el_" if value == id else value for value in values], more) for query, values, more in said
    ]


def _pair(store: Any) -> str:
    id: str = store.create_confirmation("ada", tool="delete_file", arguments={"path": "/tmp/a"}).id
    assert store.respond("ada", id, {"confirmed": True}).kind == "recorded"
    return id


def _writing(database: Any) -> tuple[float, float, float]:
    """Seconds with us and without, and the median of the turns' ratios."""
    note(f"{PAIRS} questions and answers, with and without us")
    with _stores(database) as (store,):
        _pair(store)
        raw = _Raw(database.app, _heard(store))
        for _ in range(20):
            _pair(store), raw.once()
        times = [(_seconds(lambda: _pair(store)), _seconds(raw.once)) for _ in range(PAIRS)]
        raw.close()
    ours, bare = zip(*times, strict=True)
    return median(ours), median(bare), median([one / other for one, other in times])


def measure() -> dict[str, float | str | None]:
    """Milliseconds (medians) and ratios."""
    from tests.support import store_postgres

    with store_postgres.running() as server:
        fast_ours, fast_bare, fast_ratio = _writing(store_postgres.database(server))
    with store_postgres.running(durable=True) as server:
        woken, polled = _waking(store_postgres.database(server))
        ours, bare, ratio = _writing(store_postgres.database(server))
        few, many, grown = _listing(store_postgres.database(server), store_postgres.database(server))
    return {
        "wake_ms": rounded(woken * 1e3),
        "polled_ms": rounded(polled * 1e3),
        "wake_ratio": rounded(woken / polled),
        "pending_few_ms": rounded(median(few) * 1e3),
        "pending_many_ms": rounded(median(many) * 1e3),
        "pending_ratio": rounded(median(grown)),
        "write_ms": rounded(ours * 1e3),
        "sql_ms": rounded(bare * 1e3),
        "write_ratio": rounded(ratio),
        "fast_write_ms": rounded(fast_ours * 1e3),
        "fast_sql_ms": rounded(fast_bare * 1e3),
        "fast_write_ratio": rounded(fast_ratio),
    }


if __name__ == "__main__":
    raise SystemExit(main("benchmarks.store"))
