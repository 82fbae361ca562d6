"""Callbacks through the trampoline: who is called, on which thread, in which context, and what odd answers become."""

from __future__ import annotations

import contextvars
import ctypes
import gc
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from gopher_mcp_python.ffi import _bridge
from tests.support import testkit

variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="nothing")


@pytest.fixture
def unraisable(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """What went to sys.unraisablehook."""
    seen: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", seen.append)
    yield seen


def run(handle: _bridge.AgentHandle, query: str) -> str | None:
    try:
        return testkit.finish(handle.run(query)).text
    finally:
        handle.close()


@pytest.mark.parametrize("answer", [1, 2, 3])
@pytest.mark.parametrize("query", ["elicit 3", "foreign 3"])
def test_an_inline_answer_reaches_the_library_unchanged(answer: int, query: str) -> None:
    handle = testkit.handle(testkit.Host(lambda request: answer), answer="inline")
    assert run(handle, query) == " ".join([str(answer)] * 3)


@pytest.mark.parametrize("result", [None, 0, 4, -1, True, 1.0, "accept", 2**40, object(), [1]])
def test_a_wrong_result_cancels(result: object, unraisable: list[Any]) -> None:
    handle = testkit.handle(testkit.Host(lambda request: result), answer="inline")
    assert run(handle, "elicit; foreign") == "3 3"
    assert [type(one.exc_value) for one in unraisable] in ([TypeError] * 2, [OverflowError] * 2)


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), SystemExit(3), MemoryError()])
def test_a_host_that_raises_cancels_and_is_told(error: BaseException, unraisable: list[Any]) -> None:
    def raising(request: object) -> int:
        raise error

    assert run(testkit.handle(testkit.Host(raising), answer="inline"), "elicit; foreign") == "3 3"
    assert [one.exc_value for one in unraisable] == [error, error]


def test_fixed_answers_need_no_python() -> None:
    host = testkit.Host(lambda request: pytest.fail("asked"))
    assert run(testkit.handle(host, answer="fixed", fixed_action="decline"), "elicit; foreign; parallel") == "2 2 2 2"


def test_inline_answer_object_takes_words_responses_and_the_rest() -> None:
    class Response:
        def __init__(self, action: object) -> None:
            self.action = action

    rest: list[tuple[object, BaseException | None]] = []

    def otherwise(result: object, error: BaseException | None, request: object) -> int:
        rest.append((result, error))
        return 3

    for result, code in (("accept", 1), ("decline", 2), ("cancel", 3), (Response("accept"), 1), ("yes", 3), (None, 3),
                         (Response(["accept"]), 3), (1, 3)):  # fmt: skip
        answer = _bridge.InlineAnswer(lambda request, result=result: result, otherwise, Response)
        assert answer(_bridge.ElicitationRequest("url")) == code, result
    assert len(rest) == 4
    boom = ValueError("boom")

    def raising(request: object) -> object:
        raise boom

    assert _bridge.InlineAnswer(raising, otherwise, Response)(_bridge.ElicitationRequest("url")) == 3
    assert rest[-1] == (None, boom)


# ---- Context --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["elicit", "foreign", "elicit; foreign; elicit"])
def test_inline_handlers_see_the_variables_of_who_runs(query: str) -> None:
    seen: list[str] = []
    handle = testkit.handle(testkit.Host(lambda request: seen.append(variable.get()) or 1), answer="inline")
    context = contextvars.copy_context()
    context.run(variable.set, "the caller's")
    assert "1" in str(context.run(run, handle, query))
    assert set(seen) == {"the caller's"}
    assert variable.get() == "nothing"


def test_events_see_the_variables_of_who_runs() -> None:
    seen: list[str] = []

    class Listener(testkit.Host):
        def event(self, kind: int, run_id: int, iteration: int, json_text: str | None) -> None:
            seen.append(f"{kind} {variable.get()} {json_text}")

    handle = testkit.handle(Listener(), wants_events=True)
    context = contextvars.copy_context()
    context.run(variable.set, "x")
    context.run(run, handle, 'event 4 {"tool":"t"}')
    assert seen == ["6 x {}", '4 x {"tool":"t"}']


def test_two_callbacks_at_once_both_see_the_variables() -> None:
    """A context can't be entered twice, so the second callback gets a copy."""
    both = threading.Barrier(2, timeout=10)
    seen: list[str] = []

    def answer(request: object) -> int:
        seen.append(variable.get())
        both.wait()
        return 1

    handle = testkit.handle(testkit.Host(answer), answer="inline")
    context = contextvars.copy_context()
    context.run(variable.set, "both")
    assert context.run(run, handle, "parallel") == "1 1"
    assert seen == ["both", "both"]


def test_what_a_handler_sets_is_seen_by_no_other_agent() -> None:
    seen: list[str] = []

    def answer(request: object) -> int:
        seen.append(variable.get())
        variable.set("left behind")
        return 1

    def fresh() -> None:
        for _ in range(2):
            assert run(testkit.handle(testkit.Host(answer), answer="inline"), "elicit; foreign") == "1 1"

    contextvars.Context().run(fresh)
    assert seen == ["nothing"] * 4


def test_equal_variables_of_two_callers_are_not_mixed_up() -> None:
    """Contexts with the very same variables are shared between agents; equal ones are not the same."""
    boxed: contextvars.ContextVar[list[int]] = contextvars.ContextVar("boxed")
    seen: list[list[int]] = []
    mine: list[list[int]] = [[1], [1], [1]]

    def caller(value: list[int]) -> None:
        boxed.set(value)
        handle = testkit.handle(testkit.Host(lambda request: seen.append(boxed.get()) or 1), answer="inline")
        assert run(handle, "elicit") == "1"

    for value in mine:
        contextvars.copy_context().run(caller, value)
    assert [id(value) for value in seen] == [id(value) for value in mine]


def test_a_context_that_was_captured_is_not_kept() -> None:
    class Held:
        pass

    held: contextvars.ContextVar[Held] = contextvars.ContextVar("held")

    def caller() -> weakref.ref[Held]:
        value = Held()
        held.set(value)
        handle = testkit.handle(testkit.Host(), answer="inline")
        assert run(handle, "elicit") == "1"
        handle.close()
        return weakref.ref(value)

    gone = contextvars.copy_context().run(caller)
    gc.collect()
    end = time.monotonic() + 5
    while gone() is not None and time.monotonic() < end:
        time.sleep(0.01)
    assert gone() is None


# ---- Threads --------------------------------------------------------------------------------------------------------


def test_thread_states_are_kept_between_callbacks_and_collected_after() -> None:
    idents: list[int] = []
    handle = testkit.handle(testkit.Host(lambda request: idents.append(threading.get_ident()) or 1), answer="inline")
    before = _bridge.counts()["thread_states"]
    testkit.finish(handle.run("many 8 50"))
    assert len(idents) == 400
    # The library's eight threads have ended; the run's own thread of the bridge goes soon.
    end = time.monotonic() + 5
    while _bridge.counts()["thread_states"] > before + 1 and time.monotonic() < end:
        time.sleep(0.01)
    assert _bridge.counts()["thread_states"] <= before + 1
    handle.close()


def test_thread_locals_of_an_ended_thread_are_freed() -> None:
    local = threading.local()
    freed = threading.Event()

    class Kept:
        def __del__(self) -> None:
            freed.set()

    def answer(request: object) -> int:
        local.kept = Kept()
        return 1

    handle = testkit.handle(testkit.Host(answer), answer="inline")
    assert testkit.finish(handle.run("foreign")).text == "1"
    handle.close()
    end = time.monotonic() + 5
    while not freed.is_set() and time.monotonic() < end:
        _bridge.counts()
        gc.collect()
        time.sleep(0.01)
    assert freed.is_set()


def test_the_calling_threads_own_state_survives_a_collection() -> None:
    """Deleting a foreign state must not unbind this thread from its own (a trap of 3.12 and later)."""
    for _ in range(3):
        run(testkit.handle(testkit.Host(), answer="inline"), "many 4 2")
        _bridge.counts()
        assert ctypes.pythonapi.PyGILState_Check() == 1
        callback = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 7)
        assert ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.cast(callback, ctypes.c_void_p).value or 0)() == 7


def test_a_callback_inside_a_callback() -> None:
    """A foreign thread whose handler calls native code that calls back again, with and without the GIL."""
    trampoline = _bridge.trampoline_address()
    released = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)(trampoline)
    held = ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)(trampoline)
    fields = (ctypes.c_char_p * 7)(b"1", b"inner", b"url", b"m", b"https://x.test/", b"{}", b"{}")
    seen: list[str | None] = []

    def answer(request: _bridge.ElicitationRequest) -> int:
        seen.append(request.elicitation_id)
        if request.elicitation_id == "inner":
            return 1
        return 1 if [call(ctypes.addressof(fields), handle.token) for call in (released, held)] == [1, 1] else 3

    handle = testkit.handle(testkit.Host(answer), answer="inline")
    assert run(handle, "foreign; elicit") == "1 1"
    assert seen == ["elic-7", "inner", "inner"] * 2


def test_called_from_a_thread_of_python() -> None:
    driver = ctypes.CDLL(str(testkit.folder() / "csrc" / "testkit" / "libgopher-callback-driver.so"))
    for name in ("driver_same_thread", "driver_foreign_thread"):
        function = getattr(driver, name)
        function.restype = ctypes.c_double
        function.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64), ctypes.c_long, ctypes.c_long]
        handle = testkit.handle(answer="inline")
        token = (ctypes.c_uint64 * 1)(handle.token)
        results: list[float] = []
        threads = [
            threading.Thread(
                target=lambda call=function, t=token, into=results: into.append(
                    call(_bridge.trampoline_address(), t, 1, 2000)
                )
            )
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        handle.close()
        assert len(results) == 4 and min(results) > 0


# ---- Late and closed ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["inline", "handed_over", "fixed"])
def test_a_late_callback_is_cancelled_and_touches_nothing(mode: str) -> None:
    """A library thread that calls back for ever until it hears cancel, which a disposed agent answers."""
    answer = testkit.handle(answer=mode, fixed_action="accept", limit_ms=20)
    before = testkit.counts()["threads"]
    assert testkit.finish(answer.run("late 5; late 7")).ok
    answer.close()
    del answer
    gc.collect()
    end = time.monotonic() + 10
    while testkit.counts()["threads"] > before and time.monotonic() < end:
        time.sleep(0.01)
    assert testkit.counts()["threads"] == before


@pytest.mark.parametrize("query", ["elicit", "foreign"])
def test_close_from_within_the_callback(query: str) -> None:
    handles: list[_bridge.AgentHandle] = []

    def answer(request: object) -> int:
        handles[0].close()
        return 1

    handles.append(testkit.handle(testkit.Host(answer), answer="inline"))
    call = handles[0].run(query + "; elicit")
    while call.wait(1000) == _bridge.WAKE_TICK:
        pass
    call.leave()
    assert handles[0].closed and testkit.counts()["misuses"] == 0


def test_close_from_another_thread_while_the_callback_waits() -> None:
    handle = testkit.handle()
    call = handle.run("elicit; say after")
    assert call.wait(5000) == _bridge.WAKE_REQUEST
    pending = call.take()
    assert pending is not None and pending.is_open()
    closer = threading.Thread(target=handle.close)
    begin = time.monotonic()
    closer.start()
    closer.join()
    assert time.monotonic() - begin < 1
    assert not pending.is_open() and pending.answer("accept") is False
    assert call.wait(5000) in (_bridge.WAKE_CLOSED, _bridge.WAKE_DONE)
    call.leave()


def test_tokens_never_come_back() -> None:
    tokens = set()
    for _ in range(200):
        handle = _bridge.AgentHandle(testkit.library(), testkit.Host(), answer="fixed")
        assert handle.token not in tokens and handle.token != 0
        tokens.add(handle.token)
        handle.close()
