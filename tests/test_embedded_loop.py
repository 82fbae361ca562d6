"""The loop thread, its calls and their pending questions: the methods that `engines.drive` relies on."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest

from gopher_mcp_python.elicitation import GopherAgentElicitationRequest, GopherAgentElicitationResponse
from gopher_mcp_python.engines._call import LoopCall
from gopher_mcp_python.engines._loop import LoopThread
from gopher_mcp_python.engines._pending import LoopPending
from gopher_mcp_python.errors import AgentError
from gopher_mcp_python.ffi._bridge import WAKE_CLOSED, WAKE_DONE, WAKE_REQUEST, WAKE_TICK, WAKE_TIMEOUT

REQUEST = GopherAgentElicitationRequest("url", "e1", "m", "https://x.example/")


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    one = LoopThread("loop under test")
    yield one
    one.close(nothing)
    one.join(5)


def test_the_policy_of_the_program_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of Qt (qasync, QtAsyncio) make loops that stand still on every thread but the GUI thread."""

    def of_qt() -> asyncio.AbstractEventLoop:
        raise AssertionError("the loop of another thread")

    monkeypatch.setattr(asyncio, "new_event_loop", of_qt)
    one = LoopThread("loop under test")
    call = one.start(lambda call: nothing())
    until(call, WAKE_DONE)
    one.close(nothing)
    one.join(5)


async def nothing() -> None:
    return None


def until(call: LoopCall, wake: int, seconds: float = 5) -> None:
    end = time.monotonic() + seconds
    while (got := call.wait(50)) != wake:
        assert time.monotonic() < end, f"woke with {got}, not with {wake}"


async def ask(call: LoopCall, limit_ms: int = 0) -> GopherAgentElicitationResponse:
    call.clock.start()
    pending = LoopPending(REQUEST, limit_ms, asyncio.get_running_loop())
    assert call.offer(pending)
    return await pending.response()


def test_value_and_error_of_a_call(thread: LoopThread) -> None:
    async def value(call: LoopCall) -> int:
        return 42

    async def error(call: LoopCall) -> int:
        raise ValueError("no")

    for main in (value, error):
        call = thread.start(main)
        until(call, WAKE_DONE)
        if main is value:
            assert call.outcome() == 42
        else:
            with pytest.raises(ValueError, match="no"):
                call.outcome()
        call.leave()


def test_question_is_taken_and_answered_once(thread: LoopThread) -> None:
    call = thread.start(ask)
    until(call, WAKE_REQUEST)
    pending = call.take()
    assert pending is not None and pending.is_open() and pending.remaining_ms() is None
    assert pending.request is REQUEST and call.take() is None
    assert pending.answer(2) is True and pending.answer("accept") is False and not pending.is_open()
    until(call, WAKE_DONE)
    assert call.outcome().action == "decline"
    call.leave()


def test_unknown_actions_are_refused(thread: LoopThread) -> None:
    call = thread.start(ask)
    until(call, WAKE_REQUEST)
    pending = call.take()
    assert pending is not None
    for action in (0, 4, "yes"):
        with pytest.raises(ValueError):
            pending.answer(action)
    assert pending.is_open()
    call.leave()
    assert not pending.is_open() and pending.remaining_ms() == 0


def test_limit_of_a_question_ends_it_with_cancel(thread: LoopThread) -> None:
    begin = time.monotonic()
    call = thread.start(lambda call: ask(call, 200))
    until(call, WAKE_REQUEST)
    pending = call.take()
    assert pending is not None and 0 < (pending.remaining_ms() or 0) <= 200
    until(call, WAKE_DONE)
    assert 0.19 <= time.monotonic() - begin < 1.0
    assert call.outcome().action == "cancel" and pending.answer("accept") is False
    call.leave()


def test_timeout_stands_still_while_a_question_is_open(thread: LoopThread) -> None:
    async def main(call: LoopCall) -> None:
        await ask(call)
        await asyncio.sleep(30)

    call = thread.start(main)
    call.set_timeout(150)
    until(call, WAKE_REQUEST)
    pending = call.take()
    assert pending is not None
    time.sleep(0.3)
    assert call.wait(0) == WAKE_TICK
    pending.answer("accept")
    begin = time.monotonic()
    until(call, WAKE_TIMEOUT)
    assert time.monotonic() - begin < 0.5
    call.leave()


def test_leaving_cancels_what_has_not_ended(thread: LoopThread) -> None:
    begun, ended = threading.Event(), threading.Event()

    async def main(call: LoopCall) -> None:
        try:
            begun.set()
            await asyncio.sleep(30)
        finally:
            ended.set()

    call = thread.start(main)
    assert begun.wait(5) and call.wait(20) == WAKE_TICK and call.running
    call.leave()
    call.leave()
    assert ended.wait(5) and not call.running


def test_question_without_a_waiter_is_not_taken(thread: LoopThread) -> None:
    begun, seen = threading.Event(), list[bool]()

    async def main(call: LoopCall) -> None:
        begun.set()
        while call.running:
            await asyncio.sleep(0.01)
        pending = LoopPending(REQUEST, 0, asyncio.get_running_loop())
        seen.append(call.offer(pending))
        pending.close()

    call = thread.start(lambda call: _shielded(main(call)))
    assert begun.wait(5)
    call.leave()
    end = time.monotonic() + 5
    while not seen and time.monotonic() < end:
        time.sleep(0.01)
    assert seen == [False]


async def _shielded(inner: Coroutine[Any, Any, None]) -> None:
    await asyncio.shield(inner)


def test_questions_that_outlive_their_call_are_handed_back(thread: LoopThread) -> None:
    async def main(call: LoopCall) -> LoopPending:
        pending = LoopPending(REQUEST, 0, asyncio.get_running_loop())
        assert call.offer(pending)
        return pending

    call = thread.start(main)
    until(call, WAKE_DONE)
    (left,) = call.untaken()
    assert left is call.outcome() and left.is_open() and call.untaken() == []
    call.leave()
    assert left.is_open(), "it belongs to the session"
    left.close()


def test_close_wakes_everybody_and_never_blocks(thread: LoopThread) -> None:
    calls = [thread.start(ask) for _ in range(5)]
    for call in calls:
        until(call, WAKE_REQUEST)
    taken = [call.take() for call in calls]
    begin = time.monotonic()
    thread.close(nothing)
    thread.close(nothing)
    assert time.monotonic() - begin < 0.1
    for call, pending in zip(calls, taken, strict=True):
        assert call.wait(0) in (WAKE_CLOSED, WAKE_DONE) and pending is not None and not pending.is_open()
        call.leave()
    thread.join(5)
    with pytest.raises(AgentError, match="disposed"):
        thread.start(ask)


def test_cleanup_that_hangs_or_fails_does_not_keep_the_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gopher_mcp_python.engines._loop.CLOSE_SECONDS", 0.2)

    async def hangs() -> None:
        await asyncio.sleep(60)

    async def fails() -> None:
        raise ValueError("cleanup")

    for cleanup in (hangs, fails):
        one = LoopThread("loop under test")
        one.close(cleanup)
        one.join(5)
        assert not one._thread.is_alive()


@pytest.mark.parametrize("raised", [KeyboardInterrupt, RuntimeError])
def test_loop_that_could_not_be_handed_over_is_ended(
    monkeypatch: pytest.MonkeyPatch, raised: type[BaseException]
) -> None:
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        if raised is KeyboardInterrupt:
            start(thread)
        raise raised

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(raised):
        LoopThread("interrupted loop")
    monkeypatch.undo()
    for left in [thread for thread in threading.enumerate() if thread.name == "interrupted loop"]:
        left.join(5)
        assert not left.is_alive()


def test_signal_handler_may_close_whatever_its_thread_was_doing(thread: LoopThread) -> None:
    async def forever(call: LoopCall) -> None:
        await asyncio.sleep(60)

    call = thread.start(forever)
    call.set_timeout(60_000)
    done = threading.Event()

    def inside() -> None:
        with thread._lock, call._changed, call.clock._lock:  # as when a signal comes at the worst moment
            thread.close(nothing)
            done.set()

    threading.Thread(target=inside, daemon=True).start()
    assert done.wait(5)


def test_nothing_is_left_after_equal_rounds() -> None:
    def round_of_calls() -> int:
        for _ in range(20):
            one = LoopThread("loop under test")
            call = one.start(ask)
            until(call, WAKE_REQUEST)
            call.leave()
            one.close(nothing)
            one.join(5)
        gc.collect()
        kinds = (LoopThread, LoopCall, LoopPending)
        return sum(isinstance(thing, kinds) for thing in gc.get_objects())

    counts = [round_of_calls() for _ in range(3)]
    assert counts[1] == counts[2]
