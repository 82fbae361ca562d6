"""The clock that stands still while a person is asked, and texts that name servers."""

from __future__ import annotations

import asyncio
import time

import pytest

from gopher_mcp_python.toolset import CallTimeoutError, HttpConnection
from gopher_mcp_python.toolset.alarm import limited
from gopher_mcp_python.toolset.canonical import canonical_json
from gopher_mcp_python.toolset.clock import PausableClock
from gopher_mcp_python.toolset.connection import place
from gopher_mcp_python.toolset.required import find_required


def test_clock_counts_only_while_it_runs() -> None:
    clock = PausableClock(10.0)
    assert clock.remaining() is None  # not started
    clock.start()
    time.sleep(0.02)
    left = clock.remaining()
    assert left is not None and 9.0 < left <= 9.98
    clock.pause()
    clock.pause()
    assert clock.remaining() is None
    clock.resume()
    assert clock.remaining() is None, "the other question is still open"
    time.sleep(0.02)
    clock.resume()
    again = clock.remaining()
    assert again is not None and abs(again - left) < 0.015
    assert 0.02 <= clock.paused_seconds < 0.2


def test_clock_without_limit_never_ends() -> None:
    clock = PausableClock(None)
    clock.start()
    assert clock.remaining() is None


def test_limit_is_moved_by_a_pause() -> None:
    async def body() -> float:
        clock = PausableClock(0.1)
        begin = time.monotonic()
        asyncio.get_running_loop().call_later(0.05, clock.pause)
        asyncio.get_running_loop().call_later(0.25, clock.resume)
        with pytest.raises(CallTimeoutError):
            await limited(asyncio.sleep(5), clock)
        return time.monotonic() - begin

    assert 0.28 <= asyncio.run(body()) < 1.0


def test_limit_returns_what_is_done_in_time() -> None:
    async def answer() -> int:
        return 42

    assert asyncio.run(limited(answer(), PausableClock(5))) == 42


@pytest.mark.parametrize(
    ("value", "text"),
    [({"b": 1, "a": [None, "ü"]}, '{"a":[null,"ü"],"b":1}'), ("\ud800", '"\\ud800"'), (None, "null")],
)
def test_canonical_json(value: object, text: str) -> None:
    assert canonical_json(value) == text


def test_place_has_no_secrets() -> None:
    connection = HttpConnection("https://u:pw@mcp.example:8443/mcp?token=t#f")
    assert place(connection) == "https://mcp.example:8443/mcp"
    assert connection.label == "mcp.example" and "token" not in repr(connection)


def test_required_error_is_found_inside_what_gateways_make_of_it() -> None:
    error = {"code": -32042, "message": "m", "data": {"elicitations": []}}
    assert find_required(error) is error
    assert find_required({"code": -32603, "data": {"upstream": [{"error": error}]}}) is error
    assert find_required({"code": -32603, "data": "text with -32042"}) is None
    deep: object = error
    for _ in range(50):
        deep = {"x": deep}
    assert find_required(deep) is None


def test_a_clock_that_is_stopped_has_no_time_left_even_while_it_stands_still() -> None:
    clock, told = PausableClock(None), []
    clock.on_change(lambda: told.append(clock.remaining()))
    clock.pause()
    assert clock.remaining() is None
    clock.stop()
    assert clock.remaining() == 0 and told == [None, 0]
