"""The public toolset: what it is made from, what it refuses, what it gives back, how it ends."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer

from gopher_mcp_python import AgentError, GopherAgentElicitationOptions, McpTool, McpToolset
from gopher_mcp_python.toolset import CallTimeoutError, HttpConnection, ServerError, StdioConnection, ToolsetError
from gopher_mcp_python.toolset.connection import ClientConnection, MemoryConnection
from gopher_mcp_python.toolset.inputs import as_connection
from gopher_mcp_python.toolset.results import function_response
from tests.support import hosting
from tests.support.servers import McpServer


def a_server() -> MCPServer:
    server = MCPServer("small")

    @server.tool(title="Add", description="adds")
    async def add(a: int, b: int) -> int:
        return a + b

    @server.prompt()
    async def greet(name: str) -> str:
        return f"Hello, {name}"

    @server.resource("note://one")
    async def one() -> str:
        return "the note"

    return server


def run(body: Callable[[], Any]) -> Any:
    async def bounded() -> Any:
        return await asyncio.wait_for(body(), 20)

    return asyncio.run(bounded())


# ---- what it is made from --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "kind", "label"),
    [
        ("http://mcp.example/mcp", HttpConnection, "mcp.example"),
        ({"url": "https://mcp.example/sse", "type": "sse", "name": "mail"}, HttpConnection, "mail"),
        ({"command": "node", "args": ["server.js"]}, StdioConnection, "node"),
        ({"mcpServers": {"files": {"command": "node"}}}, StdioConnection, "files"),
        ({"servers": [{"name": "x", "url": "http://x.example/mcp"}]}, HttpConnection, "x"),
        (HttpConnection("http://mcp.example/mcp"), HttpConnection, "mcp.example"),
        (StdioConnection("node"), StdioConnection, "node"),
        (a_server(), MemoryConnection, "small"),
        (Server("low"), MemoryConnection, "low"),
        (Client(a_server()), ClientConnection, "MCP server"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_what_a_server_may_be_given_as(given: Any, kind: type, label: str) -> None:
    made = as_connection(given, {}, "")
    assert isinstance(made, kind)
    assert made.label == label
    assert as_connection(given, {}, "mine").label == "mine"
    assert McpToolset(given).name == label


@pytest.mark.parametrize("given", [None, 7, b"http://x.example", StdioServerParameters(command="node"), object()])
def test_what_is_no_server_is_refused(given: Any) -> None:
    with pytest.raises(ValueError, match=f"not as {type(given).__name__}"):
        McpToolset(given)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("ftp://mcp.example/", "not an http or https address"),
        ("", "not an http or https address"),
        ({}, "names 0"),
        ({"mcpServers": {"a": {"url": "http://a.example"}, "b": {"url": "http://b.example"}}}, "names 2"),
        ({"mcpServers": {"a": {"title": "x"}}}, "neither a url nor a command"),
    ],
)
def test_an_entry_that_cannot_be_read_says_so(given: Any, told: str) -> None:
    with pytest.raises(AgentError, match=told):
        McpToolset(given)


def test_headers_go_to_a_url_only() -> None:
    made = as_connection("http://x.example/mcp", {"X-Key": "k"}, "")
    assert isinstance(made, HttpConnection) and made.headers == {"X-Key": "k"}
    with pytest.raises(ValueError, match="headers are for a URL"):
        McpToolset(StdioConnection("node"), headers={"X-Key": "k"})
    with pytest.raises(ValueError, match="'X Key'"):
        McpToolset("http://x.example/mcp", headers={"X Key": "k"})


# ---- what it refuses -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"elicitation_handler": "accept"}, "must be callable"),
        ({"elicitation_handler": 7}, "must be callable"),
        ({"elicitation_complete_handler": print}, "needs an elicitation_handler"),
        ({"elicitation_complete_handler": 7, "elicitation_handler": "cancel"}, "must be a function"),
        ({"elicitation_handler": {"enabled": False}, "elicitation_complete_handler": print}, "needs an"),
        ({"elicitation_handler": "cancel", "modes": "zebra"}, "modes"),
        ({"elicitation_handler": "cancel", "modes": ()}, "modes"),
        ({"timeout": 0}, "timeout must be a number of seconds"),
        ({"timeout": float("nan")}, "timeout must be"),
        ({"timeout": True}, "timeout must be"),
        ({"elicitation_timeout": -1}, "elicitation_timeout must be"),
        ({"protocol": "2025-11-25"}, "use auto, handshake or 2026-07-28"),
        ({"oauth": 7}, "oauth options"),
    ],
)
def test_options_of_the_wrong_kind_are_refused_when_it_is_made(more: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        McpToolset("http://x.example/mcp", **more)


def test_oauth_options_need_a_url() -> None:
    with pytest.raises(ValueError, match="behind a URL"):
        McpToolset(StdioConnection("node"), oauth={"scopes": ["a"]})
    assert McpToolset(StdioConnection("node"), oauth=False).name == "node"


@pytest.mark.parametrize(
    "more",
    [
        {"elicitation_handler": "cancel"},
        {"elicitation_handler": GopherAgentElicitationOptions()},
        {"elicitation_handler": "cancel", "elicitation_complete_handler": print},
        {"elicitation_complete_handler": print},
        {"modes": "url"},
        {"roots": ["/"]},
    ],
)
def test_a_client_of_the_callers_own_has_its_callbacks_already(more: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="can't be combined with a client of your own"):
        McpToolset(Client(a_server()), **more)


# ---- what it gives back ----------------------------------------------------------------------------------------------


def test_tools_prompts_and_resources_of_a_server_in_memory() -> None:
    async def body() -> None:
        async with McpToolset(a_server()) as toolset:
            (tool,) = await toolset.list_tools()
            assert isinstance(tool, McpTool)
            assert (tool.name, tool.title, tool.description) == ("add", "Add", "adds")
            assert set(tool.input_schema["properties"]) == {"a", "b"} and tool.output_schema
            assert await tool(a=1, b=2) == await tool.call({"a": 1, "b": 2}) == {"output": {"result": 3}}
            assert (await toolset.call("add", {"a": 1, "b": 2})).structured_content == {"result": 3}
            assert [prompt.name for prompt in await toolset.list_prompts()] == ["greet"]
            message = (await toolset.get_prompt("greet", {"name": "Ada"})).messages[0].content
            assert message.text == "Hello, Ada"  # type: ignore[union-attr]
            assert [str(each.uri) for each in await toolset.list_resources()] == ["note://one"]
            assert await toolset.list_resource_templates() == []
            (content,) = (await toolset.read_resource("note://one")).contents
            assert content.text == "the note"  # type: ignore[union-attr]

    run(body)


@pytest.mark.parametrize("whole", [True, False], ids=["Client", "ClientSession"])
def test_a_client_of_the_callers_own_is_used_and_left_open(whole: bool) -> None:
    async def body() -> None:
        async with Client(a_server()) as client:
            async with McpToolset(client if whole else client.session) as toolset:
                assert toolset.name == "small"
                assert (await toolset.call_tool("add", {"a": 1, "b": 2}))["output"] == {"result": 3}
                assert [prompt.name for prompt in await toolset.list_prompts()] == ["greet"]
                assert (await toolset.read_resource("note://one")).contents
            assert (await client.call_tool("add", {"a": 2, "b": 2})).structured_content == {"result": 4}

    run(body)


def test_a_client_that_was_not_entered_is_an_error_that_says_so() -> None:
    async def body() -> None:
        async with McpToolset(Client(a_server())):
            pass

    with pytest.raises(ToolsetError, match="context manager"):
        run(body)


def test_a_server_without_tools_has_none_and_one_that_fails_to_list_them_is_an_error() -> None:
    async def fails(context: Any, params: Any) -> types.ListToolsResult:
        raise RuntimeError("no list today")

    async def body(server: Any) -> Any:
        async with McpToolset(server) as toolset:
            return await toolset.list_tools(), await toolset.list_prompts(), await toolset.list_resources()

    assert run(lambda: body(Server("bare"))) == ([], [], [])
    with pytest.raises(AgentError, match="connecting to broken failed"):
        run(lambda: body(Server("broken", on_list_tools=fails)))


def test_it_connects_when_it_is_first_used_and_knows_its_tools_then(server: McpServer) -> None:
    async def body() -> None:
        toolset = McpToolset(server.url)
        try:
            assert (await toolset.call_tool("with_meta"))["_meta"]
        finally:
            await toolset.aclose()
            await toolset.aclose()
        with pytest.raises(ToolsetError, match="was closed"):
            await toolset.call_tool("plain")

    run(body)


def test_it_runs_a_command(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(
        "from mcp.server.mcpserver import MCPServer\n"
        "server = MCPServer('spoken')\n"
        "@server.tool()\n"
        "async def ping() -> str:\n"
        "    return 'pong'\n"
        "server.run()\n"
    )

    async def body() -> Any:
        async with McpToolset({"command": sys.executable, "args": [str(script)]}) as toolset:
            return await toolset.call_tool("ping")

    assert run(body) == {"output": {"result": "pong"}}


def test_an_unknown_tool_is_the_servers_error() -> None:
    async def body() -> None:
        async with McpToolset(a_server()) as toolset:
            response = await toolset.call_tool("nope")
            assert response["isError"] is True and "nope" in response["error"]
            with pytest.raises(ServerError) as refused:
                await toolset.get_prompt("nope")
            assert "the prompt nope" in str(refused.value)

    run(body)


def test_meta_of_the_request_reaches_the_server() -> None:
    seen: list[Any] = []

    async def call(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        seen.append(params.meta)
        return types.CallToolResult(content=[])

    async def listed(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="t", input_schema={"type": "object"})])

    async def body() -> None:
        async with McpToolset(Server("low", on_call_tool=call, on_list_tools=listed)) as toolset:
            await toolset.call_tool("t", meta={"trace": "abc"})

    run(body)
    assert seen[0]["trace"] == "abc"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"a": "\ud83d"}, "surrogate pair"),
        ({"a\ud83d": 1}, "surrogate pair"),
        ({"a": {"b": [float("nan")]}}, "except NaN"),
        ({"a": {1: {(2, 3): 4}}}, "texts as keys"),
    ],
)
def test_what_cannot_be_sent_ends_its_own_call_only(arguments: dict[str, Any], told: str, server: McpServer) -> None:
    async def body() -> None:
        async with McpToolset(server.url) as toolset:
            slow = asyncio.ensure_future(toolset.call_tool("slow"))
            with pytest.raises(ToolsetError, match=told):
                await toolset.call_tool("plain", arguments)
            with pytest.raises(ToolsetError, match=told):
                await toolset.call_tool("plain", meta=arguments)
            assert "slow" in (await slow)["output"]

    run(body)


def test_a_server_that_never_answers_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes connections and says nothing."""
    monkeypatch.setattr("gopher_mcp_python.mcp_toolset.CONNECT_SECONDS", 0.1)
    with hosting.listener() as silent:
        url = f"http://{hosting.LOOPBACK}:{silent.getsockname()[1]}/mcp"

        async def gives_up(ask: Callable[[McpToolset], Any]) -> None:
            toolset = McpToolset(url)
            with pytest.raises(CallTimeoutError):
                await ask(toolset)
            await toolset.aclose()

        async def body() -> None:
            await gives_up(McpToolset.list_tools)
            await gives_up(McpToolset.list_prompts)
            await gives_up(McpToolset.list_resources)
            await gives_up(McpToolset.list_resource_templates)
            monkeypatch.setattr("gopher_mcp_python.mcp_toolset.CONNECT_SECONDS", 60)
            await gives_up(lambda toolset: toolset.call_tool("plain", timeout=0.1))

        run(body)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"roots": 7}, "roots must be"),
        ({"roots": ["/", 7]}, "roots must be"),
        ({"person": []}, "person must be hashable"),
        ({"modes": "url"}, "there is none"),
    ],
)
def test_more_options_of_the_wrong_kind(more: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        McpToolset("http://x.example/mcp", **more)


@pytest.mark.parametrize(
    ("name", "given", "more", "told"),
    [
        (None, {}, {}, "name of a tool must be a text"),
        ("add", [1], {}, "arguments must be a mapping"),
        ("add", {1: 2}, {}, "arguments must be a mapping"),
        ("add", {}, {"meta": [1]}, "meta must be a mapping"),
        ("add", {}, {"on_progress": 3}, "on_progress must be a function"),
        ("add", {}, {"person": []}, "person must be hashable"),
        ("add", {}, {"timeout": -1}, "timeout must be"),
    ],
)
def test_what_a_call_is_given_wrongly_is_the_callers_error(name: Any, given: Any, more: Any, told: str) -> None:
    async def body() -> None:
        async with McpToolset(a_server()) as toolset:
            with pytest.raises(ValueError, match=told):
                await toolset.call_tool(name, given, **more)
            with pytest.raises(ValueError, match="must be texts"):
                await toolset.get_prompt("greet", {"name": 3})  # type: ignore[dict-item]

    run(body)


def test_one_root_is_one_root() -> None:
    from gopher_mcp_python.toolset.inputs import as_roots

    assert [str(root.uri) for root in as_roots("/tmp/x")] == ["file:///tmp/x"]
    assert [str(root.uri) for root in as_roots(Path("/tmp/x"))] == ["file:///tmp/x"]
    assert [str(root.uri) for root in as_roots(["file:///a", Path("/b")])] == ["file:///a", "file:///b"]


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_in_a_handler_answers_cancel_and_comes_out_of_the_call(
    interrupt: type[BaseException], kind: str, server: McpServer
) -> None:
    def stops(request: Any) -> str:
        raise interrupt

    async def stops_later(request: Any) -> str:
        raise interrupt

    async def body() -> None:
        handler = stops if kind == "sync" else stops_later
        async with McpToolset(server.url, elicitation_handler=handler) as toolset:
            with pytest.raises(interrupt):
                await toolset.call_tool("decline_aware")
            assert "plain: ok" in (await toolset.call_tool("plain"))["output"]

    run(body)
    assert server.actions() == ["cancel"]


# ---- function responses ----------------------------------------------------------------------------------------------

TEXT, MORE = {"type": "text", "text": "one"}, {"type": "text", "text": "two"}
IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png", "_meta": {"k": 1}}
MARKED = {"type": "text", "text": "one", "annotations": {"audience": ["user"]}}


@pytest.mark.parametrize(
    ("raw", "response"),
    [
        ({"content": [TEXT]}, {"output": "one"}),
        ({"content": [TEXT, MORE]}, {"output": "one\ntwo"}),
        ({"content": []}, {"output": ""}),
        ({"content": [TEXT, IMAGE]}, {"output": "one", "content": [IMAGE]}),
        ({"content": [MARKED]}, {"output": "one", "content": [MARKED]}),
        ({"content": [TEXT], "isError": True}, {"error": "one", "isError": True}),
        ({"content": [TEXT], "isError": False}, {"output": "one"}),
        ({"content": [], "structuredContent": {"a": 1}}, {"output": {"a": 1}}),
        ({"content": [{"type": "text", "text": '{"a": 1}'}], "structuredContent": {"a": 1}}, {"output": {"a": 1}}),
        ({"content": [TEXT], "structuredContent": {"a": 1}}, {"output": {"a": 1}, "content": [TEXT]}),
        ({"content": [TEXT], "structuredContent": {"result": "one"}}, {"output": {"result": "one"}}),
        ({"content": [], "structuredContent": {}}, {"output": {}}),
        ({"content": [TEXT], "_meta": {"a": {"b": [None, 1]}}}, {"output": "one", "_meta": {"a": {"b": [None, 1]}}}),
        ({"content": [TEXT], "_meta": {}}, {"output": "one", "_meta": {}}),
        ({"content": [TEXT], "_meta": None}, {"output": "one"}),
    ],
)
def test_a_function_response_says_all_and_nothing_twice(raw: dict[str, Any], response: dict[str, Any]) -> None:
    result = types.CallToolResult.model_validate(raw)
    assert function_response(result, raw) == response
    if "_meta" not in raw:
        assert function_response(result) == response


# ---- its end ---------------------------------------------------------------------------------------------------------


def test_another_event_loop_is_refused() -> None:
    async def first() -> McpToolset:
        toolset = McpToolset(a_server())
        await toolset.connect()
        await toolset.aclose()
        return toolset

    toolset = run(first)
    with pytest.raises(ToolsetError, match="another event loop"):
        run(toolset.list_tools)


def test_one_that_was_not_closed_warns_and_is_closed(server: McpServer) -> None:
    async def body() -> None:
        toolset = McpToolset(server.url)
        await toolset.connect()
        core = toolset._core
        kept = [toolset]
        del toolset
        with pytest.warns(ResourceWarning, match="unclosed McpToolset"):
            kept.clear()
        while core.is_open:
            await asyncio.sleep(0.01)

    run(body)
