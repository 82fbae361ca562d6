"""Gateways on Postgres: many confirmations at two replicas at once, and a database that is killed (SIGKILL) at each
point of a confirmed call."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client

from gopher_mcp_python.serve.opening import open_store
from gopher_mcp_python.store.core import Store
from gopher_mcp_python.store.errors import StoreError
from gopher_mcp_python.store.keys import KeyRing
from gopher_mcp_python.store.postgres import PostgresBackend
from tests.support import store_postgres
from tests.support.gateways import House, id_of, run, started, status_of, text_of
from tests.support.postgres import PASSWORD, Postgres

AT_ONCE = 8


@pytest.fixture(scope="module")
def shared() -> Iterator[Postgres]:
    with store_postgres.running() as running:
        yield running


@pytest.fixture
def server(shared: Postgres) -> Postgres:
    if not shared.running:
        shared.start()
    return shared


# ---- two replicas ------------------------------------------------------------------------------------------------


def test_confirmations_answered_twice_each_from_two_replicas(server: Postgres, tmp_path: Path) -> None:
    _two_replicas(server, tmp_path, 60)


@pytest.mark.long
def test_a_thousand_confirmations_answered_twice_each_from_two_replicas(server: Postgres, tmp_path: Path) -> None:
    _two_replicas(server, tmp_path, 1000)


def _two_replicas(server: Postgres, folder: Path, many: int) -> None:
    """Each is asked by one gateway, answered yes and no at the same time, and called at both gateways at once."""
    database = store_postgres.database(server).name
    spec = f"postgresql://{store_postgres.APP}:{PASSWORD}@127.0.0.1:{server.port}/{database}"
    keys, runs = folder / "keys", folder / "runs"
    runs.touch()
    with open_store(spec, keys) as yes, open_store(spec, keys) as no:

        async def one(number: int, gateways: tuple[Client, Client]) -> tuple[bool, list[Any]]:
            held = id_of(await gateways[number % 2].call_tool("erase", {"n": number}))
            answers = await asyncio.gather(
                asyncio.to_thread(yes.respond, "local", held, {"confirmed": True}),
                asyncio.to_thread(no.respond, "local", held, {"confirmed": False}),
            )
            kinds = [answer.kind for answer in answers]
            assert sorted(kinds) == ["conflict", "recorded"], "one winner"
            results = await asyncio.gather(*(client.call_tool("erase", {"n": number}) for client in gateways * 2))
            return kinds[0] == "recorded", results

        async def body(*urls: str) -> list[tuple[bool, list[Any]]]:
            room = asyncio.Semaphore(AT_ONCE)
            async with Client(urls[0], mode="legacy") as first, Client(urls[1], mode="legacy") as second:

                async def bounded(number: int) -> tuple[bool, list[Any]]:
                    async with room:
                        return await one(number, (first, second))

                return await asyncio.gather(*(bounded(number) for number in range(many)))

        with started("upstream", "0", str(runs)) as (_, vault):
            gateway = ("gateway", "0", vault, spec, str(keys))
            with started(*gateway) as (_, here), started(*gateway) as (_, there):
                told = asyncio.run(body(here, there))

        ran = Counter(json.loads(line)[1]["n"] for line in runs.read_text().splitlines())
        for number, (confirmed, results) in enumerate(told):
            done = [result for result in results if not result.is_error]
            assert (ran[number], len(done)) == ((1, 1) if confirmed else (0, 0)), number
            if not confirmed:
                assert {status_of(result) for result in results} == {"declined"}
        assert yes.verify().ok
        waiting = yes.pending("local", limit=1000)
        assert len(waiting) <= sum(confirmed for confirmed, _ in told), "a call that waits is asked about once"


# ---- the database is killed --------------------------------------------------------------------------------------


class _Cutting:
    """A store whose server is killed at a point of the next confirmed call."""

    def __init__(self, store: Store, server: Postgres) -> None:
        self._store = store
        self._server = server
        self.point = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def consume(self, *args: Any, **kwargs: Any) -> Any:
        self._at("before-consume")
        state = self._store.consume(*args, **kwargs)
        self._at("after-consume")
        return state

    def complete(self, *args: Any) -> None:
        self._at("before-complete")
        self._store.complete(*args)
        self._at("after-complete")

    def _at(self, point: str) -> None:
        if self.point == point:
            self.point = ""
            self._server.kill()


@pytest.mark.parametrize(
    ("point", "at_first", "afterwards", "runs"),
    [
        pytest.param("before-consume", "unavailable", "ran", 1, id="approved, not consumed: it still counts"),
        pytest.param("after-consume", "ran", "unknown", 1, id="consumed: the call is made, its outcome not recorded"),
        pytest.param("before-complete", "ran", "unknown", 1, id="the result is here and not recorded"),
        pytest.param("after-complete", "ran", "held", 1, id="recorded: another call needs another approval"),
    ],
)
def test_the_database_is_killed(server: Postgres, point: str, at_first: str, afterwards: str, runs: int) -> None:
    database = store_postgres.database(server)
    store = Store(PostgresBackend(database.app), KeyRing.generate())
    cutting = _Cutting(store, server)

    def told(result: Any) -> str:
        return "ran" if not result.is_error else status_of(result)

    async def body() -> None:
        house = House(store=cutting)
        async with house.client() as client:
            held = id_of(await client.call_tool("erase", {"a": 1}))
            await asyncio.to_thread(store.respond, "local", held, {"confirmed": True})
            cutting.point = point
            assert told(await client.call_tool("erase", {"a": 1})) == at_first
            assert not server.running and not cutting.point, "it was not killed"
            assert told(await client.call_tool("erase", {"a": 1})) == "unavailable", "without the store nothing runs"
            await asyncio.to_thread(server.start)
            again = await client.call_tool("erase", {"a": 1})
            assert told(again) == afterwards
            if afterwards == "ran":
                assert text_of(again) == "erase done"
        assert len(house.vault.runs) == runs
        assert store.verify().ok

    with store:
        run(body())


def test_the_database_is_killed_before_the_answer(server: Postgres) -> None:
    """An answer that was not acknowledged is none, and one that was is there after the restart."""
    database = store_postgres.database(server)
    with Store(PostgresBackend(database.app), KeyRing.generate()) as store:

        async def body() -> None:
            house = House(store=store)
            async with house.client() as client:
                first = id_of(await client.call_tool("erase", {"a": 1}))
                second = id_of(await client.call_tool("erase", {"a": 2}))
                await asyncio.to_thread(store.respond, "local", second, {"confirmed": True})
                await asyncio.to_thread(server.kill)
                with pytest.raises(StoreError):
                    await asyncio.to_thread(store.respond, "local", first, {"confirmed": True})
                await asyncio.to_thread(server.start)
                assert status_of(await client.call_tool("erase", {"a": 1})) == "held"
                assert text_of(await client.call_tool("erase", {"a": 2})) == "erase done"
            assert house.vault.runs == [("erase", {"a": 2})]

        run(body())
