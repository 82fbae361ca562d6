"""What follows from the measured times: how busy each part is by the number of users, and how long they wait.

Two ways, which check each other: arithmetic (what one question takes of each part, times how many come), and a
simulation of the path of a write through replica, connection, chain and disk, with what that adds: waiting.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from statistics import median
from typing import Any

from benchmarks.scale.queues import Log, Place, Process, Simulation

USERS = (100, 10_000, 1_000_000)
ANSWER_S = 60.0
"""An assumption: every user has one question open, and takes a minute to answer it."""
FILL = 0.7
"""Of its limit a part may be used: beyond it, waiting grows faster than use."""
FEEDS, CONNECTIONS, POOL, POLL_S = 200, 100, 10, 30.0
"""As shipped: feeds of a replica (serve/feed.py), connections of Postgres (its default), connections of a replica's
pool, seconds between two lists that a page asks for beside its feed (serve/page/page.js)."""
FEEDS_RAISED = 10_000
PILED = 0.02
"""Share of the writes that are still under way when the last one comes, from which on they are said to pile up."""
PER_REPLICA = ("feeds", "replica_cpu", "connections")
"""What more replicas help against, and a setting of the database that has to grow with them."""
DATABASE_CORES = 16
"""An assumption for the tables; the measurement had the cores that measured.json names, shared with all else."""


@dataclass(frozen=True)
class Design:
    """How the store is built: as shipped, or with remedies."""

    chains: int = 1
    notify_in_commit: bool = True
    feeds: int = FEEDS
    look_for_all: bool = True
    """Whether every replica looks up every change, or only changes of callers whose pages it has."""


SHIPPED = Design()
REMEDIED = Design(chains=16, notify_in_commit=False, feeds=FEEDS_RAISED, look_for_all=False)


def simulate(measured: dict[str, Any]) -> dict[str, Any]:
    """Everything that the page shows."""
    sizes = [100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000]
    return {
        "assumed": {"answer_s": ANSWER_S, "fill": FILL, "database_cores": DATABASE_CORES, "feeds_raised": FEEDS_RAISED},
        "curves": [{"users": users, **busy(measured, users, SHIPPED)} for users in sizes],
        "full_at": {"shipped": full_at(measured, SHIPPED), "remedied": full_at(measured, REMEDIED)},
        "shipped": {str(users): _whole(measured, users, SHIPPED) for users in USERS},
        "remedied": {str(users): _whole(measured, users, REMEDIED) for users in USERS},
        "checked": [closed(measured, point["connections"]) for point in measured["pairs"]],
        "waits": [wait for users in USERS for wait in _waits(measured, users)],
    }


# ---- arithmetic -----------------------------------------------------------------------------------------------------


def busy(measured: dict[str, Any], users: float, design: Design, shards: int = 1) -> dict[str, float]:
    """How much of each part's limit is used, 1 being all of it, when users are spread over so many databases. What a
    replica has is given for one replica; the database's is that of as many replicas as are needed."""
    users_here, rate = users / shards, users / shards / ANSWER_S
    replicas = replicas_for(measured, users_here, design)
    looks = 2 * rate * (replicas if design.look_for_all else 1)  # of changed rows, for feeds
    database = rate * (measured["database_write_cpu_s"] + 2 * measured["database_look_cpu_s"])
    database += looks * measured["database_look_cpu_s"] + users_here / POLL_S * measured["database_list_cpu_s"]
    database += users_here / 1000 * measured["database_due_1000_cpu_s"]  # who waits, looks once a second
    cpu = replica_cpu(measured, users_here)
    parts = {
        "audit_chain": 2 * rate / chain_rate(measured, design.chains),
        "feeds": users_here / design.feeds,
        "replica_cpu": cpu,
        "connections": replicas * (POOL + 1) / CONNECTIONS,
        "publishing": 2 * rate / (1 if design.look_for_all else replicas) * measured["publish_s"],
        "database_cpu": database / DATABASE_CORES,
        "pruning": rate / measured["pruned_per_second"],
    }
    if design.notify_in_commit:
        parts["notify_lock"] = 2 * rate / notify_rate(measured)
        parts["writes"] = rate / max(one["per_second"] for one in measured["pairs"])
    return parts


def chain_rate(measured: dict[str, Any], chains: int) -> float:
    """Audit records per second."""
    if chains > 1:
        return float(next(one["per_second"] for one in measured["appends_by_chains"] if one["chains"] == chains))
    return float(max(one["per_second"] for one in measured["appends"]))


def notify_rate(measured: dict[str, Any]) -> float:
    """Commits per second that notify."""
    return float(max(one["per_second"] for one in measured["notified"]))


def replicas_for(measured: dict[str, Any], users: float, design: Design) -> int:
    """Replicas of one core each that feeds and processor ask for."""
    return max(1, ceil(users / design.feeds), ceil(replica_cpu(measured, users) / FILL))


def replica_cpu(measured: dict[str, Any], users: float) -> float:
    """Cores for the users' own questions, without the changes that every replica hears of."""
    rate = users / ANSWER_S
    cpu = rate * (measured["create_cpu_s"] + measured["respond_cpu_s"] + 2 * measured["look_cpu_s"])
    return float(cpu + users * measured["waiter_task"]["cpu_per_s"] + users / POLL_S * measured["pending_cpu_s"])


def _whole(measured: dict[str, Any], users: int, design: Design) -> dict[str, Any]:
    """One column of the page: use of each part on one database, and what it takes to be below the fill."""
    rate, shards = users / ANSWER_S, shards_for(measured, users, design)
    replicas = replicas_for(measured, users / shards, design) * shards
    one = busy(measured, users, design)
    stored = measured["row_bytes"] + measured["audit_bytes_per_question"]
    return {
        "questions_per_second": rate,
        "busy": one,
        "shards": shards,
        "users_per_shard": users / shards,
        "replicas": replicas,
        "replica_gb": (replicas * measured["replica_bytes"] + users * _bytes_each(measured)) / 1e9,
        "wal_mb_per_second": rate * measured["wal_bytes"] / 1e6,
        "stored_gb_per_day": rate * 86_400 * stored / 1e9,
        "notifications_per_second": 2 * rate * replicas / shards,
        "waiters_thread_gb": users * measured["waiter_thread"]["bytes"] / 1e9,
        "waiters_task_gb": users * measured["waiter_task"]["bytes"] / 1e9,
    }


def _bytes_each(measured: dict[str, Any]) -> float:
    return float(measured["feed_bytes"] + measured["waiter_task"]["bytes"])


def shards_for(measured: dict[str, Any], users: int, design: Design) -> int:
    """The fewest databases with which every part that a database can be short of is below the fill. A replica has one
    database; connections are the database's own matter (max_connections, a pooler in session mode)."""
    shards = 1
    while _worst(measured, users, design, shards) > FILL:
        shards *= 2
    low = shards // 2
    while shards - low > 1:
        middle = (low + shards) // 2
        low, shards = (low, middle) if _worst(measured, users, design, middle) <= FILL else (middle, shards)
    return shards


def _worst(measured: dict[str, Any], users: int, design: Design, shards: int) -> float:
    found = busy(measured, users, design, shards)
    return max(value for name, value in found.items() if name not in PER_REPLICA)


def full_at(measured: dict[str, Any], design: Design) -> dict[str, float]:
    """The number of users at which each part, there once, is used up."""
    found = {}
    for name in busy(measured, 1, design):
        low, high = 1.0, 1e9
        while high / low > 1.001:
            middle = (low * high) ** 0.5
            low, high = (low, middle) if busy(measured, middle, design)[name] >= 1 else (middle, high)
        found[name] = high
    return found


# ---- simulation -----------------------------------------------------------------------------------------------------


class _Store:
    """One database and its replicas, and the path of a write through them."""

    def __init__(
        self, measured: dict[str, Any], design: Design, *, cores: int, shared: bool, pool: int, flush: float
    ) -> None:
        self.random = random.Random(20_260_101)
        self.simulation = Simulation()
        self.client = Place(cores)
        self.database = self.client if shared else Place(DATABASE_CORES)
        self.pool = Place(pool)
        self.chains = [Place(1) for _ in range(design.chains)]
        self.notify = Place(1) if design.notify_in_commit else None
        self.log = Log(lambda: self.random.gauss(flush, flush / 10))
        self._client_s = (measured["create_cpu_s"] + measured["respond_cpu_s"]) / 2
        self._database_s = measured["database_write_cpu_s"] / 2

    def write(self, chain: int, ended: Callable[[float], None]) -> Process:
        """A question or an answer: two thirds of the work before the chain's lock, the rest under it, then the disk."""
        begin = self.simulation.now
        yield "take", self.pool
        yield from self._work(2 / 3)
        lock = self.chains[chain % len(self.chains)]
        yield "take", lock
        yield from self._work(1 / 3)
        if self.notify is not None:
            yield "take", self.notify
        yield "flush", self.log
        if self.notify is not None:
            yield "give", self.notify
        yield "give", lock
        yield "give", self.pool
        ended(self.simulation.now - begin)

    def _work(self, share: float) -> Process:
        for place, seconds in ((self.client, self._client_s), (self.database, self._database_s)):
            yield "take", place
            yield "pass", self.random.expovariate(1 / (seconds * share))
            yield "give", place


def closed(measured: dict[str, Any], connections: int) -> dict[str, float]:
    """The measurement itself, simulated: each connection asks and answers without a pause, on the same cores."""
    found = next(one for one in measured["pairs"] if one["connections"] == connections)
    cores = measured["machine"]["cores"]
    store = _Store(measured, SHIPPED, cores=cores, shared=True, pool=connections, flush=found["flush_s"])
    done = 0

    def again(number: int) -> Callable[[float], None]:
        def ended(_: float) -> None:
            nonlocal done
            done += 1
            store.simulation.start(store.write(number, again(number)))

        return ended

    for number in range(connections):
        store.simulation.start(store.write(number, again(number)))
    store.simulation.run(60.0)
    result = {"connections": connections, "simulated": done / 2 / 60.0, "measured": found["per_second"]}
    return {**result, "flush_s": found["flush_s"]}


def opened(measured: dict[str, Any], rate: float, design: Design, *, replicas: int, writes: int) -> dict[str, Any]:
    """Writes that come at random, so many per second: how long each takes, and whether they pile up."""
    flush = flush_s(measured)
    store = _Store(measured, design, cores=replicas, shared=False, pool=replicas * POOL, flush=flush)
    times: list[float] = []
    come = 0

    def arrive() -> None:
        nonlocal come
        come += 1
        store.simulation.start(store.write(store.random.randrange(10_000), times.append))
        if come < writes:
            store.simulation.at(store.simulation.now + store.random.expovariate(rate), arrive)

    store.simulation.at(0.0, arrive)
    last = writes / rate
    store.simulation.run(last)
    left, rate_done = come - len(times), len(times) / last
    if left > PILED * writes:  # how many it does when there is always one more to do
        before = len(times)
        store.simulation.run(last + 20.0)
        rate_done = (len(times) - before) / 20.0
    ordered = sorted(times[len(times) // 10 :])
    return {
        "writes_per_second": rate,
        "done_per_second": rate_done,
        "left": left,
        "piles_up": left > PILED * writes,
        "median_s": ordered[len(ordered) // 2],
        "p99_s": ordered[int(len(ordered) * 0.99)],
        "chain_busy": sum(chain.busy for chain in store.chains) / len(store.chains) / store.simulation.now,
        "flush_busy": store.log.busy / store.simulation.now,
    }


def flush_s(measured: dict[str, Any]) -> float:
    """How long the disk takes, in the middle of what was measured."""
    return float(median([one["flush_s"] for one in measured["pairs"]]))


def _waits(measured: dict[str, Any], users: int) -> list[dict[str, Any]]:
    """One database for all; then as many as the arithmetic asks for (one of them is simulated: they share nothing)."""
    found = []
    for name, design, shards in (
        ("shipped, one database", SHIPPED, 1),
        ("shipped, sharded", SHIPPED, shards_for(measured, users, SHIPPED)),
        ("remedied, sharded", REMEDIED, shards_for(measured, users, REMEDIED)),
    ):
        rate = 2 * users / shards / ANSWER_S
        replicas = replicas_for(measured, users / shards, design)
        result = opened(measured, rate, design, replicas=replicas, writes=20_000)
        found.append({"users": users, "design": name, "shards": shards, **result})
    return found
