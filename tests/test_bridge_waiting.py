"""Handed-over requests: the wait in C, its deadline, the clock of the call, who answers."""

from __future__ import annotations

import threading
import time

import pytest

from gopher_mcp_python.ffi import _bridge
from tests.support import testkit


def wait_for(call: _bridge.Call, wake: int, seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while (got := call.wait(20)) != wake:
        assert got == _bridge.WAKE_TICK and time.monotonic() < end, got


@pytest.mark.parametrize("query", ["elicit", "foreign"])
def test_the_limit_answers_cancel(query: str) -> None:
    limit_ms = 1000
    handle = testkit.handle(limit_ms=limit_ms)
    begin = time.monotonic_ns()
    call = handle.run(query)
    wait_for(call, _bridge.WAKE_REQUEST)
    pending = call.take()
    assert pending is not None and (pending.remaining_ms() or 0) <= limit_ms
    wait_for(call, _bridge.WAKE_DONE)  # nobody answers
    assert call.outcome().text == "3"
    call.leave()
    handle.close()
    answered = (testkit.counts()["last_answer_ns"] - begin) / 1e6
    assert answered >= limit_ms - 1
    assert pending.answer("accept") is False and pending.remaining_ms() == 0


def test_no_limit_says_so() -> None:
    handle = testkit.handle()
    call = handle.run("elicit")
    wait_for(call, _bridge.WAKE_REQUEST)
    pending = call.take()
    assert pending is not None and pending.remaining_ms() is None
    assert pending.answer(2) and not pending.answer(1)
    wait_for(call, _bridge.WAKE_DONE)
    assert call.outcome().text == "2"
    call.leave()
    handle.close()


def test_the_calls_clock_stands_still_while_a_request_is_open() -> None:
    handle = testkit.handle()
    call = handle.run("elicit; sleep 50; say done")
    call.set_timeout(200)
    wait_for(call, _bridge.WAKE_REQUEST)
    pending = call.take()
    assert pending is not None
    assert call.wait(500) == _bridge.WAKE_TICK  # 200 ms are long over
    pending.answer("accept")
    wait_for(call, _bridge.WAKE_DONE)
    outcome = call.outcome()
    assert outcome.text == "1 done" and 0.45 < outcome.paused_seconds < 2
    call.leave()
    handle.close()


def test_the_clock_stands_still_until_both_requests_are_answered() -> None:
    handle = testkit.handle()
    call = handle.run("parallel; say done")
    call.set_timeout(150)
    taken: list[_bridge.PendingRequest] = []
    while len(taken) < 2:
        wait_for(call, _bridge.WAKE_REQUEST)
        taken.append(call.take())  # type: ignore[arg-type]
    taken[0].answer("accept")
    assert call.wait(300) == _bridge.WAKE_TICK
    taken[1].answer("decline")
    wait_for(call, _bridge.WAKE_DONE)
    assert sorted((call.outcome().text or "").split()[:2]) == ["1", "2"]
    call.leave()
    handle.close()


def test_a_calls_own_time_is_up() -> None:
    handle = testkit.handle()
    call = handle.run("sleep 400; say late")
    begin = time.monotonic()
    call.set_timeout(50)
    wait_for(call, _bridge.WAKE_TIMEOUT)
    assert 0.04 < time.monotonic() - begin < 0.3
    assert handle.can_run
    call.leave()  # retires the agent: the late result is nobody's
    assert not handle.can_run
    with pytest.raises(RuntimeError, match="could not be started"):
        handle.run("say x")
    handle.close()


def test_leaving_cancels_what_is_open() -> None:
    handle = testkit.handle()
    call = handle.run("elicit 3; say on")
    wait_for(call, _bridge.WAKE_REQUEST)
    pending = call.take()
    call.leave()
    assert pending is not None and not pending.is_open()
    call.leave()
    with pytest.raises(RuntimeError, match="left"):
        call.wait(1)
    handle.close()


def test_a_dropped_request_is_cancelled() -> None:
    handle = testkit.handle()
    call = handle.run("elicit")
    wait_for(call, _bridge.WAKE_REQUEST)
    assert call.take() is not None  # and dropped
    wait_for(call, _bridge.WAKE_DONE)
    assert call.outcome().text == "3"
    call.leave()
    handle.close()


def test_requests_are_taken_in_the_order_in_which_they_came() -> None:
    handle = testkit.handle()
    call = handle.run("elicit; big 10; odd")
    seen: list[str | None] = []
    while (wake := call.wait(5000)) != _bridge.WAKE_DONE:
        assert wake == _bridge.WAKE_REQUEST
        pending = call.take()
        assert pending is not None
        seen.append(pending.request.message)
        pending.answer("accept")
    call.leave()
    handle.close()
    assert seen == ["Sign in to the test provider", "m" * 10, "caf\ufffd \ufffd"]


def test_create_asks_too() -> None:
    library, host = testkit.library(), testkit.Host()
    handle = _bridge.AgentHandle(library, host, answer="handed_over")
    call = handle.create("url", "P", "script:foreign; sleep 1", None, "https://x.test/", _bridge.NativeOptions())
    wait_for(call, _bridge.WAKE_REQUEST)
    pending = call.take()
    assert pending is not None and pending.answer("accept")
    wait_for(call, _bridge.WAKE_DONE)
    assert call.outcome().ok and handle.can_run
    call.leave()
    handle.close()


@pytest.mark.thread_unsafe(reason="counts the library's threads")
def test_what_nobody_waits_for_goes_to_the_host() -> None:
    host = testkit.Host()
    handle = testkit.handle(host)
    before = testkit.counts()["threads"]
    assert testkit.finish(handle.run("late 20")).ok
    end = time.monotonic() + 5
    while not host.orphans and time.monotonic() < end:
        time.sleep(0.005)
    (pending,) = host.orphans
    assert pending.request.url and pending.answer("cancel")
    host.orphans.clear()
    del pending
    while testkit.counts()["threads"] > before and time.monotonic() < end:
        time.sleep(0.005)
    assert testkit.counts()["threads"] == before
    handle.close()


@pytest.mark.parametrize("action", ["Accept", "", 0, 4, None, True, 1.0, b"accept"])
def test_only_the_three_answers_are_taken(action: object) -> None:
    handle = testkit.handle()
    call = handle.run("elicit")
    wait_for(call, _bridge.WAKE_REQUEST)
    pending = call.take()
    assert pending is not None
    with pytest.raises(ValueError, match="accept, decline or cancel"):
        pending.answer(action)  # type: ignore[arg-type]
    assert pending.is_open() and pending.answer("decline")
    wait_for(call, _bridge.WAKE_DONE)
    call.leave()
    handle.close()


def test_one_waiter_at_a_time() -> None:
    handle = testkit.handle()
    call = handle.run("sleep 300")
    inside = threading.Thread(target=call.wait, args=(1000,))
    inside.start()
    time.sleep(0.05)
    with pytest.raises(RuntimeError, match="another thread"):
        call.leave()
    inside.join()
    call.leave()
    handle.close()


def test_waiting_gives_the_gil_up() -> None:
    handle = testkit.handle()
    call = handle.run("sleep 200")
    counted = 0
    thread = threading.Thread(target=call.wait, args=(1000,))
    thread.start()
    end = time.monotonic() + 0.1
    while time.monotonic() < end:
        counted += 1
    thread.join()
    call.leave()
    handle.close()
    assert counted > 1000


def test_made_objects_can_not_be_made_by_hand() -> None:
    for kind in (_bridge.Call, _bridge.PendingRequest, _bridge.Library):
        with pytest.raises(TypeError):
            kind()
