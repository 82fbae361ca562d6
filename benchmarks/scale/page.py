"""docs/scale.md: its tables between marks, and its plot, are made from what was measured and simulated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks._marks import fill, table
from benchmarks.scale.plot import curves

ROOT = Path(__file__).resolve().parents[2]
PAGE, PLOT = ROOT / "docs" / "scale.md", ROOT / "docs" / "images" / "scale.svg"
NAMES = {
    "feeds": "feeds of one replica",
    "connections": "connections of Postgres",
    "replica_cpu": "processor of one replica",
    "audit_chain": "lock of the audit's chain",
    "notify_lock": "lock of NOTIFY",
    "writes": "writes of the store, all in all",
    "database_cpu": "processor of Postgres",
    "publishing": "looking up changes for feeds",
    "pruning": "pruning, one replica",
}


def write(measured: dict[str, Any], simulated: dict[str, Any]) -> None:
    """Brings page and plot up to date."""
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), measured, simulated), encoding="utf-8")
    PLOT.write_text(plot(simulated), encoding="utf-8")


def plot(simulated: dict[str, Any]) -> str:
    """The picture: how busy each part is, by users."""
    points = {label: [(one["users"], one[name]) for one in simulated["curves"]] for name, label in NAMES.items()}
    return curves(points, title="Use of each part as shipped, one database")


def filled(page: str, measured: dict[str, Any], simulated: dict[str, Any]) -> str:
    """The page with its tables made anew. Raises KeyError for a mark that nobody fills."""
    tables = {
        "machine": _machine(measured),
        "one": _one(measured),
        "database": _database(measured),
        "chains": _chains(measured),
        "process": _process(measured),
        "full": _full(simulated),
        "sizes": _sizes(simulated),
        "check": _check(simulated),
        "waits": _waits(simulated),
    }
    return fill(page, tables)


def number(value: float) -> str:
    """Two digits, and none of them for show."""
    if value >= 100:
        return f"{float(f'{value:.2g}'):,.0f}"
    return f"{value:.2g}"


def _ms(seconds: float) -> str:
    return f"{number(seconds * 1e3)} ms"


def _machine(measured: dict[str, Any]) -> str:
    of = measured["machine"]
    rows = [
        ("date", of["date"]),
        ("machine", f"{of['kind']}, {of['cores']} cores, for clients and Postgres together"),
        ("software", f"CPython {of['python']}, PostgreSQL {of['postgres']} with its own settings"),
        ("load before (1 minute)", f"{of['load_before']}; a quiet machine has less than 1"),
        ("seconds for each point", str(of["seconds_per_point"])),
        ("8 KB written and on the disk", _ms(measured["sync_s"])),
    ]
    return table(("", ""), rows)


def _one(measured: dict[str, Any]) -> str:
    rows = []
    for name, what, server in (
        ("create", "the question is stored", "write"),
        ("look", "the waiter looks, and waits", "look"),
        ("pending", "the page asks for the list", "list"),
        ("respond", "the answer is stored, the waiter is told", "write"),
    ):
        of_server = measured[f"database_{server}_cpu_s"] / (2 if server == "write" else 1)
        rows.append((what, _ms(measured[f"{name}_s"]), _ms(measured[f"{name}_cpu_s"]), _ms(of_server)))
    head = ("step", "time", "processor of the replica", "processor of Postgres")
    sealing = f"{number(measured['seal_s'] * 1e6)} and {number(measured['unseal_s'] * 1e6)} µs"
    return table(head, [*rows, ("sealing and unsealing, in these", sealing, "", "")])


def _database(measured: dict[str, Any]) -> str:
    rows = [
        ("bytes of the log (WAL) for a question and its answer", number(measured["wal_bytes"])),
        ("bytes on the disk: the row with its indexes", number(measured["row_bytes"])),
        ("bytes on the disk: its two audit records", number(measured["audit_bytes_per_question"])),
        ("a look at 1,000 waiting rows, once a second for each 1,000 waiters", _ms(measured["due_1000_s"])),
        ("a look at one changed row, for a feed", _ms(measured["publish_s"])),
        ("expired by one replica, per second", number(measured["expired_per_second"])),
        ("pruned by one replica, per second", number(measured["pruned_per_second"])),
        ("audit records verified, per second", number(measured["verified_per_second"])),
    ]
    return table(("", ""), rows)


def _chains(measured: dict[str, Any]) -> str:
    most = max(one["per_second"] for one in measured["appends"])
    rows = [("the audit as it is, best of 1, 4 and 16 connections", number(most))]
    rows += [
        (f"the same with {one['chains']} chain{'s' * (one['chains'] > 1)}, 16 connections", number(one["per_second"]))
        for one in measured["appends_by_chains"]
    ]
    rows += [("rows without any chain, 16 connections", number(measured["inserts_without_chain"]))]
    rows += [
        (f"rows without a chain, with NOTIFY, {one['listeners']} listeners, 16 connections", number(one["per_second"]))
        for one in measured["notified"]
    ]
    return table(("transactions with one record each", "per second"), rows)


def _process(measured: dict[str, Any]) -> str:
    thread, task = measured["waiter_thread"], measured["waiter_task"]
    rows = [
        ("a waiter on a thread (`Store.wait`)", _kb(thread["bytes"]),
         f"{number(thread['cpu_per_s'] * 1e6)} µs a second"),
        ("a waiter in an event loop (`AsyncStore.wait`)", _kb(task["bytes"]),
         f"{number(task['cpu_per_s'] * 1e6)} µs a second"),
        ("a page's feed, one file descriptor", _kb(measured["feed_bytes"]), ""),
        ("a notification heard by a replica, without what it leads to", "",
         f"{number(next(one['cpu_s'] for one in measured['notified'] if one['listeners'] == 1) * 1e6)} µs each"),
        ("`gopher-mcp serve` that idles", f"{number(measured['replica_bytes'] / 1e6)} MB",
         f"{number(measured['replica_idle_cpu'] * 100)} % of a core"),
    ]  # fmt: skip
    return table(("", "memory", "processor"), rows)


def _kb(size: float) -> str:
    return f"{number(size / 1e3)} KB"


_NEVER = 9e8


def _users(value: float) -> str:
    return number(value) if value < _NEVER else "never: it grows with the replicas"


def _full(simulated: dict[str, Any]) -> str:
    shipped, remedied = simulated["full_at"]["shipped"], simulated["full_at"]["remedied"]
    ordered = sorted(shipped, key=lambda name: shipped[name])
    rows = [
        (NAMES[name], _users(shipped[name]), _users(remedied[name]) if name in remedied else "is not there")
        for name in ordered
    ]
    return table(("part, there once", "full at so many users, as shipped", "with the remedies"), rows)


def _sizes(simulated: dict[str, Any]) -> str:
    head = ("", *(f"{int(users):,} users" for users in simulated["shipped"]))
    whatever_the_design = (
        ("questions per second", "questions_per_second"),
        ("WAL, MB per second", "wal_mb_per_second"),
        ("stored a day, GB (payloads not yet pruned)", "stored_gb_per_day"),
        ("memory of all waiters: threads, GB", "waiters_thread_gb"),
        ("memory of all waiters: event loops, GB", "waiters_task_gb"),
    )
    of_the_design = (
        ("replicas", "replicas"),
        ("memory of the replicas, GB", "replica_gb"),
        ("notifications heard per second, by all replicas", "notifications_per_second"),
    )
    rows = [(label, "shipped", key) for label, key in whatever_the_design]
    for title, design in (("as shipped", "shipped"), ("with the remedies", "remedied")):
        rows.append((f"**{title}**: databases", design, "shards"))
        rows += [(label, design, key) for label, key in of_the_design]
    cells = [(label, *(number(one[key]) for one in simulated[design].values())) for label, design, key in rows]
    return table(head, cells)


def _check(simulated: dict[str, Any]) -> str:
    head = ("connections", "measured, questions with answers per second", "simulated", "a flush of the log meanwhile")
    rows = [
        (str(one["connections"]), number(one["measured"]), number(one["simulated"]), _ms(one["flush_s"]))
        for one in simulated["checked"]
    ]
    return table(head, rows)


def _waits(simulated: dict[str, Any]) -> str:
    head = ("users", "store", "databases", "writes per second, each", "median", "99 %", "chain's lock in use")
    rows = []
    for one in simulated["waits"]:
        late = ("piles up", f"{number(one['done_per_second'])} are done")
        times = late if one["piles_up"] else (_ms(one["median_s"]), _ms(one["p99_s"]))
        busy = f"{one['chain_busy'] * 100:.0f} %"
        rows.append(
            (f"{one['users']:,}", one["design"], f"{one['shards']:,}", number(one["writes_per_second"]), *times, busy)
        )
    return table(head, rows)
