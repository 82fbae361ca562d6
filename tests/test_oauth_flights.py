"""Renewals that several wait for (oauth/flights.py): who ends them, and what each who waits is given."""

from __future__ import annotations

import asyncio
import gc
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from gopher_mcp_python.oauth import flights
from gopher_mcp_python.oauth.errors import SignInError
from gopher_mcp_python.oauth.flights import Flight
from gopher_mcp_python.oauth.refusals import RefreshRefused


class Gone(Exception):
    """What a caller raises that leaves."""


@pytest.fixture(autouse=True)
def _no_flight_is_left() -> Any:
    yield
    assert not flights._state.flights


def until(happened: Callable[[], object]) -> None:
    wait = threading.Event().wait
    for _ in range(1000):
        if happened():
            return
        wait(0.01)
    pytest.fail("it did not happen within 10 s")


def leave_when(event: threading.Event) -> Callable[[], None]:
    def check() -> None:
        if event.is_set():
            raise Gone

    return check


def test_the_policy_of_the_program_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of Qt (qasync, QtAsyncio) make loops that stand still on every thread but the GUI thread."""

    def of_qt() -> asyncio.AbstractEventLoop:
        raise AssertionError("the loop of another thread")

    async def main(flight: Flight) -> str:
        await asyncio.sleep(0)
        return "renewed"

    monkeypatch.setattr(asyncio, "new_event_loop", of_qt)
    assert flights.join_blocking("key", main, lambda: None) == "renewed"


def test_what_must_be_finished_is_not_begun_when_everybody_has_left() -> None:
    """The cancellation is on its way to the flight's loop when that one begins what nothing may cut off."""
    begun, left, steps = threading.Event(), threading.Event(), []

    async def main(flight: Flight) -> None:
        begun.set()
        left.wait(10)  # the loop is kept busy, so it hears of nothing
        with flight.unbreakable():
            steps.append("sent")
            await asyncio.sleep(0)
            steps.append("stored")

    with pytest.raises(Gone):
        flights.join_blocking("busy", main, leave_when(begun))
    threads = [thread for thread in threading.enumerate() if thread.name == "gopher-mcp sign-in"]
    left.set()
    for thread in threads:
        thread.join(10)
    assert steps in ([], ["sent", "stored"]), "it was sent, and what came back is lost"


def test_what_must_be_finished_is_finished_though_everybody_leaves() -> None:
    begun, steps, go = threading.Event(), [], threading.Event()

    async def main(flight: Flight) -> None:
        with flight.unbreakable():
            begun.set()
            while not go.is_set():
                await asyncio.sleep(0.005)
            steps.append("stored")
        steps.append("went on")

    with pytest.raises(Gone):
        flights.join_blocking("unbreakable", main, leave_when(begun))
    go.set()
    until(lambda: not flights._state.flights)
    assert steps == ["stored"]


def test_who_comes_while_it_is_finished_gets_its_result() -> None:
    begun, go = threading.Event(), threading.Event()

    async def main(flight: Flight) -> str:
        with flight.unbreakable():
            begun.set()
            while not go.is_set():
                await asyncio.sleep(0.005)
        return "the token"

    async def never(flight: Flight) -> str:
        raise AssertionError("a second one was begun")

    with pytest.raises(Gone):
        flights.join_blocking("shared", main, leave_when(begun))
    with ThreadPoolExecutor() as pool:
        late = pool.submit(flights.join_blocking, "shared", never, lambda: None)
        until(lambda: flights._state.flights["shared"].waiting)
        go.set()
        assert late.result(10) == "the token"


@pytest.mark.parametrize(
    "error",
    [
        SignInError("nobody is there", "unavailable"),
        RefreshRefused("not good any more", "refused", "invalid_grant"),
        ValueError("of another kind"),
    ],
)
def test_each_who_waits_gets_an_error_of_its_own(error: Exception) -> None:
    """Threads that raise one object write into the same traceback, and keep each other's frames alive."""
    go = threading.Event()

    async def main(flight: Flight) -> None:
        while not go.is_set():
            await asyncio.sleep(0.005)
        raise error

    async def joined() -> None:
        await flights.join("failing", main)

    def blocking() -> None:
        flights.join_blocking("failing", main, lambda: None)

    with ThreadPoolExecutor() as pool:
        waits = [pool.submit(blocking), pool.submit(asyncio.run, joined()), pool.submit(blocking)]
        until(lambda: "failing" in flights._state.flights and flights._state.flights["failing"].waiting == 3)
        go.set()
        raised = [wait.exception(10) for wait in waits]
    assert [(type(one), str(one), vars(one)) for one in raised if one] == [(type(error), str(error), vars(error))] * 3
    if isinstance(error, SignInError):
        assert len({id(one) for one in raised}) == 3
        for one in raised:
            assert one is not None
            frames = {frame.name for frame in traceback.extract_tb(one.__traceback__)}
            assert not frames & {"main", "_run"} and one.__context__ is None, "the flight's frames are in it"


def test_waiting_long_takes_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flights, "_LOOK_EVERY", 0.001)
    looks = 0

    async def main(flight: Flight) -> None:
        while looks < 200:
            await asyncio.sleep(0.005)

    def look() -> None:
        nonlocal looks
        looks += 1

    def conditions() -> int:
        return sum(isinstance(one, threading.Condition) for one in gc.get_objects())

    counted: list[int] = []

    def counting() -> None:
        look()
        if looks in (20, 180):
            counted.append(conditions())

    flights.join_blocking("long", main, counting)
    assert counted[1] - counted[0] < 20


def test_what_a_flight_has_left_running_ends_with_it(caplog: pytest.LogCaptureFixture) -> None:
    """One of several servers was refused: nobody waits for the sign-in to the other any more."""
    waits = threading.Event()
    ended: list[str] = []

    async def other(flight: Flight) -> None:
        waits.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("other")

    async def refused() -> None:
        while not waits.is_set():
            await asyncio.sleep(0.005)
        raise SignInError("not this one", "denied")

    async def main(flight: Flight) -> None:
        await asyncio.gather(refused(), flights.join("other", other))

    with pytest.raises(SignInError):
        flights.join_blocking("several", main, lambda: None)
    until(lambda: ended and not flights._state.flights)
    gc.collect()
    assert caplog.records == []
