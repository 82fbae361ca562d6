"""What models' endpoints and servers' tool names may look like: names that vendors refuse, replies that are none."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import pytest

from gopher_mcp_python import AgentError, GopherAgent
from gopher_mcp_python.engines._run import Tools
from gopher_mcp_python.providers import ToolSpec
from gopher_mcp_python.providers._model import ToolNames
from tests.support.servers import McpServer


class Endpoint(ThreadingHTTPServer):
    """Answers every request with the same bytes."""

    daemon_threads = True
    block_on_close = False
    reply = b""


class _Handler(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(self.server.reply)))
        self.end_headers()
        self.wfile.write(self.server.reply)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    server = Endpoint(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    for prefix, url in (("OPENAI", f"{address}/v1"), ("ANTHROPIC", address)):
        monkeypatch.setenv(f"{prefix}_API_KEY", "key")
        monkeypatch.setenv(f"{prefix}_BASE_URL", url)
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def completion(message: Any) -> dict[str, Any]:
    choices = [{"index": 0, "finish_reason": "stop", "message": message}]
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": choices}


def message(content: Any, **fields: Any) -> dict[str, Any]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    return {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": content,
        "usage": usage,
        **fields,
    }


CUSTOM = {"id": "1", "type": "custom", "custom": {"name": "plain", "input": "x"}}


@pytest.mark.parametrize(
    ("provider", "reply"),
    [
        ("OpenAIProvider", b"<html>"),
        ("OpenAIProvider", b"{}"),
        ("OpenAIProvider", {**completion(None), "choices": []}),
        ("OpenAIProvider", completion({"role": "assistant", "content": None, "tool_calls": [CUSTOM]})),
        ("AnthropicProvider", b"<html>"),
        ("AnthropicProvider", b"{}"),
        ("AnthropicProvider", message(None)),
        ("AnthropicProvider", message([], usage=None)),
        ("AnthropicProvider", message([{"type": "tool_use", "id": "1", "name": "plain", "input": [1]}])),
    ],
)
def test_answer_that_no_model_gives(server: McpServer, endpoint: Endpoint, provider: str, reply: Any) -> None:
    endpoint.reply = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
    with GopherAgent.create_with_url(provider, "m", server.url, {"engine": "embedded"}) as agent:
        with pytest.raises(AgentError, match=r"not what a model answers .*_BASE_URL"):
            agent.run("use plain")
    assert server.tools_run() == []


def test_names_are_made_to_fit_and_lead_back() -> None:
    own = ["plain", "admin.users/list", "admin_users_list", "admin users list", "x" * 70, "x" * 64, "é"]
    names = ToolNames([ToolSpec(name, "", {}) for name in own])
    given = [names.vendor(name) for name in own]
    assert given[:4] == ["plain", "admin_users_list_2", "admin_users_list", "admin_users_list_3"]
    assert len(set(given)) == len(own) and all(len(name) <= 64 for name in given)
    assert [names.own(name) for name in given] == own
    assert names.own("made up") == "made up"


def test_servers_that_are_called_the_same_keep_their_tools_apart() -> None:
    tool = SimpleNamespace(description="", input_schema={})
    same: list[Any] = [
        SimpleNamespace(tools={"echo": tool}, connection=SimpleNamespace(label="127.0.0.1")) for _ in range(4)
    ]
    tools = Tools(same)
    assert [spec.name for spec in tools.specs] == ["echo", "127.0.0.1__echo", "127.0.0.1_2__echo", "127.0.0.1_3__echo"]
    assert [owner for owner, _ in tools._owners.values()] == same
