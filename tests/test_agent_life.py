"""An agent's life: runs, results, contexts, disposal. On the embedded engine; tests/scenarios has both."""

from __future__ import annotations

import contextvars
import gc
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import gopher_mcp_python as gopher
from gopher_mcp_python import AgentError, GopherAgent
from gopher_mcp_python.engines.base import RunOutcome
from tests.support.recording_engine import RecordingEngine
from tests.support.servers import McpServer

PROFILE = "get mail profile, using get_gmail_users_get_profile"
COLOUR: contextvars.ContextVar[str] = contextvars.ContextVar("colour", default="none")


@pytest.fixture
def made(server: McpServer) -> Callable[..., GopherAgent]:
    def make(handler: Any = "cancel", **options: Any) -> GopherAgent:
        elicitation = {"handler": handler, **options.pop("elicitation", {})}
        given = {"engine": "embedded", "elicitation": elicitation, **options}
        return GopherAgent.create_with_url("DirectProvider", "m", server.url, given)

    return make


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> RecordingEngine:
    return RecordingEngine.instead_of_ours(monkeypatch)


def recorded() -> GopherAgent:
    return GopherAgent.create_with_url("P", "m", "https://mcp.test/mcp")


# ---- running --------------------------------------------------------------------------------------------------------


def test_run_and_run_detailed(made: Any) -> None:
    with made() as agent:
        assert agent.engine == "embedded"
        assert "engine option" in agent.engine_reason
        assert "hello" in agent.run('plain {"text": "hello"}')
        result = agent.run_detailed('plain {"text": "hello"}')
        assert result.is_success()
        assert result.iteration_count >= 1
        assert result.elicitation_cause is None


def test_a_failed_run_raises_or_comes_back_as_a_result(engine: RecordingEngine) -> None:
    def fail(query: str, timeout_ms: int) -> RunOutcome:
        raise {"late": gopher.TimeoutError, "key": gopher.ApiKeyError}.get(query, AgentError)(f"{query} failed")

    engine.answer = fail
    with recorded() as agent:
        for query, kind, status in (("late", gopher.TimeoutError, "timeout"), ("key", gopher.ApiKeyError, "error")):
            with pytest.raises(kind, match=f"{query} failed"):
                agent.run(query)
            result = agent.run_detailed(query)
            assert (result.status.value, result.error_message) == (status, f"{query} failed")
            assert result.response == ""


@pytest.mark.parametrize(("given", "passed"), [(None, 0), (0, 0), (-5, 0), (1500, 1500), (1500.9, 1500)])
def test_timeouts_reach_the_engine(given: Any, passed: int, engine: RecordingEngine) -> None:
    with recorded() as agent:
        agent.run("q", given)
        agent.run("q")
    assert engine.runs == [("q", passed), ("q", 60000)]


@pytest.mark.parametrize(("query", "timeout_ms"), [(None, 1), (3, 1), ("q", "soon"), ("a\0b", 1), ("lone \ud800", 1)])
def test_wrong_arguments_are_agent_errors(query: Any, timeout_ms: Any, engine: RecordingEngine) -> None:
    with recorded() as agent:
        with pytest.raises(AgentError, match="Query execution failed"):
            agent.run(query, timeout_ms)
        assert agent.run_detailed(query, timeout_ms).is_error()
    assert engine.runs == []


def test_a_handlers_error_comes_with_the_result_and_with_the_error(made: Any, engine: Any) -> None:
    raised: list[Exception] = []

    def broken(request: Any) -> str:
        raised.append(LookupError("mine"))
        raise raised[-1]

    def fail(query: str, timeout_ms: int) -> RunOutcome:
        agent._elicitor.inline_answer(gopher.GopherAgentElicitationRequest("url", url="https://a.test/"))
        raise AgentError("the tool failed")

    engine.answer = fail
    with GopherAgent.create_with_url("P", "m", "https://a.test/", {"elicitation": {"handler": broken}}) as agent:
        with pytest.raises(AgentError) as caught:
            agent.run("q")
        assert caught.value.elicitation_cause is raised[0]
        assert caught.value.__cause__ is None
        assert agent.run_detailed("q").elicitation_cause is raised[1]
        engine.answer = lambda query, timeout_ms: RunOutcome("fine")
        assert agent.run_detailed("q").elicitation_cause is None


def test_a_handlers_error_on_a_real_run(made: Any, server: McpServer) -> None:
    error = LookupError("mine")

    def broken(request: Any) -> str:
        raise error

    with made(broken) as agent:
        assert agent.run_detailed(PROFILE).elicitation_cause is error
    assert server.actions() == ["cancel"]


def test_handlers_and_events_see_the_callers_context_and_thread(made: Any) -> None:
    seen: list[Any] = []
    events: list[str] = []

    def handler(request: Any) -> str:
        seen.append((COLOUR.get(), threading.current_thread()))
        return "accept"

    with made(handler, on_event=lambda event: events.append(COLOUR.get())) as agent:
        token = COLOUR.set("green")
        try:
            agent.run(PROFILE)
        finally:
            COLOUR.reset(token)
    assert seen == [("green", threading.current_thread())]
    assert set(events) == {"green"}


def test_a_limited_handler_runs_beside_and_sees_the_context(made: Any, server: McpServer) -> None:
    seen: list[Any] = []

    def handler(request: Any) -> str:
        seen.append((COLOUR.get(), threading.current_thread() is threading.main_thread()))
        time.sleep(3 if len(seen) == 1 else 0)
        return "accept"

    with made(handler, elicitation={"timeout_ms": 300}) as agent:
        token = COLOUR.set("blue")
        try:
            begin = time.monotonic()
            agent.run("decline_aware")
            assert time.monotonic() - begin < 2
            agent.run("decline_aware")
        finally:
            COLOUR.reset(token)
    assert seen == [("blue", False)] * 2
    assert server.actions() == ["cancel", "accept"]


def test_a_handler_can_not_run_its_own_agent_but_another_one(made: Any) -> None:
    inner: list[Any] = []

    def handler(request: Any) -> str:
        with pytest.raises(AgentError, match="can't run its own agent"):
            agent.run("plain")
        inner.append(other.run('plain {"text": "other"}'))
        return "accept"

    with made(handler) as agent, made() as other:
        agent.run(PROFILE)
        assert "other" in inner[0]
        assert "again" in agent.run('plain {"text": "again"}')


def test_a_context_that_outlives_the_run_may_run_the_agent_again(engine: RecordingEngine) -> None:
    kept: list[contextvars.Context] = []
    engine.answer = lambda query, timeout_ms: (kept.append(contextvars.copy_context()), RunOutcome("done"))[1]
    with recorded() as agent:
        agent.run("q")
        assert kept[0].run(agent.run, "q") == "done"


# ---- end ------------------------------------------------------------------------------------------------------------


def test_dispose_is_idempotent_and_final(engine: RecordingEngine) -> None:
    agent = recorded()
    assert not agent.is_disposed()
    for _ in range(3):
        agent.dispose()
        assert agent.is_disposed()
    assert engine.agents[0].released == 1
    with pytest.raises(AgentError, match="Agent has been disposed"):
        agent.run("q")
    result = agent.run_detailed("q")
    assert (result.is_error(), result.error_message) == (True, "Agent has been disposed")
    assert agent.__enter__() is agent


def test_dispose_from_many_threads_releases_once(engine: RecordingEngine) -> None:
    for _ in range(50):
        agent = recorded()
        barrier = threading.Barrier(4)

        def end(agent: GopherAgent = agent, barrier: threading.Barrier = barrier) -> None:
            barrier.wait()
            agent.dispose()

        threads = [threading.Thread(target=end) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [made.released for made in engine.agents] == [1] * 50


def test_with_disposes_also_after_an_error(engine: RecordingEngine) -> None:
    with pytest.raises(ZeroDivisionError), recorded() as agent:
        raise ZeroDivisionError
    assert agent.is_disposed()


def _drop(agents: list[GopherAgent]) -> None:
    agents.clear()
    gc.collect()


def test_a_dropped_agent_is_released_with_a_warning(engine: RecordingEngine) -> None:
    agents = [recorded()]
    agents[0].run("q")
    with pytest.warns(ResourceWarning, match=r"for mcp\.test was dropped without dispose"):
        _drop(agents)
    assert engine.agents[0].released == 1


def test_a_disposed_agent_is_dropped_in_silence(engine: RecordingEngine) -> None:
    agent = recorded()
    agent.dispose()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del agent
        gc.collect()
    assert engine.agents[0].released == 1


def test_dispose_in_the_middle_of_a_run_ends_it(made: Any, server: McpServer) -> None:
    agent = made()
    ended: list[Any] = []
    thread = threading.Thread(target=lambda: ended.append(agent.run_detailed('slow {"seconds": 20}')))
    thread.start()
    server.wait_for("run")
    begin = time.monotonic()
    agent.dispose()
    assert time.monotonic() - begin < 0.5
    thread.join(10)
    assert "disposed" in ended[0].error_message


def test_dispose_from_a_handler(made: Any, server: McpServer) -> None:
    def handler(request: Any) -> str:
        agent.dispose()
        return "accept"

    agent = made(handler)
    assert "disposed" in (agent.run_detailed(PROFILE).error_message or "")
    assert agent.is_disposed()


def test_a_run_that_comes_to_its_end_after_a_dispose_failed(engine: RecordingEngine) -> None:
    agent = recorded()

    def answer(query: str, timeout_ms: int) -> RunOutcome:
        agent.dispose()
        return RunOutcome("the tool was told cancel")

    engine.answer = answer
    with pytest.raises(AgentError, match="disposed while the run was under way"):
        agent.run("q")


@pytest.mark.parametrize("made", [None, 1, object()])
def test_agents_are_made_by_the_factories_only(made: Any) -> None:
    with pytest.raises(TypeError, match="create_with_"):
        GopherAgent(made)


def test_init_and_shutdown(engine: RecordingEngine) -> None:
    GopherAgent.shutdown()
    assert not GopherAgent.is_initialized()
    GopherAgent.init()
    assert GopherAgent.is_initialized()
    GopherAgent.shutdown()
    with recorded() as agent:
        assert GopherAgent.is_initialized()
        GopherAgent.shutdown()
        assert agent.run("q") == "done"
    assert not GopherAgent.is_initialized()
    GopherAgent.init()


def test_init_says_when_the_engine_that_is_asked_for_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOPHER_MCP_ENGINE", "quick")
    with pytest.raises(AgentError, match="GOPHER_MCP_ENGINE is 'quick'; it must be auto, native or embedded"):
        GopherAgent.init()


@pytest.mark.parametrize("timeout_ms", [float("nan"), float("inf"), "5", [1]])
def test_a_run_limit_that_is_no_number_is_refused(timeout_ms: Any) -> None:
    from gopher_mcp_python.runs import checked_run

    with pytest.raises(AgentError, match="timeout_ms must be a number"):
        checked_run("q", timeout_ms)


@pytest.mark.parametrize(("given", "used"), [(0, 0), (-5, 0), (0.5, 1), (10**400, 10**15), (None, 0)])
def test_a_run_limit_becomes_one_that_clocks_take(given: Any, used: int) -> None:
    from gopher_mcp_python.runs import checked_run

    assert checked_run("q", given) == used
