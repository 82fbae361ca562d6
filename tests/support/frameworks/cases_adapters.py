"""langchain-mcp-adapters, which needs mcp 1.x: its client with our callback, and what of this package needs more."""

from __future__ import annotations

import logging
import subprocess
import sys
from importlib import metadata
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_mcp_adapters.callbacks import Callbacks
from langchain_mcp_adapters.client import MultiServerMCPClient
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

import gopher_mcp_python
from gopher_mcp_python import AgentError, GopherAgent, elicitation_callback
from tests.support.frameworks.asking import PLANTED, URL, Person, clear, example, fails, log, never, run

VERSION = metadata.version("mcp")
NEEDS = f"needs mcp 2.3 or newer; {VERSION} is installed: pip install -U 'mcp>=2.3'"


async def message_of(callback: Any, tool: str, arguments: dict[str, Any] | None = None) -> ToolMessage:
    """The message that a tool call of a model becomes."""
    clear()
    callbacks = Callbacks(on_elicitation=callback)
    client = MultiServerMCPClient({"mail": {"transport": "streamable_http", "url": URL}}, callbacks=callbacks)
    tools = {tool.name: tool for tool in await client.get_tools()}
    message = await tools[tool].ainvoke({"type": "tool_call", "name": tool, "args": arguments or {}, "id": "1"})
    assert isinstance(message, ToolMessage)
    return message


def text_of(message: ToolMessage) -> str:
    return str(message.content[0]["text"])  # type: ignore[index]


def test_it_is_the_first_generation() -> None:
    assert VERSION.startswith("1.")


# ---- langchain-mcp-adapters ------------------------------------------------------------------------------------------


def test_a_page_is_asked_for_by_server_and_tool() -> None:
    person = Person()
    assert text_of(run(message_of(elicitation_callback(person), "decline_aware"))) == "action: accept"
    (request,) = person.requests
    assert (request.mode, request.server, request.tool) == ("url", "mail", "decline_aware")
    assert request.url and request.elicitation_id
    assert person.threads == ["gopher-mcp-elicitation"]


def test_a_form_goes_out_checked_and_without_nulls() -> None:
    person = Person({"reason": "tax", "urgent": None})
    assert text_of(run(message_of(elicitation_callback(person), "form_tool"))) == 'form: accept {"reason": "tax"}'
    assert person.requests[0].requested_schema["properties"]["urgent"] == {"type": "boolean", "default": False}


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_fixed_answer(action: str) -> None:
    assert text_of(run(message_of(elicitation_callback(action), "decline_aware"))) == f"action: {action}"


def test_an_undeclared_mode_is_refused() -> None:
    person = Person()
    assert text_of(run(message_of(elicitation_callback(person, modes="url"), "form_tool"))) == "form refused: -32602"
    assert person.requests == []


def test_what_the_handler_raises_stays_here(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "gopher_mcp_python"):
        assert text_of(run(message_of(elicitation_callback(fails), "form_tool"))) == "form refused: -32603"
    assert log("elicit_error")[0]["message"] == "the client's elicitation handler failed"
    assert "RuntimeError" in caplog.text and PLANTED not in caplog.text


def test_time_is_up() -> None:
    assert text_of(run(message_of(elicitation_callback(never, timeout_ms=50), "decline_aware"))) == "action: cancel"


def test_it_drops_the_meta_of_results() -> None:
    """The same call gives `_meta` in the artifact of `langchain_tools` (cases_langchain.py). If this fails,
    docs/frameworks.md is to be changed."""
    message = run(message_of(None, "with_meta"))
    assert text_of(message) == "meta" and message.artifact is None


# ---- the SDK's own client --------------------------------------------------------------------------------------------


def test_the_sdk_takes_the_callback_alone() -> None:
    person = Person({"reason": "tax"})

    async def body() -> str:
        callback = elicitation_callback(person, server="mail")
        async with (
            streamable_http_client(URL) as (read, write, _),
            ClientSession(read, write, elicitation_callback=callback, message_handler=callback.on_message) as session,
        ):
            await session.initialize()
            result = await session.call_tool("form_tool", {})
            return str(result.content[0].text)  # type: ignore[union-attr]

    assert run(body()) == 'form: accept {"reason": "tax"}'
    assert [(request.server, request.tool) for request in person.requests] == [("mail", None)]


# ---- what needs the second generation --------------------------------------------------------------------------------


def test_a_toolset_says_what_it_needs() -> None:
    with pytest.raises(AgentError) as told:
        _ = gopher_mcp_python.McpToolset
    assert str(told.value) == f"McpToolset {NEEDS}"


def test_an_agent_says_what_it_needs() -> None:
    with pytest.raises(AgentError) as told:
        GopherAgent.create_with_url("DirectProvider", "none", URL)
    assert str(told.value) == f"the embedded engine {NEEDS}"


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [("doctor", 1, "next: pip install -U 'mcp>=2.3'"), ("demo", 1, f"the demo {NEEDS}")],
)
def test_the_command_line_says_what_it_needs(command: str, code: int, text: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gopher_mcp_python", command], capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL, timeout=60,
    )  # fmt: skip
    assert done.returncode == code
    assert text in " ".join((done.stdout + done.stderr).split()) and "Traceback" not in done.stderr


def test_the_example() -> None:
    assert "Authorization was not given: cancel" in "".join(example("langchain_mcp_adapters").stdout.splitlines()[-1:])
