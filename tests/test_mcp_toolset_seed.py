"""What a toolset must do above all: it keeps `_meta`, it lets a person answer, and it refuses settings that can't work.

Real protocol traffic, in memory, to a real server of the SDK.
"""

from __future__ import annotations

import asyncio
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.server.mcpserver import Context, MCPServer

from gopher_mcp_python import GopherAgentElicitationRequest, McpToolset
from tests.support.toolset_servers import using

META = {"example.com/auth": {"url": "https://login.example/x", "scopes": ["a", None], "deep": {"": [[]]}}}
server = MCPServer("seed")


@server.tool()
def text_with_meta() -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text="hello")], _meta=META)


@server.tool()
def structured_with_meta() -> types.CallToolResult:
    return types.CallToolResult(content=[], structured_content={"city": "Paris"}, _meta=META)


@server.tool()
def plain() -> str:
    return "hello"


@server.tool()
async def sign_in(context: Context) -> str:
    answer = await context.elicit_url("Sign in to go on", "https://login.example/start", "el-1")
    return f"sign-in: {answer.action}"


def call(name: str, **options: Any) -> dict[str, Any]:
    async def body(toolset: McpToolset) -> dict[str, Any]:
        return await toolset.call_tool(name)

    return using(server, body, **options)


def test_call_tool_meta_passthrough() -> None:
    assert call("text_with_meta") == {"output": "hello", "_meta": META}
    assert call("structured_with_meta") == {"output": {"city": "Paris"}, "_meta": META}
    assert "_meta" not in call("plain")


def test_elicitation_handler() -> None:
    asked: list[GopherAgentElicitationRequest] = []

    def accept(request: GopherAgentElicitationRequest) -> str:
        asked.append(request)
        return "accept"

    assert "sign-in: accept" in str(call("sign_in", elicitation_handler=accept)["output"])
    (request,) = asked
    assert (request.mode, request.url, request.message) == ("url", "https://login.example/start", "Sign in to go on")
    assert (request.elicitation_id, request.server, request.tool) == ("el-1", "seed", "sign_in")


def test_new_rejects_elicitation_handler_with_custom_client() -> None:
    async def with_a_session() -> None:
        async with Client(server) as client:
            for mine in (client, client.session):
                with pytest.raises(ValueError, match="elicitation_handler"):
                    McpToolset(mine, elicitation_handler="cancel")

    asyncio.run(with_a_session())
    for handlers in ({"elicitation_handler": "cancel"}, {"elicitation_handler": lambda request: "accept"},
                     {"elicitation_handler": {}, "elicitation_complete_handler": print}):  # fmt: skip
        with pytest.raises(ValueError, match="client"):
            McpToolset(Client(server), **handlers)


@pytest.mark.parametrize("where", ["https://mcp.example/mcp", server, {"command": "true"}])
def test_new_rejects_elicitation_complete_handler_without_elicitation_handler(where: Any) -> None:
    with pytest.raises(ValueError, match="elicitation_complete_handler"):
        McpToolset(where, elicitation_complete_handler=print)
