"""The store, awaited: in asyncio and in trio."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

import anyio
import pytest

from gopher_mcp_python.store import (
    AsyncStore,
    ElicitationNotFound,
    KeyRing,
    MemoryBackend,
    Store,
    StoreError,
    single_choice,
)
from gopher_mcp_python.store.aio import _Bell
from tests.support.store_places import MemoryPlace, Place, SqlitePlace, closing
from tests.support.store_suite import CALL, WIDE


@pytest.fixture(params=["asyncio", "trio"])
def loop(request: pytest.FixtureRequest) -> Any:
    return request.param


def awaited(test: Callable[..., Any]) -> Callable[..., None]:
    """Runs a test in a loop of its own. (The plugin of anyio runs trio as a guest, whose thread stays.)"""

    def run(loop: str, **fixtures: Any) -> None:
        anyio.run(partial(test, **fixtures), backend=loop)

    own = signature(test)
    of_loop = Parameter("loop", Parameter.POSITIONAL_OR_KEYWORD)
    run.__signature__ = own.replace(parameters=[of_loop, *own.parameters.values()])  # type: ignore[attr-defined]
    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


@pytest.fixture(params=["memory", "sqlite"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    yield from closing(MemoryPlace() if request.param == "memory" else SqlitePlace(tmp_path))


@pytest.fixture
def plain(place: Place) -> Store:
    return place.open()


@pytest.fixture
def store(plain: Store) -> AsyncStore:
    return AsyncStore(plain)


@awaited
async def test_every_method_is_awaited(store: AsyncStore) -> None:
    asked = await store.create_confirmation("ada", **CALL)
    other = await store.create("ada", single_choice("?", ["a"]))
    assert [one.id for one in await store.pending("ada")] == [asked.id, other.id]
    assert (await store.respond("ada", asked.id, {"confirmed": True}, by="grace")).kind == "recorded"
    assert await store.is_confirmed("ada", asked.id)
    assert await store.confirmation_state("ada", asked.id) == "approved"
    assert await store.consume("ada", asked.id, **CALL) == "consumed"
    await store.complete("ada", asked.id)
    assert (await store.cancel("ada", other.id)).kind == "recorded"
    assert (await store.get("ada", other.id)).status == "cancelled"
    assert await store.result("ada", asked.id) == {"confirmed": True}
    assert (await store.verify()).ok
    await store.check()
    with pytest.raises(ElicitationNotFound):
        await store.get("eve", asked.id)
    await store.close()
    with pytest.raises(StoreError, match="closed"):
        await store.wait("ada", asked.id)


@awaited
async def test_a_hundred_waits_take_no_thread_and_wake_each_for_its_own(place: Place, store: AsyncStore) -> None:
    elsewhere = place.open()
    asked = [await store.create("ada", single_choice("?", ["a", "b"])) for _ in range(100)]
    ended: dict[str, Any] = {}
    looked: set[str] = set()

    async def wait(id: str) -> None:
        def wanted() -> bool:
            looked.add(id)
            return True

        ended[id] = await store.wait("ada", id, still_wanted=wanted)

    before = threading.active_count()
    with anyio.fail_after(WIDE):
        async with anyio.create_task_group() as tasks:
            for one in asked:
                tasks.start_soon(wait, one.id)
            while len(looked) < len(asked):
                await anyio.sleep(0.01)
            # The store's own threads, and anyio's idle ones; no waiter has one.
            assert threading.active_count() < before + 20
            for one in asked:
                elsewhere.respond("ada", one.id, {"choice": "a"})
    assert {id: one.status.value for id, one in ended.items()} == {one.id: "responded" for one in asked}
    assert not store.store._waiters._wakers


class _Deaf(MemoryBackend):
    """Loses every notification. `missed` tells its listeners so, as after a reconnection."""

    def __init__(self) -> None:
        super().__init__()
        self.missed: Callable[[str | None], None] = lambda id: None

    def listen(self, callback: Callable[[str | None], None]) -> Callable[[], None]:
        self.missed = callback
        return lambda: None


@awaited
async def test_one_look_is_for_all_who_may_have_missed_something(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gopher_mcp_python.store.waiting.PULSE_S", 3600.0)
    monkeypatch.setattr("gopher_mcp_python.store.aio.PULSE_S", 3600.0)
    backend = _Deaf()
    store = AsyncStore(Store(backend, KeyRing.generate(), rate=None))
    looks: list[str] = []
    row = store.store._row
    monkeypatch.setattr(store.store, "_row", lambda caller, id, **more: (looks.append(id), row(caller, id, **more))[1])
    asked = [await store.create("ada", single_choice("?", ["a"])) for _ in range(200)]
    ended: list[str] = []

    async def wait(id: str) -> None:
        ended.append((await store.wait("ada", id)).id)

    with anyio.fail_after(WIDE):
        async with anyio.create_task_group() as tasks:
            for one in asked:
                tasks.start_soon(wait, one.id)
            while len(looks) < len(asked):
                await anyio.sleep(0.01)
            await store.respond("ada", asked[7].id, {"choice": "a"})
            backend.missed(None)
            while not ended:
                await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
    assert ended == [asked[7].id] and looks.count(asked[7].id) == 2
    assert len(looks) == len(asked) + 1, "nobody else looked"
    await store.close()


@awaited
async def test_a_wait_ends_without_an_answer(place: Place, store: AsyncStore) -> None:
    asked = await store.create_confirmation("ada", **CALL)
    assert (await store.wait("ada", asked.id, timeout_s=0)).status == "pending"
    assert (await store.wait("ada", asked.id, still_wanted=lambda: False)).status == "pending"
    with anyio.move_on_after(0.05) as scope:
        await store.wait("ada", asked.id)
    assert scope.cancelled_caught and not store.store._waiters._wakers
    place.pass_time(301)
    assert (await store.wait("ada", asked.id)).status == "expired"


class Slow(MemoryBackend):
    """Takes long to begin to listen, as a database does that is hard to reach."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.goes_on = threading.Event(), threading.Event()

    def listen(self, callback: Callable[[str | None], None]) -> Callable[[], None]:
        self.begun.set()
        assert self.goes_on.wait(WIDE), "the loop stood still"
        return super().listen(callback)


@awaited
async def test_the_first_wait_holds_up_no_loop() -> None:
    backend = Slow()
    store = AsyncStore(Store(backend, KeyRing.generate()))
    asked = await store.create_confirmation("ada", **CALL)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.wait, "ada", asked.id)
        while not backend.begun.is_set():
            await anyio.sleep(0.01)
        backend.goes_on.set()
        await store.cancel("ada", asked.id)
    await store.close()


class Interleaved(_Bell):
    """In which the waiter looks while somebody rings."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if (name, value) == ("_rung", True):
            self.fresh()


@awaited
async def test_a_bell_that_is_rung_while_the_waiter_looks_does_not_ring_for_ever() -> None:
    bell = Interleaved()
    bell.ring()
    assert not bell._rung
    with anyio.move_on_after(0.05) as scope:
        await bell._over.wait()
    assert scope.cancelled_caught


@awaited
async def test_closing_ends_waits_with_an_error(store: AsyncStore) -> None:
    asked = await store.create_confirmation("ada", **CALL)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.close)
        with pytest.raises(StoreError, match="closed"), anyio.fail_after(WIDE):
            await store.wait("ada", asked.id)
