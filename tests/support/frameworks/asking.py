"""What the cases of all frameworks share: the scenario server's address, handlers that keep what they were asked.

The cases run with pytest in an environment of their framework (see __init__.py), the server in that of the tests
(tests/support/mcp_server.py).
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from gopher_mcp_python import GopherAgentElicitationRequest, GopherAgentElicitationResponse

T = TypeVar("T")
URL = os.environ.get("SCENARIO_URL", "")
HALF = "\ud83d"  # of an emoji: has no UTF-8 form, so it can't be sent
# Names of arguments that frameworks have uses of their own for.
ARGUMENTS = ("config", "run_manager", "self", "callbacks", "args", "kwargs", "runtime", "state", "tool", "tool_context")
# Refusals with -32042 that asking did not satisfy: tool, arguments, what the person answers, what the model is told.
UNSATISFIED = [
    ("error_32042", {}, "decline", r"not accepted \(decline\)"),
    ("error_32042", {}, "cancel", r"not accepted \(cancel\)"),
    ("error_32042_forever", {}, "accept", "same URL"),
    ("error_32042_endless", {}, "accept", "5 times"),
    ("error_32042_malformed", {"kind": "snake"}, "accept", r"error -32042"),
    ("error_32042", {}, None, "in URL mode"),
]
PLANTED = "canary-planted-in-a-handlers-error"


def run(body: Coroutine[Any, Any, T], seconds: float = 60) -> T:
    """Runs a case on an event loop of its own."""
    return asyncio.run(asyncio.wait_for(body, seconds))


class Person:
    """A sync handler: accepts pages, fills forms with `content`, and keeps what was asked and on which thread."""

    def __init__(self, content: dict[str, Any] | None = None, action: str = "accept") -> None:
        self.requests: list[GopherAgentElicitationRequest] = []
        self.threads: list[str] = []
        self._content, self._action = content, action

    def __call__(self, request: GopherAgentElicitationRequest) -> GopherAgentElicitationResponse:
        self.requests.append(request)
        self.threads.append(threading.current_thread().name)
        return GopherAgentElicitationResponse(self._action, self._content if request.mode == "form" else None)

    @property
    def modes(self) -> list[str]:
        return [request.mode for request in self.requests]


def fails(request: GopherAgentElicitationRequest) -> str:
    raise RuntimeError(f"https://user:{PLANTED}@example.com/?token={PLANTED}")


async def later(request: GopherAgentElicitationRequest) -> str:
    """An async handler."""
    await asyncio.sleep(0.01)
    return "accept"


async def never(request: GopherAgentElicitationRequest) -> str:
    await asyncio.sleep(3600)
    return "accept"


def example(name: str) -> subprocess.CompletedProcess[str]:
    """Runs an example in this environment, without a terminal: its person is shown the page and can't answer."""
    script = Path(__file__).parents[3] / "examples" / f"frameworks_{name}.py"
    done = subprocess.run(
        [sys.executable, str(script), URL], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
        check=False, start_new_session=True,
    )  # fmt: skip
    shown = "asks you to open a page" in done.stderr and "/authorize?" in done.stderr
    assert shown, f"nobody was asked: {done.stderr[-3000:]}"
    return done


def echo_server(*arguments: str) -> Any:
    """A server in memory, with a tool for each of these names that takes an argument of that name; the tool's name is
    "use_" and the argument's, and it answers with its arguments as JSON. Needs mcp 2.x."""
    import mcp_types as types
    from mcp.server.lowlevel import Server

    def tool(name: str) -> types.Tool:
        schema = {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}
        return types.Tool(name=f"use_{name}", input_schema=schema)

    async def listed(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[tool(name) for name in arguments])

    async def called(context: Any, params: Any) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(type="text", text=json.dumps(params.arguments))])

    return Server("echo", on_list_tools=listed, on_call_tool=called)


def log(event: str) -> list[dict[str, Any]]:
    """What the server has seen, of one kind."""
    with urllib.request.urlopen(URL.rsplit("/", 1)[0] + "/_log", timeout=10) as reply:
        return [entry for entry in json.loads(reply.read()) if entry["event"] == event]


def clear() -> None:
    urllib.request.urlopen(URL.rsplit("/", 1)[0] + "/_clear", b"", timeout=10).close()
