"""Google ADK: a real agent with a scripted model, its McpToolset with our callback, and our toolset as one of ADK's."""

from __future__ import annotations

import json
import logging
import re
import runpy
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.mcp_tool import McpToolset as AdkMcpToolset
from google.adk.tools.mcp_tool.mcp_session_manager import StreamableHTTPConnectionParams
from google.genai import types

from gopher_mcp_python import AgentError, McpToolset, elicitation_callback
from gopher_mcp_python.integrations.adk import AdkToolset
from gopher_mcp_python.toolset import CallTimeoutError, ElicitationHandlerError
from tests.support.frameworks.asking import (
    ARGUMENTS,
    HALF,
    PLANTED,
    UNSATISFIED,
    URL,
    Person,
    clear,
    echo_server,
    fails,
    log,
    never,
    run,
)


class Scripted(BaseLlm):
    """A model that calls one tool and then says that it is done."""

    tool: str = ""
    arguments: dict[str, Any] = {}
    offered: list[Any] = []

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        last = llm_request.contents[-1].parts[0]
        if last.function_response is None:
            for tool in llm_request.config.tools:
                self.offered.extend(tool.function_declarations)
            part = types.Part(function_call=types.FunctionCall(name=self.tool, args=self.arguments, id="1"))
        else:
            part = types.Part(text="done")
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


async def response_of(toolset: BaseToolset, tool: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
    """The function response that the model sees when its agent has called a tool."""
    clear()
    model = Scripted(model="scripted", tool=tool, arguments=arguments or {})
    runner = InMemoryRunner(LlmAgent(name="agent", model=model, tools=[toolset]), app_name="cases")
    try:
        session = await runner.session_service.create_session(app_name="cases", user_id="ada")
        message = types.Content(role="user", parts=[types.Part(text="go")])
        found: list[dict[str, Any]] = []
        async for event in runner.run_async(user_id="ada", session_id=session.id, new_message=message):
            found += [answer.response for answer in event.get_function_responses()]
        assert len(found) == 1, found
        return found[0]
    finally:
        await runner.close()


def theirs(*given: Any, **options: Any) -> AdkMcpToolset:
    callback = elicitation_callback(*given, **options)
    return AdkMcpToolset(connection_params=StreamableHTTPConnectionParams(url=URL), elicitation_callback=callback)


def text_of(response: dict[str, Any]) -> str:
    return str(response["content"][0]["text"])


# ---- McpToolset of ADK, our callback ---------------------------------------------------------------------------------


def test_a_page_is_asked_for() -> None:
    person = Person()
    assert text_of(run(response_of(theirs(person, server="mail"), "decline_aware"))) == "action: accept"
    (request,) = person.requests
    assert (request.mode, request.server, request.tool) == ("url", "mail", None)
    assert request.url and request.elicitation_id and request.message == "Sign in to Gmail to continue."
    assert person.threads == ["gopher-mcp-elicitation"]


def test_a_form_goes_out_checked_and_without_nulls() -> None:
    person = Person({"reason": "tax", "urgent": None})
    assert text_of(run(response_of(theirs(person), "form_tool"))) == 'form: accept {"reason": "tax"}'
    assert person.requests[0].requested_schema["required"] == ["reason"]


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_fixed_answer(action: str) -> None:
    assert text_of(run(response_of(theirs(action), "decline_aware"))) == f"action: {action}"


def test_an_undeclared_mode_is_refused() -> None:
    person = Person()
    assert text_of(run(response_of(theirs(person, modes="url"), "form_tool"))) == "form refused: -32602"
    assert person.requests == []


def test_what_the_handler_raises_stays_here(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "gopher_mcp_python"):
        assert text_of(run(response_of(theirs(fails), "form_tool"))) == "form refused: -32603"
    (error,) = log("elicit_error")
    assert error["message"] == "the client's elicitation handler failed"
    assert "RuntimeError" in caplog.text and PLANTED not in caplog.text


def test_time_is_up() -> None:
    assert text_of(run(response_of(theirs(never, timeout_ms=50), "decline_aware"))) == "action: cancel"


def test_its_results_have_meta_under_another_key_and_its_calls_are_not_made_again() -> None:
    """What docs/frameworks.md says of ADK's own toolset; if this fails, it is to be changed."""
    response = run(response_of(theirs("cancel"), "with_meta"))
    assert response["meta"] == {"example.com/trace": {"id": 7, "tags": ["a", None]}}
    person = Person()
    assert "URL elicitation required" in run(response_of(theirs(person), "error_32042"))["error"]
    assert "invalid result" in run(response_of(theirs(person), "input_required"))["error"]
    assert person.requests == []


# ---- McpToolset of this package as a toolset of ADK ------------------------------------------------------------------


def ours(*given: Any, **options: Any) -> AdkToolset:
    return AdkToolset(McpToolset(URL, elicitation_handler=given[0] if given else None), **options)


def test_meta_reaches_the_model() -> None:
    assert run(response_of(ours(), "with_meta")) == {
        "output": "meta",
        "_meta": {"example.com/trace": {"id": 7, "tags": ["a", None]}},
    }


def test_our_toolset_asks() -> None:
    person = Person()
    assert run(response_of(ours(person), "decline_aware")) == {"output": "action: accept"}
    assert person.requests[0].tool == "decline_aware"


@pytest.mark.parametrize("tool", ["error_32042", "input_required"])
def test_our_toolset_makes_the_call_again_after_the_answer(tool: str) -> None:
    person = Person()
    response = run(response_of(ours(person), tool))
    assert "output" in response and [request.tool for request in person.requests] == [tool]


def test_a_tool_that_fails_is_an_answer_for_the_model() -> None:
    assert run(response_of(ours(), "tool_error")) == {"error": "the tool failed: no such label", "isError": True}


def test_an_error_of_the_server_is_an_answer_for_the_model() -> None:
    response = run(response_of(ours(), "protocol_error"))
    assert list(response) == ["error"] and "the server broke" in response["error"]


@pytest.mark.parametrize(("tool", "arguments", "action", "told"), UNSATISFIED)
def test_a_refusal_that_could_not_be_satisfied_is_an_answer_for_the_model(
    tool: str, arguments: dict[str, Any], action: str | None, told: str
) -> None:
    response = run(response_of(ours(*([] if action is None else [Person(action=action)])), tool, arguments))
    assert list(response) == ["error"]
    assert re.search(told, response["error"]) and "http" not in response["error"]


def test_arguments_that_cannot_be_sent_are_an_answer_for_the_model() -> None:
    async def body() -> Any:
        async with McpToolset(echo_server("text")) as toolset:
            (tool,) = await AdkToolset(toolset).get_tools()
            return await tool.run_async(args={"text": HALF}, tool_context=None)

    response = run(body())
    assert list(response) == ["error"] and "surrogate" in response["error"]


def test_what_is_no_answer_for_the_model_is_raised() -> None:
    with pytest.raises(ElicitationHandlerError) as told:
        run(response_of(ours(fails), "decline_aware"))
    assert isinstance(told.value.__cause__, RuntimeError) and PLANTED not in str(told.value)
    with pytest.raises(CallTimeoutError):
        run(response_of(AdkToolset(McpToolset(URL, timeout=0.2)), "slow", {"seconds": 30}))


@pytest.mark.parametrize("name", ARGUMENTS)
def test_an_argument_of_any_name(name: str) -> None:
    toolset = AdkToolset(McpToolset(echo_server(name)))
    assert json.loads(run(response_of(toolset, f"use_{name}", {name: "v"}))["output"]) == {name: "v"}


@pytest.mark.parametrize(
    ("chosen", "offered"),
    [
        (None, ["use_a", "use_b"]),
        (["use_a", "gone"], ["use_a"]),
        (("use_a", "use_b"), ["use_a", "use_b"]),
        ({"use_b"}, ["use_b"]),
        (frozenset({"use_a"}), ["use_a"]),
        ({"use_a": 1}.keys(), ["use_a"]),
        ((name for name in ["use_b"]), ["use_b"]),
        ([], []),
        (lambda tool, readonly_context=None: tool.name == "use_b", ["use_b"]),
    ],
)
def test_which_tools_are_offered(chosen: Any, offered: list[str]) -> None:
    async def body() -> None:
        async with McpToolset(echo_server("a", "b")) as toolset:
            adk = AdkToolset(toolset, tool_filter=chosen)
            for _ in range(2):
                assert [tool.name for tool in await adk.get_tools()] == offered

    run(body())


@pytest.mark.parametrize("chosen", ["use_a", 3, [3], True])
def test_a_filter_of_another_kind(chosen: Any) -> None:
    with pytest.raises(ValueError, match="tool_filter"):
        AdkToolset(McpToolset(URL), tool_filter=chosen)


def test_the_runner_closes_it() -> None:
    async def body() -> None:
        toolset = McpToolset(URL)
        await response_of(AdkToolset(toolset), "plain")
        await toolset.call_tool("plain")

    with pytest.raises(AgentError, match="was closed"):
        run(body())


def test_declarations_names_and_filter() -> None:
    async def body() -> None:
        toolset = ours(tool_filter=["plain"], tool_name_prefix="mail")
        model = Scripted(model="scripted", tool="mail_plain", arguments={"text": "x"})
        model.offered = []
        runner = InMemoryRunner(LlmAgent(name="agent", model=model, tools=[toolset]), app_name="cases")
        session = await runner.session_service.create_session(app_name="cases", user_id="ada")
        message = types.Content(role="user", parts=[types.Part(text="go")])
        found: list[Any] = []
        async for event in runner.run_async(user_id="ada", session_id=session.id, new_message=message):
            found += event.get_function_responses()
        await runner.close()
        assert [answer.response for answer in found] == [{"output": "plain: x"}]
        (declared,) = model.offered
        assert declared.name == "mail_plain" and declared.description == "Answers at once."
        assert declared.parameters_json_schema["properties"] == {"text": {"type": "string"}}

    run(body())


def test_the_example(capsys: pytest.CaptureFixture[str]) -> None:
    main = runpy.run_path(str(Path(__file__).parents[3] / "examples" / "frameworks_adk.py"))["main"]
    run(main(URL, "go", Scripted(model="scripted", tool="structured")))
    assert capsys.readouterr().out == (
        "structured {'output': {'emailAddress': 'ada@example.com', 'messagesTotal': 42}}\n"
    )
