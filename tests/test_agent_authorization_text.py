"""Authorization URLs that come as text: asked once, run once more, and never where anything else happened."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from gopher_mcp_python import GopherAgent, TimeoutError
from gopher_mcp_python.authorization_text import authorization_url, url_to_ask_for
from gopher_mcp_python.engines.base import RunOutcome
from tests.support.recording_engine import RecordingEngine
from tests.support.servers import McpServer

URL = "https://provider.test/authorize?response_type=code&client_id=app&scope=mail"


@pytest.mark.parametrize("text", [URL, f"  {URL}\n", URL.replace("https", "HTTPS"), URL + "#x"])
def test_an_authorization_url_and_nothing_else(text: str) -> None:
    assert authorization_url(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        f"Please open {URL}",
        f"{URL} {URL}",
        f'"{URL}"',
        "https://provider.test/authorize",
        "https://provider.test/authorize?client_id=app",
        "https://provider.test/authorize?response_type=code",
        "https://provider.test/authorize?response_type=&client_id=",
        "https://provider.test/#response_type=code&client_id=app",
        "javascript:alert(1)//?response_type=code&client_id=app",
        "ftp://provider.test/?response_type=code&client_id=app",
        "https://[bad?response_type=code&client_id=app",
        '{"url": "' + URL + '"}',
    ],
)
def test_anything_else_is_not(text: str) -> None:
    assert authorization_url(text) is None


@pytest.mark.parametrize(
    ("more", "asked"),
    [
        ({}, True),
        ({"elicited": True}, False),
        ({"tools_called": ()}, False),
        ({"tools_called": ("a", "b")}, False),
        ({"tools_called": ("a", "a")}, False),
        ({"last_tool_text": None}, False),
        ({"last_tool_text": "fine"}, False),
    ],
)
def test_only_where_nothing_else_happened(more: dict[str, Any], asked: bool) -> None:
    outcome = RunOutcome(**{"text": "t", "tools_called": ("a",), "last_tool_text": URL, **more})
    assert (url_to_ask_for(outcome) is not None) is asked


# ---- through the agent ----------------------------------------------------------------------------------------------


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> RecordingEngine:
    recording = RecordingEngine.instead_of_ours(monkeypatch)
    recording.answer = lambda query, timeout_ms: RunOutcome(
        f"run {len(recording.runs)}", tools_called=("mail",), last_tool_text=URL
    )
    return recording


def run(elicitation: Any, timeout_ms: int = 0) -> str:
    with GopherAgent.create_with_url("P", "m", "https://mcp.test/", {"elicitation": elicitation}) as agent:
        return agent.run("q", timeout_ms)


class Handler:
    def __init__(self, action: str, wait: Callable[[], Any] | None = None) -> None:
        self.action, self.wait = action, wait
        self.requests: list[Any] = []

    def __call__(self, request: Any) -> str:
        self.requests.append(request)
        if self.wait is not None:
            self.wait()
        return self.action


def test_accept_runs_once_more_and_only_once(engine: RecordingEngine) -> None:
    handler = Handler("accept")
    assert run({"handler": handler}) == "run 2"
    (request,) = handler.requests
    assert (request.mode, request.url, request.server, request.tool) == ("url", URL, "mcp.test", "mail")
    assert len(engine.runs) == 2


@pytest.mark.parametrize("action", ["decline", "cancel", "nonsense"])
def test_no_other_answer_runs_again(action: str, engine: RecordingEngine) -> None:
    assert run({"handler": Handler(action)}) == "run 1"


@pytest.mark.parametrize("elicitation", [False, {"handler": "cancel"}, {"handler": "decline"}])
def test_nobody_is_asked_where_a_policy_answers(elicitation: Any, engine: RecordingEngine) -> None:
    assert run(elicitation) == "run 1"


def test_the_handlers_limit_holds_here_too(engine: RecordingEngine) -> None:
    release = threading.Event()
    assert run({"handler": Handler("accept", lambda: release.wait(10)), "timeout_ms": 200}) == "run 1"
    release.set()


def test_the_second_run_gets_what_is_left_of_the_time(engine: RecordingEngine) -> None:
    run({"handler": Handler("accept")}, timeout_ms=5000)
    first, second = [timeout_ms for _, timeout_ms in engine.runs]
    assert first == 5000
    assert 4000 < second <= 5000


def test_an_error_in_the_second_run_is_the_runs_error(engine: RecordingEngine) -> None:
    answer = engine.answer

    def fail_later(query: str, timeout_ms: int) -> RunOutcome:
        if len(engine.runs) == 2:
            raise TimeoutError
        return answer(query, timeout_ms)

    engine.answer = fail_later
    with pytest.raises(TimeoutError):
        run({"handler": Handler("accept")})


def test_on_a_real_server(server: McpServer) -> None:
    handler = Handler("accept")
    options = {"engine": "embedded", "elicitation": {"handler": handler}}
    with GopherAgent.create_with_url("DirectProvider", "m", server.url, options) as agent:
        assert "ada@example.com" in agent.run("auth_url_text")
    assert len(handler.requests) == 1
    assert server.tools_run() == ["auth_url_text"] * 2
