"""The loop that waits for an engine's call and answers what it asks."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Mapping
from typing import Any

import pytest

from gopher_mcp_python import (
    AgentError,
    GopherAgentElicitationOptions,
    GopherAgentElicitationRequest,
    TimeoutError,
    stopping,
)
from gopher_mcp_python.elicitation_runtime import Elicitor
from gopher_mcp_python.engines.drive import drive
from gopher_mcp_python.engines.native_turns import Turns
from gopher_mcp_python.ffi import _bridge


class Pending:
    def __init__(self, call: Call, limit: float | None) -> None:
        self.request = GopherAgentElicitationRequest("url", url="https://a.test/")
        self.answers: list[int | str] = []
        self._call = call
        self._end = None if limit is None else time.monotonic() + limit

    def answer(self, action: int | str, content: Mapping[str, Any] | None = None) -> bool:
        with self._call.changed:
            counts = self.is_open()
            if counts:
                self.answers.append(action)
            self._call.changed.notify_all()
        return counts

    def is_open(self) -> bool:
        return not self.answers and not self._call.left and self.remaining_ms() != 0

    def remaining_ms(self) -> int | None:
        return None if self._end is None else max(0, round((self._end - time.monotonic()) * 1000))


class Call:
    """A call in Python with the methods of the engines' calls, whose course a test fixes: `requests` are asked at once,
    it is done when all are over, unless it is to end in another way."""

    def __init__(self, requests: int = 0, *, limit: float | None = None, end: int = _bridge.WAKE_DONE) -> None:
        self.changed = threading.Condition(threading.RLock())
        self.pending = [Pending(self, limit) for _ in range(requests)]
        self.untaken = list(self.pending)
        self.left, self.end, self.waits = 0, end, 0

    def wait(self, slice_ms: int) -> int:
        self.waits += 1
        with self.changed:
            if self.untaken:
                return _bridge.WAKE_REQUEST
            if not any(pending.is_open() for pending in self.pending):
                return self.end
            self.changed.wait(slice_ms / 1000)
        return _bridge.WAKE_TICK

    def take(self) -> Pending | None:
        return self.untaken.pop(0) if self.untaken else None

    def leave(self) -> None:
        self.left += 1


def elicitor(handler: Any, **options: Any) -> Elicitor:
    return Elicitor(GopherAgentElicitationOptions(handler, **options))


def test_done_is_left_to_the_caller() -> None:
    call = Call(2)
    threads: list[Any] = []

    def handler(request: Any) -> str:
        threads.append(threading.current_thread())
        return "accept"

    drive(call, elicitor(handler), what="the run")
    assert [pending.answers for pending in call.pending] == [[1], [1]]
    assert threads == [threading.current_thread()] * 2
    assert call.left == 0


@pytest.mark.parametrize(
    ("end", "kind", "text"),
    [
        (_bridge.WAKE_TIMEOUT, TimeoutError, "the run took longer"),
        (_bridge.WAKE_CLOSED, AgentError, "has been disposed"),
    ],
)
def test_other_ends_leave_the_call(end: int, kind: type[AgentError], text: str) -> None:
    call = Call(end=end)
    with pytest.raises(kind, match=text):
        drive(call, elicitor("cancel"), what="the run")
    assert call.left == 1


def test_limited_handlers_run_beside_one_after_another() -> None:
    active = [0, 0]

    def handler(request: Any) -> str:
        active[0] += 1
        active[1] = max(active)
        time.sleep(0.05)
        active[0] -= 1
        return "accept"

    call = Call(4)
    drive(call, elicitor(handler, timeout_ms=5000), what="the run")
    assert [pending.answers for pending in call.pending] == [[1]] * 4
    assert active[1] == 1


def test_a_handler_past_its_limit_does_not_hold_up_the_next() -> None:
    release = threading.Event()
    calls: list[int] = []

    def handler(request: Any) -> str:
        calls.append(1)
        if len(calls) == 1:
            release.wait(20)
        return "accept"

    call = Call(2, limit=0.4)
    call.pending[1]._end = None
    begin = time.monotonic()
    drive(call, elicitor(handler, timeout_ms=400), what="the run")
    assert time.monotonic() - begin < 3
    assert [pending.answers for pending in call.pending] == [[], [1]]
    release.set()


@pytest.mark.parametrize("limit", [0, 5000])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_interrupts_of_a_handler_come_out_and_leave_the_call(kind: type[BaseException], limit: int) -> None:
    def handler(request: Any) -> str:
        raise kind

    call = Call(1)
    with pytest.raises(kind):
        drive(call, elicitor(handler, timeout_ms=limit), what="the run")
    assert call.pending[0].answers == [3]
    assert call.left == 1


def test_waiting_is_not_busy() -> None:
    def handler(request: Any) -> str:
        time.sleep(0.5)
        return "accept"

    call = Call(2)
    drive(call, elicitor(handler, timeout_ms=5000), what="the run")
    assert call.waits < 60


# ---- calls that may be called off ------------------------------------------------------------------------------------


def test_a_call_that_is_called_off_is_left_whatever_the_handler_does() -> None:
    stop, release = stopping.Stop(), threading.Event()
    context = contextvars.copy_context()
    context.run(stopping.CURRENT.set, stop)

    def handler(request: Any) -> str:
        stop.set()
        release.wait(20)
        return "accept"

    call = Call(2)
    with pytest.raises(AgentError, match="the run was called off"):
        context.run(drive, call, elicitor(handler), what="the run")
    assert call.left == 1
    release.set()
    with pytest.raises(AgentError, match="called off"):
        context.run(drive, Call(), elicitor("cancel"), what="the run")
    assert [pending.answers for pending in call.pending] == [[], []]


def test_a_run_that_is_called_off_gives_up_its_turn() -> None:
    turns, stop = Turns(), stopping.Stop()
    context = contextvars.copy_context()
    context.run(stopping.CURRENT.set, stop)
    ended: list[BaseException] = []

    def wait() -> None:
        try:
            with turns.turn():
                ended.append(AssertionError("it had its turn"))
        except AgentError as error:
            ended.append(error)

    with turns.turn():
        thread = threading.Thread(target=context.run, args=(wait,))
        thread.start()
        while len(turns._queue) < 2:
            time.sleep(0.005)
        stop.set()
        thread.join(20)
        assert "the run was called off" in str(ended[0])
    with turns.turn():
        assert len(turns._queue) == 1
