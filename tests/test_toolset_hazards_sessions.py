"""Sessions that end, are forgotten or hear what nobody waits for any more, while somebody is asked."""

from __future__ import annotations

import asyncio
import urllib.request

import pytest

from gopher_mcp_python import McpToolset
from gopher_mcp_python.elicitation import GopherAgentElicitationRequest as Request
from gopher_mcp_python.toolset import HttpConnection
from tests.support.hazards import USER, WhoIsAsked, asked_for_a_call_that_was_given_up, failing
from tests.support.hosting import Hosted
from tests.support.idp import IdentityProvider
from tests.support.protected import ProtectedServer
from tests.support.servers import McpServer
from tests.support.small_server import SmallServer
from tests.support.toolset_servers import using


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_in_a_handler_does_not_wait_for_the_server(interrupt: type[BaseException]) -> None:
    small = SmallServer()

    async def body(toolset: McpToolset) -> None:
        waited = asyncio.get_running_loop().call_later(2, small.gates["server"].set)
        with pytest.raises(interrupt, match="own"):
            await toolset.call_tool("ask", {"after": "asked server"})
        waited.cancel()

    using(small.sdk, body, elicitation_handler=failing(interrupt("own"), "async"))
    assert not small.gates["server"].is_set()


def test_a_page_of_a_refused_call_outlives_the_servers_memory_of_the_session(server: McpServer) -> None:
    """Another call finds out meanwhile; this one is made again on the new session."""

    async def body(toolset: McpToolset) -> None:
        refused = asyncio.create_task(toolset.call_tool("error_32042"))
        await shown.wait()
        forget = urllib.request.build_opener(urllib.request.ProxyHandler({})).open
        await asyncio.to_thread(lambda: forget(server.url.replace("/mcp", "/_forget"), b"", timeout=5).close())
        assert (await toolset.call_tool("plain"))["output"] == "plain: ok"
        done.set()
        assert "emailAddress" in (await refused)["output"]

    async def handler(request: Request) -> str:
        shown.set()
        await done.wait()
        return "accept"

    shown, done = asyncio.Event(), asyncio.Event()
    using(server.url, body, elicitation_handler=handler)


def test_a_question_of_a_call_that_was_given_up_is_not_asked_in_another_call_over_sse() -> None:
    handler, small = WhoIsAsked(), SmallServer()

    async def body(toolset: McpToolset) -> None:
        await asked_for_a_call_that_was_given_up(toolset, handler)

    hosted = Hosted(small.sdk.sse_app(), "small sse")
    try:
        using(HttpConnection(f"{hosted.base}/sse", transport="sse"), body, elicitation_handler=handler)
    finally:
        hosted.close()


def test_the_functions_of_a_sign_in_see_whoever_connects() -> None:
    seen: list[str] = []

    def assertion(audience: str, resource: str) -> str:
        seen.append(USER.get())
        raise OSError

    oauth = {"grant": "jwt_bearer", "client_id": "program", "client_secret": "x", "assertion": assertion,
             "token_store": "memory"}  # fmt: skip

    async def connect(url: str) -> None:
        USER.set("ada")
        with pytest.raises(Exception, match="no assertion"):
            async with McpToolset(url, oauth=oauth):
                pass

    with IdentityProvider() as idp, ProtectedServer(idp) as server:
        asyncio.run(asyncio.wait_for(connect(server.url), 10))
    assert set(seen) == {"ada"}
