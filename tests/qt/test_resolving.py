"""The resolver of the published desktop dialog: an answer of another thread, awaited; a decline when none comes."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any

import pytest
from mcp_types import ElicitResult

from gopher_mcp_python.handlers.resolving import build_declined_result, resolve_elicitation
from tests.support import children

ACCEPTED = ElicitResult(action="accept", content={"name": "Ada"})
LONG = 60.0  # seconds; no test waits for it


class Abandoned:
    """Counts how often it was told that nobody waits any more."""

    def __init__(self, then: Callable[[], Any] | None = None) -> None:
        self.times = 0
        self._then = then

    def __call__(self) -> None:
        self.times += 1
        if self._then is not None:
            self._then()


def resolve(future: Future[ElicitResult], timeout_s: Any, on_abandon: Any = None) -> ElicitResult:
    return asyncio.run(resolve_elicitation(future, timeout_s, on_abandon=on_abandon))


def answered(result: ElicitResult = ACCEPTED) -> Future[ElicitResult]:
    future: Future[ElicitResult] = Future()
    future.set_result(result)
    return future


def run(body: Callable[[], Awaitable[Any]]) -> Any:
    async def bounded() -> Any:
        return await asyncio.wait_for(body(), LONG)

    return asyncio.run(bounded())


async def waiting(future: Future[ElicitResult], timeout_s: Any = LONG, told: Any = None) -> asyncio.Task[ElicitResult]:
    """A task that is inside of the wait."""
    task = asyncio.ensure_future(resolve_elicitation(future, timeout_s, on_abandon=told))
    while not future._done_callbacks:  # type: ignore[attr-defined]
        await asyncio.sleep(0)
    return task


def test_the_declined_result_carries_nothing() -> None:
    result = build_declined_result()
    assert isinstance(result, ElicitResult)
    assert (result.action, result.content) == ("decline", None)


def test_an_answer_of_another_thread_is_returned_as_it_is() -> None:
    told = Abandoned()

    async def body() -> ElicitResult:
        future: Future[ElicitResult] = Future()
        task = await waiting(future, told=told)
        thread = threading.Thread(target=future.set_result, args=(ACCEPTED,))
        thread.start()
        try:
            return await task
        finally:
            thread.join()

    assert run(body) is ACCEPTED
    assert told.times == 0


def test_when_the_time_is_up_it_is_declined_and_the_question_abandoned_once() -> None:
    told, future = Abandoned(), Future[ElicitResult]()
    result = resolve(future, 0.01, told)
    assert (result.action, result.content, told.times) == ("decline", None, 1)
    assert not future.done()  # shielded: it is the GUI thread's


def test_an_answer_after_the_time_is_dropped() -> None:
    """The GUI thread may still give it, and nothing breaks there, whether or not the loop has ended."""
    told, future = Abandoned(), Future[ElicitResult]()

    async def body() -> str:
        result = await resolve_elicitation(future, 0.01, on_abandon=told)
        future.set_result(ACCEPTED)
        await asyncio.sleep(0)
        return result.action

    assert (run(body), told.times) == ("decline", 1)
    late: Future[ElicitResult] = Future()
    assert resolve(late, 0.01).action == "decline"
    late.set_result(ACCEPTED)


def test_an_answer_that_is_given_by_on_abandon_comes_too_late() -> None:
    future: Future[ElicitResult] = Future()
    told = Abandoned(lambda: future.set_result(ACCEPTED))
    assert resolve(future, 0.01, told).action == "decline"
    assert told.times == 1


@pytest.mark.parametrize("timeout_s", [0, 0.0, -1, -0.5, float("-inf")])
def test_no_time_takes_what_is_there_and_else_declines(timeout_s: float) -> None:
    told = Abandoned()
    assert resolve(answered(), timeout_s, told) is ACCEPTED
    assert told.times == 0
    assert resolve(Future(), timeout_s, told).action == "decline"
    assert told.times == 1


@pytest.mark.parametrize("timeout_s", [None, float("inf"), 1e300, 10**400, 1e9])
def test_no_limit_and_limits_longer_than_any_clock(timeout_s: Any) -> None:
    async def body() -> ElicitResult:
        future: Future[ElicitResult] = Future()
        task = await waiting(future, timeout_s)
        await asyncio.wait((task,), timeout=0.02)
        assert not task.done()
        future.set_result(ACCEPTED)
        return await task

    assert run(body) is ACCEPTED


@pytest.mark.parametrize("timeout_s", [float("nan"), "3", True, [3]])
def test_what_is_no_time_is_refused_before_anything_is_waited_for(timeout_s: Any) -> None:
    told = Abandoned()
    with pytest.raises(ValueError, match="timeout_s must be a number of seconds, or None"):
        resolve(Future(), timeout_s, told)
    assert told.times == 0


def test_on_abandon_must_be_a_plain_function() -> None:
    async def close() -> None:
        """Nobody would await it."""

    for wrong in (close, 3):
        with pytest.raises(ValueError, match="on_abandon must be a plain function"):
            resolve(answered(), 1, wrong)


@pytest.mark.parametrize("is_answered", [False, True])
def test_a_cancellation_passes_on_and_the_question_is_abandoned_once(is_answered: bool) -> None:
    """Also where the answer comes in the same moment: it is dropped then, never returned and abandoned at once."""
    told, future = Abandoned(), Future[ElicitResult]()

    async def body() -> None:
        task = await waiting(future, told=told)
        if is_answered:
            future.set_result(ACCEPTED)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(body)
    assert told.times == 1
    assert not future.cancelled()


def test_a_cancelled_future_is_nobodys_answer() -> None:
    told = Abandoned()

    async def body() -> ElicitResult:
        future: Future[ElicitResult] = Future()
        task = await waiting(future, told=told)
        assert future.cancel()
        return await task

    assert run(body).action == "decline"
    assert told.times == 0


def test_the_futures_exception_is_raised() -> None:
    told, future = Abandoned(), Future[ElicitResult]()
    future.set_exception(RuntimeError("no dialog"))
    with pytest.raises(RuntimeError, match="no dialog"):
        resolve(future, 5, told)
    assert told.times == 0


def test_what_on_abandon_raises_takes_nothing_away(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise RuntimeError("the dialog is gone")

    with caplog.at_level(logging.WARNING, "gopher_mcp_python.elicitation"):
        assert resolve(Future(), 0.01, fail).action == "decline"
    assert "on_abandon failed: RuntimeError" in caplog.text

    async def body() -> None:
        task = await waiting(Future(), told=fail)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(body)


def test_an_answer_that_races_the_time_is_taken_or_dropped_never_both() -> None:
    """The answer comes at about the end of the wait, from another thread, often enough for both to happen."""
    outcomes = set()

    async def body() -> None:
        loop = asyncio.get_running_loop()
        for turn in range(300):
            told, future = Abandoned(), Future[ElicitResult]()
            threading.Timer(0.001, future.set_result, (ACCEPTED,)).start()
            result = await resolve_elicitation(future, 0.0005 * (turn % 5), on_abandon=told)
            assert (result is ACCEPTED, told.times) in ((True, 0), (False, 1))
            outcomes.add(result.action)
            await loop.run_in_executor(None, future.result, LONG)  # its thread is about to end
            if turn >= 50 and len(outcomes) == 2:
                break

    run(body)
    assert outcomes == {"accept", "decline"}


def test_it_needs_no_qt() -> None:
    code = """
import asyncio, sys
from concurrent.futures import Future
sys.modules["PySide6"] = None
from gopher_mcp_python.handlers.qt import ElicitValue, build_declined_result, resolve_elicitation
assert asyncio.run(resolve_elicitation(Future(), 0)) == build_declined_result()
from gopher_mcp_python.handlers import qt
for name in sorted(set(qt.__all__) - {"ElicitValue", "build_declined_result", "resolve_elicitation"}):
    try:
        getattr(qt, name)
    except ImportError as error:
        assert "pip install 'gopher-mcp-python[qt]'" in str(error), error
    else:
        raise AssertionError(name)
print([name for name in sys.modules if name.startswith("PySide6.")])
"""
    assert children.python(code).check().out == "[]\n"


def test_nothing_of_qt_is_imported_before_it_is_used() -> None:
    code = "import sys, gopher_mcp_python.handlers.qt as qt; print('PySide6' in sys.modules); qt.QtPrompt"
    code += "; print('PySide6.QtWidgets' in sys.modules); qt.nothing"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=children.environment()
    )
    assert done.stdout == "False\nTrue\n"
    assert "has no attribute 'nothing'" in done.stderr
