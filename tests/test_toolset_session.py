"""Sessions: lists, results, limits, lost and forgotten sessions, credentials; real HTTP and a real child process."""

from __future__ import annotations

import asyncio
import re
import sys
import time
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from gopher_mcp_python.errors import ApiKeyError, ConnectionError
from gopher_mcp_python.toolset import (
    CallTimeoutError,
    HttpConnection,
    ServerError,
    SessionLostError,
    StdioConnection,
    ToolsetError,
)
from gopher_mcp_python.toolset.results import result_text
from gopher_mcp_python.toolset.toolset import Toolset
from tests.support import canary, children
from tests.support.servers import McpServer
from tests.support.toolset import ToldAsker, text_of, with_toolset

STDIO = StdioConnection(sys.executable, ("-m", "tests.support.mcp_server", "--stdio"), cwd=".", name="local")


def post(url: str) -> None:
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, b"", timeout=5).close()


def test_list_is_followed_page_by_page(server_with: Callable[..., McpServer]) -> None:
    server = server_with("--page-size", "5")

    async def names(toolset: Toolset) -> list[str]:
        return list(toolset.tools)

    found = with_toolset(server.url, None, names)
    assert len(found) > 20 and "withhold" in found
    assert len(server.log("list")) == -(-len(found) // 5)


def test_results_keep_everything(server: McpServer) -> None:
    async def all_kinds(toolset: Toolset) -> list[Any]:
        return [await toolset.call_tool(name) for name in ("images", "structured", "with_meta", "tool_error")]

    images, structured, meta, failed = with_toolset(server.url, None, all_kinds)
    assert [block.type for block in images.content] == ["text", "image", "resource_link"]
    assert result_text(images) == "an image\n[image: image/png, 72 bytes]\n[resource: report file:///report.txt]"
    assert structured.structured_content == {"emailAddress": "ada@example.com", "messagesTotal": 42}
    assert meta.meta == {"example.com/trace": {"id": 7, "tags": ["a", None]}}
    assert failed.is_error and result_text(failed) == "the tool failed: no such label"


def test_server_errors_have_a_code_and_a_place(server: McpServer) -> None:
    with pytest.raises(ServerError, match=r"calling protocol_error of http://127.0.0.1:\d+/mcp failed: the server"):
        with_toolset(server.url, None, lambda toolset: text_of(toolset, "protocol_error"))


def test_time_limit_of_a_call_and_a_good_call_after_it(server: McpServer) -> None:
    async def body(toolset: Toolset) -> str:
        begin = time.monotonic()
        with pytest.raises(CallTimeoutError):
            await toolset.call_tool("slow", {"seconds": 5}, timeout=0.2)
        assert time.monotonic() - begin < 1.5
        return await text_of(toolset, "plain")

    assert with_toolset(server.url, None, body) == "plain: ok"
    assert server.wait_for("tool_cancelled")[0]["tool"] == "slow"


def test_forgotten_session_is_opened_anew_and_nothing_runs_twice(server_with: Callable[..., McpServer]) -> None:
    server = server_with()

    async def body(toolset: Toolset) -> list[str]:
        first = await text_of(toolset, "plain")
        await asyncio.to_thread(post, server.url.replace("/mcp", "/_forget"))
        return [first, await text_of(toolset, "decline_aware"), await text_of(toolset, "plain")]

    assert with_toolset(server.url, ToldAsker(), body) == ["plain: ok", "action: accept", "plain: ok"]
    assert server.tools_run() == ["plain", "decline_aware", "plain"]
    assert len(server.log("hello")) == 2


def test_server_that_goes_away_and_comes_back(server_with: Callable[..., McpServer]) -> None:
    server = server_with()
    port = server.url.split(":")[2].split("/")[0]

    async def body(toolset: Toolset) -> str:
        await asyncio.to_thread(server.close)
        with pytest.raises(ConnectionError, match="Is the server running"):
            await toolset.call_tool("plain")
        again = await asyncio.to_thread(server_with, "--port", port)
        assert again.url == server.url
        return await text_of(toolset, "plain")

    assert with_toolset(server.url, None, body) == "plain: ok"


def test_server_that_dies_during_a_call_is_not_called_again(server_with: Callable[..., McpServer]) -> None:
    server = server_with()

    async def body(toolset: Toolset) -> None:
        calling = asyncio.create_task(toolset.call_tool("slow", {"seconds": 30}))
        await asyncio.to_thread(server.wait_for, "run")
        await asyncio.to_thread(server.close)
        with pytest.raises(SessionLostError, match="not called again"):
            await calling

    with_toolset(server.url, None, body)


def test_nobody_listens() -> None:
    begin = time.monotonic()
    with pytest.raises(ConnectionError, match=r"connecting to http://127.0.0.1:9/mcp failed: connection refused"):
        with_toolset("http://user:hunter2@127.0.0.1:9/mcp?token=hunter3#x", None, lambda toolset: text_of(toolset, "x"))
    assert time.monotonic() - begin < 3


@pytest.mark.parametrize("status", [401, 403])
def test_refused_credentials_are_an_api_key_error(server_with: Callable[..., McpServer], status: int) -> None:
    server = server_with("--status", str(status))
    with pytest.raises(ApiKeyError, match=rf"HTTP status {status}.*access_token"):
        with_toolset(server.url + "?key=hunter2", None, lambda toolset: text_of(toolset, "plain"))


def test_no_mcp_there(server_with: Callable[..., McpServer]) -> None:
    server = server_with("--status", "404")
    with pytest.raises(ConnectionError, match=r"HTTP status 404.*MCP endpoint"):
        with_toolset(server.url, None, lambda toolset: text_of(toolset, "plain"))


def test_headers_are_sent_with_every_request(server_with: Callable[..., McpServer]) -> None:
    server = server_with("--token", "sesame")
    connection = HttpConnection(server.url, {"Authorization": "Bearer sesame", "X-Test": "yes"})
    assert with_toolset(connection, None, lambda toolset: text_of(toolset, "plain")) == "plain: ok"
    headers = server.log("run")[0]["headers"]
    assert headers["x-test"] == "yes" and "sesame" not in repr(connection)


def test_session_is_ended_at_the_server(server: McpServer) -> None:
    with_toolset(server.url, None, lambda toolset: text_of(toolset, "plain"))
    assert server.wait_for("deleted")


def test_json_answers_instead_of_streams(server_with: Callable[..., McpServer]) -> None:
    server = server_with("--json-response")
    assert with_toolset(server.url, ToldAsker(), lambda toolset: text_of(toolset, "plain")) == "plain: ok"


def test_older_http_transport(server: McpServer) -> None:
    connection = HttpConnection(server.url.replace("/mcp", "/sse"), transport="sse")
    asker = ToldAsker()
    assert with_toolset(connection, asker, lambda toolset: text_of(toolset, "decline_aware")) == "action: accept"
    assert asker.requests[0].tool == "decline_aware"


def test_older_http_transport_refuses_credentials(server_with: Callable[..., McpServer]) -> None:
    server = server_with("--status", "401")
    connection = HttpConnection(server.url.replace("/mcp", "/sse"), transport="sse")
    with pytest.raises(ApiKeyError, match="HTTP status 401"):
        with_toolset(connection, None, lambda toolset: text_of(toolset, "plain"))


def test_server_without_sessions_answers_and_says_why_it_cannot_ask(server_with: Callable[..., McpServer]) -> None:
    server = server_with("--stateless")
    assert with_toolset(server.url, ToldAsker(), lambda toolset: text_of(toolset, "plain")) == "plain: ok"
    with pytest.raises(ServerError, match="can't carry the question"):
        with_toolset(server.url, ToldAsker(), lambda toolset: text_of(toolset, "decline_aware"))


def test_stdio_server_asks_too() -> None:
    asker = ToldAsker()
    assert with_toolset(STDIO, asker, lambda toolset: text_of(toolset, "decline_aware")) == "action: accept"
    assert (asker.requests[0].server, asker.requests[0].tool) == ("local", "decline_aware")


def test_stdio_server_at_2026_for_a_tool_that_asks_through_its_result() -> None:
    asker = ToldAsker()

    async def both(toolset: Toolset) -> list[str]:
        return [await text_of(toolset, "decline_aware"), await text_of(toolset, "input_required")]

    assert with_toolset(STDIO, asker, both) == ["action: accept", "actions: accept"]


@pytest.mark.parametrize("way", ["http", "stdio"])
def test_a_server_without_2026_says_so_when_that_is_asked_for(server_with: Callable[..., McpServer], way: str) -> None:
    stdio = StdioConnection(STDIO.command, (*STDIO.args, "--era", "legacy"), cwd=".", name="local")
    where = server_with("--era", "legacy").url if way == "http" else stdio
    with pytest.raises(ConnectionError, match=r'does not speak protocol 2026-07-28.* "auto" takes what it speaks'):
        with_toolset(where, None, lambda toolset: text_of(toolset, "plain"), protocol="2026-07-28")


def test_command_that_does_not_exist() -> None:
    with pytest.raises(ConnectionError, match="Is the command installed"):
        with_toolset(StdioConnection("/no/such/server"), None, lambda toolset: text_of(toolset, "plain"))


def test_command_that_says_nothing_useful_and_ends() -> None:
    with pytest.raises((ConnectionError, ToolsetError)):
        with_toolset(StdioConnection(sys.executable, ("-c", "pass")), None, lambda toolset: text_of(toolset, "plain"))


def test_closed_toolset_refuses(server: McpServer) -> None:
    async def body(toolset: Toolset) -> None:
        await toolset.aclose()
        with pytest.raises(ToolsetError, match="was closed"):
            await toolset.call_tool("plain")

    with_toolset(server.url, None, body)


LOGS_EVERYTHING = """
import logging, sys
logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)
from gopher_mcp_python import GopherAgent
options = {"engine": "embedded", "elicitation": {"handler": lambda request: "accept"}, "access_token": sys.argv[2]}
with GopherAgent.create_with_url("DirectProvider", "none", sys.argv[1], options) as agent:
    for query in ("decline_aware", "error_32042", "input_required", "auth_url_text"):
        agent.run(query)
"""


def test_debug_logs_of_the_libraries_below_hold_no_secrets(server: McpServer) -> None:
    ended = children.run([sys.executable, "-c", LOGS_EVERYTHING, server.url, canary.secret("token")]).check()
    assert "elicitation/create" in ended.err, "the messages are logged"
    assert canary.MARK not in ended.err
    session_ids = re.findall(r"[Ss]ession[- ][Ii][Dd](?:: |', b')(.{9})", ended.err)
    assert session_ids and set(session_ids) == {"<redacted"}
