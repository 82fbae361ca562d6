"""pydantic-ai: a real agent with a scripted model, its MCPToolset with our handler."""

from __future__ import annotations

import os
from typing import Any

import pytest
from fastmcp import Client
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from gopher_mcp_python.integrations.fastmcp import fastmcp_elicitation_handler
from tests.support.frameworks.asking import URL, Person, clear, example, log, run

# A server that speaks the handshake protocols only: pydantic-ai's own client takes the newest that a server has, and at
# 2026-07-28 a server can't ask during a call.
LEGACY = os.environ.get("SCENARIO_LEGACY_URL", "")


async def returned(toolset: MCPToolset[Any], tool: str, arguments: dict[str, Any] | None = None) -> ToolReturnPart:
    """What comes back to the agent whose model calls one tool."""
    clear()

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) > 1:
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart(tool, arguments or {})])

    agent = Agent(FunctionModel(model), toolsets=[toolset])
    async with agent:
        result = await agent.run("go")
    (found,) = [part for message in result.all_messages() for part in message.parts if isinstance(part, ToolReturnPart)]
    return found


def with_client(handler: Any) -> MCPToolset[Any]:
    return MCPToolset(Client(URL, elicitation_handler=handler, mode="legacy"))


def test_a_page_is_asked_for() -> None:
    person = Person()
    toolset = MCPToolset(LEGACY, elicitation_handler=fastmcp_elicitation_handler(person, server="mail"))
    assert run(returned(toolset, "decline_aware")).content == "action: accept"
    assert [(request.mode, request.server) for request in person.requests] == [("url", "mail")]


def test_a_form_goes_out_checked_and_without_nulls() -> None:
    handler = fastmcp_elicitation_handler(Person({"reason": "tax", "urgent": None}))
    assert run(returned(with_client(handler), "form_tool")).content == 'form: accept {"reason": "tax"}'


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_fixed_answer(action: str) -> None:
    handler = fastmcp_elicitation_handler(action)
    assert run(returned(with_client(handler), "decline_aware")).content == f"action: {action}"


def test_an_undeclared_mode_is_refused() -> None:
    person = Person()
    handler = fastmcp_elicitation_handler(person, modes="url")
    assert run(returned(with_client(handler), "form_tool")).content == "form refused: -32603"
    assert person.requests == [] and "not declared" in log("elicit_error")[0]["message"]


def test_it_drops_the_meta_of_results() -> None:
    """If this fails, docs/frameworks.md is to be changed."""
    part = run(returned(with_client(None), "with_meta"))
    assert part.content == "meta" and part.metadata is None


def test_the_example() -> None:
    assert "Authorization was not given: cancel" in "".join(example("pydantic_ai").stdout.splitlines()[-1:])
