"""The embedded engine behind GopherAgent: runs, limits, order, contexts, events, ends."""

from __future__ import annotations

import contextvars
import json
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from gopher_mcp_python import (
    AgentError,
    ApiKeyError,
    ConnectionError,
    GopherAgent,
    GopherAgentElicitationResponse,
    GopherAgentEvent,
    TimeoutError,
    non_blocking,
)
from tests.support.servers import McpServer

Handler = Callable[[Any], Any]


def accept(request: Any) -> str:
    return "accept"


def agent_for(where: McpServer | str, handler: Handler | None = accept, **options: Any) -> GopherAgent:
    more = options.pop("elicitation", None)
    elicitation = {"handler": handler, **(more or {})} if handler else more
    given = {"engine": "embedded", "elicitation": elicitation, **options}
    url = where if isinstance(where, str) else where.url
    return GopherAgent.create_with_url("DirectProvider", "none", url, given)


def test_handler_runs_on_the_thread_that_called_run(server: McpServer) -> None:
    seen: list[threading.Thread] = []

    def handler(request: Any) -> str:
        seen.append(threading.current_thread())
        return "accept"

    with agent_for(server, handler) as agent:
        assert agent.engine == "embedded"
        assert "ada@example.com" in agent.run("get mail profile, using get_gmail_users_get_profile")
    assert seen == [threading.current_thread()] and server.actions() == ["accept"]


def test_non_blocking_handler_runs_on_the_engines_thread(server: McpServer) -> None:
    seen: list[str] = []

    @non_blocking
    def handler(request: Any) -> str:
        seen.append(threading.current_thread().name)
        return "decline"

    with agent_for(server, handler) as agent:
        assert agent.run("decline_aware") == "action: decline"
    assert seen == ["gopher agent loop"]


@pytest.mark.parametrize("marked", [False, True])
def test_form_content_arrives(server: McpServer, marked: bool) -> None:
    def handler(request: Any) -> GopherAgentElicitationResponse:
        assert request.requested_schema["required"] == ["reason"]
        return GopherAgentElicitationResponse("accept", {"reason": "audit"})

    with agent_for(server, non_blocking(handler) if marked else handler) as agent:
        assert agent.run("form_tool") == 'form: accept {"reason": "audit"}'


@pytest.mark.parametrize("fixed", ["cancel", "decline"])
def test_fixed_answers(server: McpServer, fixed: str) -> None:
    with agent_for(server, None, elicitation={"handler": fixed}) as agent:
        assert agent.run("decline_aware") == f"action: {fixed}"


def test_elicitation_switched_off_is_not_declared(server: McpServer) -> None:
    with agent_for(server, None, elicitation=False) as agent:
        with pytest.raises(AgentError):
            agent.run("decline_aware")
    assert "elicitation" not in (server.log("hello")[0]["capabilities"] or {})


def test_arguments_and_plain_results(server: McpServer) -> None:
    with agent_for(server) as agent:
        assert agent.run('plain {"text": "grüße"}') == "plain: grüße"
        result = agent.run_detailed("plain")
        assert (result.response, result.iteration_count) == ("plain: ok", 1)


# ---- limits --------------------------------------------------------------------------------------------------------


def test_run_timeout_and_a_good_run_after_it(server: McpServer) -> None:
    with agent_for(server) as agent:
        begin = time.monotonic()
        with pytest.raises(TimeoutError):
            agent.run('slow {"seconds": 20}', 300)
        assert time.monotonic() - begin < 1.5
        assert server.wait_for("tool_cancelled")[0]["tool"] == "slow"
        assert agent.run("plain") == "plain: ok"
    assert server.tools_run() == ["slow", "plain"]


def test_persons_time_does_not_count_against_the_run(server: McpServer) -> None:
    def slowly(request: Any) -> str:
        time.sleep(0.8)
        return "accept"

    with agent_for(server, slowly) as agent:
        assert agent.run("elicit_twice", 700) == "actions: accept accept"


def test_handler_slower_than_its_limit_is_cancelled_on_the_wire_in_time(server: McpServer) -> None:
    handler_ended = threading.Event()

    def slowly(request: Any) -> str:
        time.sleep(1.2)
        handler_ended.set()
        return "accept"

    with agent_for(server, slowly, elicitation={"timeout_ms": 400}) as agent:
        assert agent.run("decline_aware") == "action: cancel"
        answer = server.log("answer")[0]
        assert 0.4 <= answer["seconds"] < 0.9, "the limit plus what a busy machine adds"
        assert not handler_ended.is_set()
        assert agent.run("plain") == "plain: ok"
        handler_ended.wait(5)
    assert server.actions() == ["cancel"]


# ---- order and threads ---------------------------------------------------------------------------------------------


def test_runs_of_one_agent_queue_in_order(server: McpServer) -> None:
    with agent_for(server) as agent, ThreadPoolExecutor(4) as pool:
        runs = []
        for number in range(4):
            runs.append(pool.submit(agent.run, f'slow {{"seconds": 0.{number + 1}}}'))
            time.sleep(0.03)
        assert [run.result(20) for run in runs] == [f"slow: 0.{number + 1}" for number in range(4)]
    events = [(entry["event"], entry.get("arguments", {}).get("seconds")) for entry in server.log()
              if entry["event"] in ("run", "done")]  # fmt: skip
    assert [event for event, _ in events] == ["run", "done"] * 4, "one at a time"
    assert [seconds for event, seconds in events if event == "run"] == [0.1, 0.2, 0.3, 0.4]


def test_two_agents_run_at_the_same_time(server: McpServer) -> None:
    with agent_for(server) as one, agent_for(server) as other, ThreadPoolExecutor(2) as pool:
        begin = time.monotonic()
        runs = [pool.submit(agent.run, 'slow {"seconds": 0.6}') for agent in (one, other)]
        assert [run.result(20) for run in runs] == ["slow: 0.6"] * 2
        assert time.monotonic() - begin < 1.15


def test_handler_cannot_run_its_own_agent(server: McpServer) -> None:
    refused: list[str] = []

    def handler(request: Any) -> str:
        with pytest.raises(AgentError) as caught:
            agent.run("plain")
        refused.append(str(caught.value))
        return "accept"

    with agent_for(server, handler) as agent:
        assert agent.run("decline_aware") == "action: accept"
    assert refused and "plain" not in server.tools_run()


def test_handler_may_run_another_agent(server: McpServer) -> None:
    with agent_for(server) as other:
        with agent_for(server, lambda request: "accept" if other.run("plain") == "plain: ok" else "cancel") as agent:
            assert agent.run("decline_aware") == "action: accept"


def test_handlers_and_events_see_the_callers_context(server: McpServer) -> None:
    user: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="nobody")
    seen: list[str] = []

    @non_blocking
    def handler(request: Any) -> str:
        seen.append(user.get())
        return "accept"

    def on_event(event: GopherAgentEvent) -> None:
        seen.append(user.get())

    with agent_for(server, handler, on_event=on_event) as agent:
        context = contextvars.copy_context()
        context.run(user.set, "ada")
        context.run(agent.run, "decline_aware")
    assert set(seen) == {"ada"} and len(seen) > 4


# ---- events --------------------------------------------------------------------------------------------------------


def test_events_of_a_run(server: McpServer) -> None:
    events: list[GopherAgentEvent] = []
    with agent_for(server, on_event=events.append) as agent:
        agent.run('plain {"text": "x"}')
        agent.run("tool_error")
    kinds = ["iteration_start", "tool_dispatched", "tool_result", "iteration_end", "run_completed"]
    assert [event.kind for event in events] == kinds * 2
    assert len({event.run_id for event in events}) == 2
    assert {"tool": "plain", "args": {"text": "x"}}.items() <= events[1].data.items()
    assert events[2].data["is_error"] is False and events[7].data["is_error"] is True
    assert events[4].data["status"] == "completed"


def test_failed_run_is_told(server: McpServer) -> None:
    events: list[GopherAgentEvent] = []
    with agent_for(server, on_event=events.append) as agent:
        with pytest.raises(AgentError):
            agent.run("there is no such thing")
    assert events[-1].kind == "run_completed" and events[-1].data["status"] == "error"


def test_callback_that_raises_does_no_harm(server: McpServer) -> None:
    def broken(event: GopherAgentEvent) -> None:
        raise ValueError("a callback's own trouble")

    with agent_for(server, on_event=broken) as agent:
        assert agent.run("plain") == "plain: ok"


# ---- ends ----------------------------------------------------------------------------------------------------------


def test_dispose_during_a_run_wakes_it_and_answers_cancel(server: McpServer) -> None:
    asked, go_on = threading.Event(), threading.Event()

    def handler(request: Any) -> str:
        asked.set()
        go_on.wait(5)
        return "accept"

    agent = agent_for(server, handler, elicitation={"timeout_ms": 20_000})
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(agent.run, "decline_aware")
        assert asked.wait(10)
        begin = time.monotonic()
        agent.dispose()
        assert time.monotonic() - begin < 0.2, "dispose never blocks"
        with pytest.raises(AgentError, match="disposed"):
            run.result(5)
        go_on.set()
    assert server.wait_for("answer")[0]["action"] == "cancel"


def test_dispose_from_a_handler(server: McpServer) -> None:
    def handler(request: Any) -> str:
        agent.dispose()
        return "accept"

    agent = agent_for(server, handler)
    with pytest.raises(AgentError, match="disposed"):
        agent.run("decline_aware")
    with pytest.raises(AgentError, match="disposed"):
        agent.run("plain")


def test_interrupt_in_a_handler_is_raised_from_run(server: McpServer) -> None:
    def handler(request: Any) -> str:
        raise KeyboardInterrupt

    with agent_for(server, handler) as agent:
        with pytest.raises(KeyboardInterrupt):
            agent.run("decline_aware")
        assert server.wait_for("answer")[0]["action"] == "cancel"
        assert agent.run("plain") == "plain: ok"


def test_thread_ends_with_its_agent(server: McpServer) -> None:
    def loops() -> int:
        return sum(thread.name == "gopher agent loop" for thread in threading.enumerate())

    before = loops()
    for _ in range(10):
        agent_for(server).dispose()
    end = time.monotonic() + 5
    while loops() > before and time.monotonic() < end:
        time.sleep(0.02)
    assert loops() == before


def test_question_at_the_start_of_a_session(server_with: Callable[..., McpServer]) -> None:
    server = server_with("--elicit-at-start")
    with agent_for(server) as agent:
        assert server.wait_for("answer")[0]["action"] == "accept", "answered although no run is under way"
        assert agent.run("plain") == "plain: ok"


# ---- making one ----------------------------------------------------------------------------------------------------


def test_nobody_listens() -> None:
    with pytest.raises(ConnectionError, match="Is the server running"):
        agent_for("http://127.0.0.1:9/mcp")


@pytest.mark.parametrize("url", ["ftp://x.example/mcp", "http://", "not a url", "http://x.example:99999/"])
def test_url_that_is_none(url: str) -> None:
    with pytest.raises(AgentError):
        agent_for(url)


def test_token_missing_and_given(server_with: Callable[..., McpServer]) -> None:
    server = server_with("--token", "sesame")
    with pytest.raises(ApiKeyError, match="access_token"):
        agent_for(server)
    with agent_for(server, access_token="sesame") as agent:
        assert agent.run("plain") == "plain: ok"


def test_protocol_variable(server: McpServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOPHER_MCP_PROTOCOL", "2026-07-28")
    with agent_for(server) as agent:
        assert agent.run("input_required") == "actions: accept"
    assert {entry["version"] for entry in server.log("run")} == {"2026-07-28"}
    monkeypatch.setenv("GOPHER_MCP_PROTOCOL", "1999")
    with pytest.raises(AgentError, match="auto, handshake or 2026-07-28"):
        agent_for(server)


# ---- server configurations -----------------------------------------------------------------------------------------

STDIO = {"command": sys.executable, "args": ["-m", "tests.support.mcp_server", "--stdio"], "cwd": "."}


def configured(config: Any, **options: Any) -> GopherAgent:
    given = {"engine": "embedded", "elicitation": {"handler": accept}, **options}
    return GopherAgent.create_with_server_config("DirectProvider", "none", json.dumps(config), given)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda url: {"succeeded": True, "data": {"servers": [{"name": "mail", "url": url}]}},
        lambda url: {"succeeded": True, "code": 200, "data": {"servers": [
            {"version": "2025-01-09", "serverId": "1", "name": "mail", "transport": "http_sse",
             "config": {"url": url, "headers": {}}, "connectTimeout": 5000}]}},
        lambda url: {"servers": [{"config": {"url": url}}]},
        lambda url: [{"url": url}],
        lambda url: {"mcpServers": {"mail": {"type": "http", "url": url}}},
    ],
)  # fmt: skip
def test_forms_of_a_server_configuration(server: McpServer, wrap: Callable[[str], Any]) -> None:
    with configured(wrap(server.url)) as agent:
        assert agent.run("decline_aware") == "action: accept"


@pytest.mark.parametrize("wrap", [lambda s: {"mcpServers": {"local": s}}, lambda s: {"servers": [{"config": s}]}])
def test_stdio_server(wrap: Callable[[Any], Any]) -> None:
    with configured(wrap(STDIO)) as agent:
        assert agent.run("decline_aware") == "action: accept"


def test_two_servers_with_the_same_tools(server: McpServer) -> None:
    with configured({"mcpServers": {"first": {"url": server.url}, "local": STDIO}}) as agent:
        assert agent.run("plain") == "plain: ok"
        assert server.tools_run() == ["plain"]
        assert agent.run("local__plain") == "plain: ok"
    assert server.tools_run() == ["plain"]


def test_headers_of_an_entry_win(server: McpServer) -> None:
    config = {"servers": [{"url": server.url, "headers": {"x-test": "entry", "AUTHORIZATION": "Bearer own"}}]}
    with configured(config, access_token="common", headers={"X-Test": "common"}) as agent:
        agent.run("plain")
    headers = server.log("run")[0]["headers"]
    assert (headers["x-test"], headers["authorization"]) == ("entry", "Bearer own")


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"succeeded": False, "message": "no"}, "reports a failure"),
        ({"servers": []}, "names no server"), ({}, "names no server"), ({"data": None}, "names no server"),
        ({"servers": ["x"]}, "not an object"), ({"servers": [{"name": "a"}]}, "a has neither a url nor a command"),
        ({"servers": [{"name": "a", "url": "file:///x"}]}, "a is not an http or https"),
        ({"servers": [{"name": "a", "command": "x", "args": "y"}]}, "args that are not a list"),
    ],
)
def test_configurations_that_cannot_be_read(config: Any, text: str) -> None:
    with pytest.raises(AgentError, match=text):
        configured(config)
