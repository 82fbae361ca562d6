"""What Postgres takes: a question and its answer, the lock of the audit's chain, notifications, lists, pruning."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from benchmarks._report import median, note
from benchmarks.scale.processes import at_once, cpu_of

CONNECTIONS = (1, 2, 4, 8, 16, 32)
CHAINS = (1, 2, 4, 8, 16)
AT_ONCE = 16  # connections for what is compared
TURNS = 300

# The audit as it is, with the chain's number as a part of its lock and its key; and the same without any chain.
_CHAINS = """
CREATE TABLE bench_chain (
    chain int, seq bigint, text text NOT NULL, previous text, hash text, PRIMARY KEY (chain, seq)
);
CREATE TABLE bench_free (seq bigserial PRIMARY KEY, text text NOT NULL, previous text, hash text);
CREATE FUNCTION bench_append(which int, told text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE number bigint; last text;
BEGIN
    PERFORM pg_advisory_xact_lock(4711, which);
    SELECT a.seq + 1, a.hash INTO number, last FROM bench_chain a WHERE chain = which ORDER BY a.seq DESC LIMIT 1;
    IF number IS NULL THEN number := 1; last := repeat('0', 64); END IF;
    INSERT INTO bench_chain VALUES (which, number, told, last,
        encode(sha256(convert_to(number || E'\\n' || last || E'\\n' || told, 'UTF8')), 'hex'));
END $$;
GRANT ALL ON bench_chain, bench_free TO PUBLIC;
GRANT ALL ON SEQUENCE bench_free_seq_seq TO PUBLIC
"""
_ANSWERED = """
INSERT INTO gopher_mcp.mcp_elicitations (id, caller, mode, type, status, server, tool, question, binding_mac,
    created_at, expires_at, response, response_mac, confirmed, retries, ended_at)
SELECT 'el_' || md5(n::text), 'caller-' || n %% 1000, 'fixed', 'confirmation', 'responded', 'files', 'delete_file',
    decode(repeat(md5(n::text), 8), 'hex'), repeat(md5(n::text), 2), now() - interval '2 days',
    now() - interval '1 day',
    decode(repeat(md5(n::text), 2), 'hex'), repeat(md5(n::text), 2), true, 0, now() - interval '1 day'
FROM generate_series(1, %s) AS n"""


def measure(server: Any, database: Any, seconds: float) -> dict[str, Any]:
    """All of it, on one database of a server with its own settings (what is acknowledged is on the disk)."""
    return {
        **_one_at_a_time(server, database),
        "pairs": _pairs(database, seconds),
        **_chains(database, seconds),
        **_notifications(database, seconds),
        **_maintenance(server, database),
    }


def _store(database: Any, pool_size: int = 2) -> Any:
    from gopher_mcp_python.store import KeyRing, Store
    from gopher_mcp_python.store.postgres import PostgresBackend

    return Store(PostgresBackend(database.app, pool_size=pool_size), KeyRing.generate(), rate=None)


def _timed(work: Callable[[], Any]) -> tuple[float, float]:
    """Seconds by the clock, and of this thread's processor."""
    begin, cpu = time.perf_counter(), time.thread_time()
    work()
    return time.perf_counter() - begin, time.thread_time() - cpu


def _one_at_a_time(server: Any, database: Any) -> dict[str, Any]:
    """One question after the other: times of each step, processor on both sides, bytes in the log and on the disk."""
    note("one question after the other")
    steps: dict[str, list[tuple[float, float]]] = {"create": [], "look": [], "pending": [], "respond": []}
    with _store(database) as store, psycopg.connect(database.superuser, autocommit=True) as looking:

        def once() -> None:
            made: list[str] = []
            ask = {"tool": "delete_file", "arguments": {"path": "/srv/a"}}
            steps["create"].append(_timed(lambda: made.append(store.create_confirmation("ada", **ask).id)))
            steps["look"].append(_timed(lambda: store.get("ada", made[0])))
            steps["pending"].append(_timed(lambda: store.pending("ada")))
            steps["respond"].append(_timed(lambda: store.respond("ada", made[0], {"confirmed": True})))

        for _ in range(100):
            once()
        looking.execute("CHECKPOINT")
        for times in steps.values():
            times.clear()
        place, sizes = _log_place(looking), _sizes(looking)
        for _ in range(TURNS):
            once()
        written, grown = _log_place(looking) - place, _sizes(looking)
        taken = _database_cpu(server, store)
    found: dict[str, Any] = {f"{name}_s": median([clock for clock, _ in times]) for name, times in steps.items()}
    found |= {f"{name}_cpu_s": median([cpu for _, cpu in times]) for name, times in steps.items()}
    names = ("row_bytes", "audit_bytes_per_question")
    return {
        **found,
        **taken,
        "wal_bytes": written / TURNS,
        **{name: (after - first) / TURNS for name, first, after in zip(names, sizes, grown, strict=True)},
    }


def _database_cpu(server: Any, store: Any) -> dict[str, float]:
    """Processor that the server takes for a question with its answer, for one look at a row, and for a page's list.
    Its clock ticks a hundred times a second, so each is done often enough."""
    pids, ask = server.pids(), {"tool": "delete_file", "arguments": {"path": "/srv/a"}}
    last: list[str] = []

    def write() -> None:
        last[:] = [store.create_confirmation("ada", **ask).id]
        store.respond("ada", last[0], {"confirmed": True})

    found = {}
    looks = (("look", lambda: store.get("ada", last[0])), ("list", lambda: store.pending("ada")))
    for name, work in (("write", write), *looks):
        before = cpu_of(pids)
        for _ in range(600):
            work()
        found[f"database_{name}_cpu_s"] = (cpu_of(pids) - before) / 600
    return found


def _log_place(connection: Any) -> int:
    return int(connection.execute("SELECT pg_current_wal_insert_lsn() - '0/0'").fetchone()[0])


def _sizes(connection: Any) -> tuple[int, int]:
    """Bytes of both tables with their indexes. What comes in steps of 8 KB is little against some hundred rows."""
    tables = ("mcp_elicitations", "mcp_elicitation_audit")
    query = "SELECT pg_total_relation_size(%s::regclass)"
    first, second = (connection.execute(query, [f"gopher_mcp.{table}"]).fetchone()[0] for table in tables)
    return int(first), int(second)


@contextmanager
def _flushes(database: Any) -> Iterator[list[float]]:
    """Gives, at the end, how long the disk took for one flush of the log meanwhile (seconds)."""
    query = "SELECT wal_sync, wal_sync_time FROM pg_stat_wal"
    found: list[float] = []
    with psycopg.connect(database.superuser, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET track_wal_io_timing = on")
        connection.execute("SELECT pg_reload_conf()")
        connection.execute("SELECT pg_stat_reset_shared('wal')")
        yield found
        connection.execute("SELECT pg_stat_clear_snapshot()")
        number, milliseconds = connection.execute(query).fetchone() or (0, 0.0)
        found.append(milliseconds / number / 1e3)


def _pairs(database: Any, seconds: float) -> list[dict[str, Any]]:
    found = []
    for connections in CONNECTIONS:
        note(f"questions and answers on {connections} connections")
        with _flushes(database) as flushes:
            result = at_once("pair", connections, seconds, dsn=database.app)
        found.append({**result, "flush_s": flushes[0]})
    return found


def _rate(database: Any, query: str, connections: int, seconds: float) -> float:
    result = at_once("statement", connections, seconds, dsn=database.app, query=query)
    return float(result["per_second"])


def _chains(database: Any, seconds: float) -> dict[str, Any]:
    """Transactions per second that write one audit record, by how many chains there are."""
    with psycopg.connect(database.superuser, autocommit=True) as connection:
        connection.execute(_CHAINS)
    note("the audit's chain")
    append = "SELECT gopher_mcp.mcp_append_audit(%s)"
    free = "INSERT INTO bench_free (text, previous, hash) VALUES (%s, repeat('0', 64), repeat('0', 64))"
    by_connections = [{"connections": n, "per_second": _rate(database, append, n, seconds)} for n in (1, 4, AT_ONCE)]
    by_chains = [
        {"chains": k, "per_second": _rate(database, f"SELECT bench_append({{n}} %% {k}, %s)", AT_ONCE, seconds)}
        for k in CHAINS
    ]
    return {
        "appends": by_connections,
        "appends_by_chains": by_chains,
        "inserts_without_chain": _rate(database, free, AT_ONCE, seconds),
        "inserts_without_chain_1": _rate(database, free, 1, seconds),
    }


def _notifications(database: Any, seconds: float) -> dict[str, Any]:
    """What NOTIFY costs who commits, and how many each listener hears."""
    note("notifications")
    free = "INSERT INTO bench_free (text, previous, hash) VALUES (%s, repeat('0', 64), repeat('0', 64))"
    told = f"WITH written AS ({free} RETURNING seq) SELECT pg_notify('gopher_mcp_elicitations', seq::text) FROM written"
    found = []
    for listeners in (0, 1, 8):
        with _listening(database, listeners) as heard:
            rate = _rate(database, told, AT_ONCE, seconds)
            found.append({"listeners": listeners, "per_second": rate, "heard_each": heard.each(seconds)})
            found[-1]["cpu_s"] = heard.cpu_s()
    return {"notified": found}


class _listening:
    """Listeners of the store's own kind on threads of this process."""

    def __init__(self, database: Any, number: int) -> None:
        self._dsn, self._number = database.app, number
        self._counts = [0] * number
        self._lock = threading.Lock()

    def __enter__(self) -> _listening:
        from gopher_mcp_python.store.postgres.connecting import Limits
        from gopher_mcp_python.store.postgres.listening import Listener

        def counter(place: int) -> Callable[[str | None], None]:
            def heard(id: str | None) -> None:
                self._counts[place] += id is not None

            return heard

        self._all = [Listener(self._dsn, counter(place), limits=Limits()) for place in range(self._number)]
        for one in self._all:
            one.wait_until_tried()
        self._cpu = time.process_time()
        return self

    def each(self, seconds: float) -> float:
        return sum(self._counts) / max(1, self._number) / seconds

    def cpu_s(self) -> float | None:
        """Processor seconds of one listener for one notification."""
        return (time.process_time() - self._cpu) / sum(self._counts) if sum(self._counts) else None

    def __exit__(self, *_: object) -> None:
        for one in self._all:
            one.close()


def _maintenance(server: Any, database: Any) -> dict[str, Any]:
    """The look of all who wait, what a feed looks up, expiring, pruning, verifying."""
    note("looking, expiring, pruning, verifying")
    rows = 20_000
    with _store(database) as store, psycopg.connect(database.superuser, autocommit=True) as connection:
        connection.execute(_ANSWERED, [rows])
        connection.execute("VACUUM ANALYZE gopher_mcp.mcp_elicitations")
        ids = [id for (id,) in connection.execute("SELECT id FROM gopher_mcp.mcp_elicitations LIMIT 1000")]
        connection.execute("CHECKPOINT")
        backend = store._backend

        def due() -> None:
            with backend.transaction(None, write=False) as tx:
                tx.due(ids)

        def known() -> None:
            with backend.transaction(None, write=False) as tx:
                tx.get(ids[0])

        looks = {}
        for name, work in (("due_1000", due), ("publish", known)):
            pids = server.pids()
            before = cpu_of(pids)
            times = [_timed(work) for _ in range(120)][20:]
            looks[f"database_{name}_cpu_s"] = (cpu_of(pids) - before) / 120
            looks[f"{name}_s"] = median([clock for clock, _ in times])
            looks[f"{name}_cpu_s"] = median([cpu for _, cpu in times])
        for number in range(300):
            store.create_confirmation(f"late-{number}", tool="t", arguments={}, timeout_s=1)
        time.sleep(1.1)  # they last a second: there is nothing else to wait for
        swept: list[int] = []
        expiring = _timed(lambda: swept.append(store.sweep(300)))[0]
        pruning = _timed(lambda: swept.append(store.prune(0)))[0]
        verifying = _timed(lambda: swept.append(store.verify().records))[0]
    return {
        **looks,
        "expired_per_second": swept[0] / expiring,
        "pruned_per_second": swept[1] / pruning,
        "verified_per_second": swept[2] / verifying,
    }
