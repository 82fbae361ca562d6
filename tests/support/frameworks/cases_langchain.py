"""McpToolset as tools of LangChain."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

from gopher_mcp_python import McpToolset
from gopher_mcp_python.integrations.langchain import McpToolException, langchain_tools
from gopher_mcp_python.toolset import CallTimeoutError, ElicitationHandlerError, ElicitationRequiredError
from tests.support.frameworks.asking import (
    ARGUMENTS,
    HALF,
    PLANTED,
    UNSATISFIED,
    URL,
    Person,
    clear,
    echo_server,
    example,
    fails,
    run,
)


async def message_of(
    tool: str, arguments: dict[str, Any] | None = None, handler: Any = None, **options: Any
) -> ToolMessage:
    """The message that a tool call of a model becomes."""
    clear()
    async with McpToolset(URL, elicitation_handler=handler) as toolset:
        tools = {tool.name: tool for tool in await langchain_tools(toolset, **options)}
        call = {"type": "tool_call", "name": tool, "args": arguments or {}, "id": "1"}
        message = await tools[tool].ainvoke(call)
        assert isinstance(message, ToolMessage)
        return message


def test_text_and_meta() -> None:
    message = run(message_of("with_meta"))
    assert message.content == "meta" and message.status == "success"
    assert message.artifact == {"_meta": {"example.com/trace": {"id": 7, "tags": ["a", None]}}}


def test_structured_content() -> None:
    message = run(message_of("structured"))
    assert message.artifact == {"structured_content": {"emailAddress": "ada@example.com", "messagesTotal": 42}}
    assert json.loads(str(message.content)) == message.artifact["structured_content"]


def test_images_and_links_are_blocks() -> None:
    message = run(message_of("images"))
    kinds = [(block["type"], block.get("mime_type")) for block in message.content if isinstance(block, dict)]
    assert kinds == [("text", None), ("image", "image/png"), ("file", None)]
    assert message.content[1]["base64"].startswith("iVBOR") and message.content[2]["url"] == "file:///report.txt"
    assert message.artifact is None


def test_arguments_and_questions() -> None:
    person = Person({"reason": "tax"})
    assert run(message_of("plain", {"text": "x"})).content == "plain: x"
    assert run(message_of("form_tool", handler=person)).content == 'form: accept {"reason": "tax"}'
    assert person.requests[0].tool == "form_tool"


@pytest.mark.parametrize(("tool", "text"), [("tool_error", "no such label"), ("protocol_error", "the server broke")])
def test_what_fails_is_a_message_for_the_model(tool: str, text: str) -> None:
    message = run(message_of(tool))
    assert message.status == "error" and text in str(message.content)


@pytest.mark.parametrize(("tool", "text"), [("tool_error", "no such label"), ("protocol_error", "the server broke")])
def test_or_is_raised(tool: str, text: str) -> None:
    with pytest.raises(McpToolException, match=text):
        run(message_of(tool, handle_tool_error=False))


@pytest.mark.parametrize(("tool", "arguments", "action", "told"), UNSATISFIED)
def test_a_refusal_that_could_not_be_satisfied_is_a_message_for_the_model(
    tool: str, arguments: dict[str, Any], action: str | None, told: str
) -> None:
    person = None if action is None else Person(action=action)
    message = run(message_of(tool, arguments, person))
    assert message.status == "error" and re.search(told, str(message.content)) and "http" not in str(message.content)
    with pytest.raises(McpToolException, match=told) as raised:
        run(message_of(tool, arguments, person, handle_tool_error=False))
    assert isinstance(raised.value.__cause__, ElicitationRequiredError)


def test_arguments_that_cannot_be_sent_are_a_message_for_the_model() -> None:
    message = run(message_of("plain", {"text": HALF}))
    assert message.status == "error" and "surrogate" in str(message.content)


def test_a_time_limit_is_no_answer_for_the_model() -> None:
    async def body() -> None:
        async with McpToolset(URL, timeout=0.2) as toolset:
            tools = {tool.name: tool for tool in await langchain_tools(toolset)}
            await tools["slow"].ainvoke({"seconds": 30})

    with pytest.raises(CallTimeoutError):
        run(body())


def test_a_handler_that_fails_is_no_answer_for_the_model() -> None:
    with pytest.raises(ElicitationHandlerError) as told:
        run(message_of("decline_aware", handler=fails))
    assert isinstance(told.value.__cause__, RuntimeError) and PLANTED not in str(told.value)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_an_argument_of_any_name(name: str) -> None:
    async def body() -> None:
        async with McpToolset(echo_server(name)) as toolset:
            (tool,) = await langchain_tools(toolset)
            call = {"type": "tool_call", "id": "1", "name": tool.name, "args": {name: "v"}}
            assert json.loads((await tool.ainvoke(call)).content) == {name: "v"}
            assert json.loads(await tool.ainvoke({name: "v"}, {"tags": ["a"]})) == {name: "v"}
            assert convert_to_openai_tool(tool)["function"]["parameters"]["required"] == [name]

    run(body())


def test_models_get_the_schema() -> None:
    async def body() -> None:
        async with McpToolset(URL) as toolset:
            tools = {tool.name: convert_to_openai_tool(tool)["function"] for tool in await langchain_tools(toolset)}
        assert tools["plain"]["parameters"]["properties"] == {"text": {"type": "string"}}
        assert tools["plain"]["description"] == "Answers at once."
        assert tools["decline_aware"]["parameters"]["properties"] == {}

    run(body())


def test_the_example() -> None:
    assert "Authorization was not given: cancel" in "".join(example("langchain").stdout.splitlines()[-1:])
