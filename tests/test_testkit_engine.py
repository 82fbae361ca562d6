"""The native engine on the testkit: queue, timeouts, retired handles, typed failures, dispose, events, handlers."""

from __future__ import annotations

import contextvars
import gc
import os
import signal
import threading
import time
import weakref
from typing import Any

import pytest

from gopher_mcp_python.agent import GopherAgent
from gopher_mcp_python.elicitation import non_blocking
from gopher_mcp_python.engines.native import NativeAgent
from gopher_mcp_python.engines.native_turns import Turns
from gopher_mcp_python.errors import AgentError, ApiKeyError, ConnectionError, ElicitationWarning, TimeoutError
from gopher_mcp_python.events import GopherAgentEvent
from gopher_mcp_python.ffi import _bridge
from gopher_mcp_python.making import Made
from tests.support import testkit


def accept(request: object) -> str:
    return "accept"


ACCEPT: dict[str, Any] = {"handler": accept}


def run(agent: Any, query: str, timeout_ms: int = 0) -> str:
    try:
        return str(agent.run(query, timeout_ms).text)
    finally:
        agent.release()


@pytest.mark.parametrize(
    ("handler", "code"),
    [(accept, 1), (lambda request: "decline", 2), (lambda request: "cancel", 3), ("decline", 2), ("cancel", 3),
     (non_blocking(lambda request: "accept"), 1)],
)  # fmt: skip
@pytest.mark.parametrize("query", ["elicit", "foreign", "parallel"])
def test_every_kind_of_handler_answers_on_every_thread(handler: Any, code: int, query: str) -> None:
    answers = run(testkit.agent({"handler": handler}), query).split()
    # `parallel` sends one request twice: what was answered once is not asked again
    assert set(answers) == {str(code)}


def test_a_handler_runs_on_the_thread_and_in_the_context_of_run() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    seen: list[tuple[int, str]] = []

    def handler(request: object) -> str:
        seen.append((threading.get_ident(), variable.get("nothing")))
        return "accept"

    variable.set("mine")
    assert run(testkit.agent({"handler": handler}), "elicit") == "1"
    assert seen == [(threading.get_ident(), "mine")]


# ---- Failures -------------------------------------------------------------------------------------------------------


def failed(agent: Any, query: str, timeout_ms: int = 0) -> AgentError:
    with pytest.raises(AgentError) as caught:
        run(agent, query, timeout_ms)
    return caught.value


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("error scripted failure 401", ApiKeyError),
        ("error 403 Forbidden", ApiKeyError),
        ("error Incorrect API key provided", ApiKeyError),
        ("error CURL error: Couldn't connect to server", ConnectionError),
        ("error CURL error: Timeout was reached", TimeoutError),
        ("error Maximum iterations reached", AgentError),
        ("say half an answer; status error it broke", AgentError),
        ("null -1 not an agent", AgentError),
    ],
)
def test_failures_are_typed(query: str, kind: type[AgentError]) -> None:
    assert type(failed(testkit.agent(ACCEPT), query)) is kind


def test_an_answer_that_looks_like_a_failure_is_an_answer() -> None:
    assert run(testkit.agent(ACCEPT), "say Error: is what the model said") == "Error: is what the model said"


def test_without_the_event_a_failure_text_is_a_failure() -> None:
    """The library sends no run_completed event for its own time limit and for "already running"."""
    error = failed(testkit.agent(ACCEPT), "say Error: Agent execution timed out after 120 seconds; quiet")
    assert type(error) is TimeoutError
    assert type(failed(testkit.agent(ACCEPT), "say Error: Agent is already running; quiet")) is AgentError
    assert run(testkit.agent(ACCEPT), "say fine; quiet") == "fine"


@pytest.mark.parametrize("variant", ["headers", "old"])
def test_a_library_without_events_leaves_only_its_fixed_texts_to_go_by(variant: Any) -> None:
    """The stated fallback: whatever else begins with "Error:" is taken for an answer."""
    agent = testkit.agent(False, variant=variant, factory="json")
    assert run(agent, "error model down") == "Error: model down"
    agent = testkit.agent(False, variant=variant, factory="json")
    assert type(failed(agent, "say Error: Agent execution timed out after 120 seconds")) is TimeoutError


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        ("null -20 could not connect to the MCP server", ConnectionError),
        ("null -22 too slow", TimeoutError),
        ("null -2 OPENAI_API_KEY not set", ApiKeyError),
        ("null -20 HTTP 401", ApiKeyError),
        ("null -2 Unsupported provider: X", AgentError),
        ("null 0 ", AgentError),
    ],
)
def test_a_failed_create_is_typed_and_leaves_nothing(script: str, kind: type[AgentError]) -> None:
    with pytest.raises(AgentError) as caught:
        testkit.agent(ACCEPT, script=script)
    assert type(caught.value) is kind and "mcp.example.test" in caught.value.message


def test_secrets_in_the_librarys_texts_are_cut() -> None:
    error = failed(testkit.agent(ACCEPT), "error GET https://x.test/cb?code=s3cr3t&state=hidden failed")
    assert "s3cr3t" not in str(error) and "hidden" not in str(error) and "x.test" in str(error)


def test_a_handlers_exception_is_attached() -> None:
    boom = ValueError("boom")

    def handler(request: object) -> str:
        raise boom

    agent = testkit.agent({"handler": handler})
    outcome = agent.run("elicit; say on", 0)
    assert outcome.text == "3 on" and outcome.elicitation_cause is boom
    agent.release()
    assert failed(testkit.agent({"handler": handler}), "elicit; error down").elicitation_cause is boom
    boom.__traceback__ = None  # its frames hold the request


# ---- Time -----------------------------------------------------------------------------------------------------------


def test_a_timeout_retires_the_handle_and_the_next_run_gets_its_own_answer() -> None:
    agent = testkit.agent(ACCEPT)
    begin = time.monotonic()
    with pytest.raises(TimeoutError):
        agent.run("sleep 400; say late", 60)
    assert time.monotonic() - begin < 0.3
    assert testkit.counts()["agents"] == 1
    assert agent.run("say in time", 1000).text == "in time"
    agent.release()
    assert testkit.counts()["misuses"] == 0


def test_the_persons_time_does_not_count() -> None:
    def handler(request: object) -> str:
        time.sleep(0.3)
        return "accept"

    assert run(testkit.agent({"handler": handler}), "elicit; say done", 150) == "1 done"


@pytest.mark.parametrize("timeout_ms", [80, 300])
def test_a_slow_handler_is_cancelled_within_50_ms_of_its_limit(timeout_ms: int) -> None:
    over = threading.Event()

    def handler(request: object) -> str:
        over.wait(10)
        return "accept"

    agent = testkit.agent({"handler": handler, "timeout_ms": timeout_ms})
    begin = time.monotonic_ns()
    assert agent.run("elicit", 0).text == "3"
    late = (testkit.counts()["last_answer_ns"] - begin) / 1e6 - timeout_ms
    over.set()
    agent.release()
    assert -2 < late < 50


def test_the_limit_is_lowered_to_what_the_library_can_do_with_a_warning() -> None:
    with pytest.warns(ElicitationWarning, match="115000"):
        agent = testkit.agent({"handler": accept, "timeout_ms": 200_000})
    assert testkit.seen()["elicitation_timeout_ms"] == "200000"  # the struct gets the caller's value
    agent.release()
    left: list[int | None] = []
    for options in (ACCEPT, {"handler": accept, "timeout_ms": 5000}):
        agent = testkit.agent(options)
        call = agent._handle.run("elicit")
        while call.wait(1000) != _bridge.WAKE_REQUEST:
            pass
        pending = call.take()
        left.append(pending.remaining_ms())
        pending.answer("accept")
        call.leave()
        agent.release()
    assert left[0] is not None and left[1] is not None
    assert 114_000 < left[0] <= 115_000 and 4_000 < left[1] <= 5_000


# ---- The queue ------------------------------------------------------------------------------------------------------


def test_runs_of_one_agent_are_done_one_after_another_in_order() -> None:
    agent = testkit.agent(ACCEPT)
    order: list[int] = []

    def one(number: int) -> None:
        assert agent.run(f"sleep 20; say {number}", 0).text == str(number)
        order.append(number)

    threads = []
    for number in range(8):
        threads.append(threading.Thread(target=one, args=(number,)))
        threads[-1].start()
        time.sleep(0.005)
    for thread in threads:
        thread.join()
    agent.release()
    assert order == list(range(8))


def test_the_timeout_begins_when_it_is_ones_turn() -> None:
    agent = testkit.agent(ACCEPT)
    first = threading.Thread(target=agent.run, args=("sleep 300", 0))
    first.start()
    time.sleep(0.05)
    assert agent.run("sleep 20; say ok", 150).text == "ok"
    first.join()
    agent.release()


def test_ctrl_c_reaches_one_who_waits_in_the_queue() -> None:
    agent = testkit.agent(ACCEPT)
    first = threading.Thread(target=agent.run, args=("sleep 500", 0))
    first.start()
    time.sleep(0.05)
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        agent.run("say x", 0)
    first.join()
    timer.join()
    assert agent.run("say next", 0).text == "next"
    agent.release()


@pytest.mark.parametrize("query", ["sleep 600", "elicit; say x"])
def test_ctrl_c_reaches_a_run_and_cancels_what_is_open(query: str) -> None:
    def handler(request: object) -> str:
        time.sleep(10)
        return "accept"

    agent = testkit.agent({"handler": handler})
    timer = threading.Timer(0.15, os.kill, (os.getpid(), signal.SIGINT))
    begin = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        agent.run(query, 0)
    assert time.monotonic() - begin < 1
    timer.join()
    assert agent.run("say alive", 0).text == "alive"
    agent.release()


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("query", ["elicit; say x", "foreign; say x"])
def test_an_interrupt_of_a_handler_is_raised_from_run(interrupt: type[BaseException], marked: bool, query: str) -> None:
    def handler(request: object) -> str:
        raise interrupt

    agent = testkit.agent({"handler": non_blocking(handler) if marked else handler})
    with pytest.raises(interrupt):
        agent.run(query, 0)
    agent.release()


# ---- Dispose, drop, re-entry, fork ----------------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["sleep 700", "elicit; sleep 700", "foreign; sleep 700"])
def test_release_during_a_run_ends_it_at_once(query: str) -> None:
    agent = testkit.agent(ACCEPT)
    timer = threading.Timer(0.1, agent.release)
    begin = time.monotonic()
    timer.start()
    with pytest.raises(AgentError, match="disposed"):
        agent.run(query, 0)
    assert time.monotonic() - begin < 0.5
    timer.join()
    with pytest.raises(AgentError, match="disposed"):
        agent.run("say x", 0)
    assert testkit.counts()["misuses"] == 0


@pytest.mark.parametrize("marked", [False, True])
def test_release_from_a_handler(marked: bool) -> None:
    agents: list[Any] = []

    def handler(request: object) -> str:
        agents[0].release()
        return "accept"

    agents.append(testkit.agent({"handler": non_blocking(handler) if marked else handler}))
    with pytest.raises(AgentError, match="disposed"):
        agents[0].run("elicit; sleep 200", 0)


def test_release_wakes_the_queue() -> None:
    agent = testkit.agent(ACCEPT)
    errors: list[str] = []

    def one() -> None:
        try:
            agent.run("sleep 500", 0)
        except AgentError as error:
            errors.append(str(error))

    threads = [threading.Thread(target=one) for _ in range(5)]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    begin = time.monotonic()
    agent.release()
    for thread in threads:
        thread.join()
    assert time.monotonic() - begin < 0.4 and len(errors) == 5


@pytest.mark.parametrize("options", [{}, {"timeout_ms": 5000}])
def test_a_handler_that_runs_its_own_agent_is_refused(options: dict[str, Any]) -> None:
    errors: list[AgentError] = []

    def handler(request: object) -> str:
        try:
            one.run("say inner", 0)
        except AgentError as error:
            errors.append(error)
        assert other.run("elicit", 0) == "1"
        return "accept"

    def made(elicitation: Any) -> GopherAgent:
        engine = testkit.agent(elicitation)
        return GopherAgent(Made(engine, engine._elicitor, "mcp.example.test", "a test"))

    with made({"handler": handler, **options}) as one, made(ACCEPT) as other:
        assert one.run("elicit; foreign", 0) == "1 1"
        assert len(errors) == 1 and "own agent" in str(errors[0])  # one id is asked once
        assert one.run("say again", 0) == "again"


def test_ctrl_c_on_the_way_into_a_run_gives_its_turn_back() -> None:
    class Interrupted(Turns):
        def _wait(self, *ticket: Any) -> None:
            super()._wait(*ticket)
            raise KeyboardInterrupt

    turns, had = Interrupted(), threading.Event()

    def next_run() -> None:
        with turns.turn():
            had.set()

    with pytest.raises(KeyboardInterrupt), turns.turn():
        pytest.fail("it had its turn")
    turns.__class__ = Turns
    thread = threading.Thread(target=next_run, daemon=True)
    thread.start()
    assert had.wait(20)
    thread.join()


@pytest.mark.parametrize("lost", ["before the run", "in the making"])
def test_ctrl_c_between_the_start_of_a_call_and_the_wait_for_it(lost: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    agent = testkit.agent(ACCEPT)
    if lost == "in the making":
        agent._retire()
    with monkeypatch.context() as patch:
        patch.setattr(NativeAgent, "_carry_out", interrupted)
        with pytest.raises(KeyboardInterrupt):
            agent.run("sleep 300; say lost", 0)
    assert agent.run("elicit", 0).text == "1"
    agent.release()


def test_an_agent_that_is_dropped_is_released() -> None:
    agent = testkit.agent(ACCEPT, on_event=lambda event: None)
    agent.run("elicit; foreign", 0)
    gone = weakref.ref(agent)
    del agent
    gc.collect()
    end = time.monotonic() + 5  # a callback's thread may still be on its way out of Python
    while (gone() is not None or testkit.counts()["agents"]) and time.monotonic() < end:
        time.sleep(0.01)
    assert gone() is None
    assert testkit.counts()["agents"] == 0 and _bridge.counts()["live_agents"] == 0


# ---- Events and what the outcome tells ------------------------------------------------------------------------------


def test_events_and_the_outcome() -> None:
    events: list[GopherAgentEvent] = []
    agent = testkit.agent(ACCEPT, on_event=events.append)
    outcome = agent.run(
        'event 4 {"tool":"mail"};event 5 {"result":{"type":"text","text":"hello"}};event 2 not json;say done', 0
    )
    agent.release()
    assert [event.kind for event in events] == [
        "iteration_start", "tool_dispatched", "tool_result", "llm_request", "run_completed",
    ]  # fmt: skip
    assert events[1].data == {"tool": "mail"} and events[3].data == {} and events[4].data == {"status": "completed"}
    assert outcome.tools_called == ("mail",) and outcome.last_tool_text == "hello" and not outcome.elicited


def test_what_one_run_did_is_not_told_of_the_next() -> None:
    agent = testkit.agent(ACCEPT)
    first = agent.run('event 4 {"tool":"a"}; elicit', 0)
    second = agent.run("say x", 0)
    agent.release()
    assert first.elicited and first.tools_called == ("a",)
    assert not second.elicited and second.tools_called == ()


def test_a_failing_observer_does_not_fail_the_run(caplog: pytest.LogCaptureFixture) -> None:
    def observer(event: object) -> None:
        raise ValueError("observer")

    assert run(testkit.agent(ACCEPT, on_event=observer), "say fine") == "fine"
    assert "on_event failed" in caplog.text
