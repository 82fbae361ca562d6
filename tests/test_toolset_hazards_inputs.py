"""One callback for several servers and loops, and what a program may get wrong in what it hands to the toolset."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from gopher_mcp_python import GopherAgentElicitationRequest as Request
from gopher_mcp_python import GopherAgentElicitationResponse as Response
from gopher_mcp_python import McpToolset, elicitation_callback
from gopher_mcp_python.toolset import ToolsetError
from gopher_mcp_python.toolset.elicitation import Occasion
from gopher_mcp_python.toolset.handling import asker_for
from tests.support.small_server import SmallServer
from tests.support.toolset_servers import using

# ---- several sessions, several loops ---------------------------------------------------------------------------------


def test_a_server_does_not_complete_the_page_of_another() -> None:
    """Both servers ask under one id, both people are at their pages; one server says "complete"."""

    async def body() -> None:
        asker = asker_for(lambda request: Response("accept", finished=asyncio.Event().wait))
        assert asker is not None
        page = Request("url", "1", "Sign in.", "https://bank.example/")
        bank = asyncio.ensure_future(asker.ask(page, Occasion(held=True, person="ada", source="bank")))
        evil = asyncio.ensure_future(asker.ask(page, Occasion(held=True, person="bob", source="evil")))
        while not evil.done():
            asker.completed("1", "evil")  # heard as soon as he has the page before him
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.02)
        assert evil.result().action == "accept" and not bank.done()
        bank.cancel()
        await asyncio.wait((bank,))

    asyncio.run(asyncio.wait_for(body(), 10))


@pytest.mark.parametrize("asked", [("bank", "evil"), ("evil",)])
def test_a_notice_counts_where_it_is_clear_whose_it_is(asked: tuple[str, ...]) -> None:
    """The SDK does not say on which session a notice came: where two have asked under one id, none counts."""
    told: list[str] = []
    servers = {name: SmallServer(name) for name in asked}
    shown: set[str] = set()

    async def body() -> None:
        release, noticed = asyncio.Event(), asyncio.Event()

        async def handler(request: Request) -> str:
            shown.add(str(request.url))
            if len(shown) == len(asked):
                servers["evil"].gates["complete"].set()
            await release.wait()
            return "accept"

        handler.gopher_non_blocking = True  # type: ignore[attr-defined]  # both pages are shown at once
        callback = elicitation_callback(handler, complete=told.append)

        async def on_message(message: Any) -> None:
            await callback.on_message(message)
            noticed.set()

        async def use(name: str) -> str:
            small = servers[name]
            async with Client(
                small.sdk, elicitation_callback=callback, message_handler=on_message, mode="legacy"
            ) as client:
                arguments = {"url": f"https://{name}.example/", "complete": name == "evil"}
                result = await client.call_tool("page", arguments)
                return str(result.content[0].text)  # type: ignore[union-attr]

        using_all = [asyncio.ensure_future(use(name)) for name in asked]
        await noticed.wait()
        for _ in range(3):
            await asyncio.sleep(0.01)  # a completion handler runs on a thread of its own
        release.set()
        assert await asyncio.gather(*using_all) == ["accept"] * len(asked)

    asyncio.run(asyncio.wait_for(body(), 10))
    assert told == (["1"] if len(asked) == 1 else [])


def test_one_callback_asks_on_two_event_loops_at_once() -> None:
    """With one id and one URL: the second waits its turn on its own loop, not for a future of the first one's."""
    count, both, told = [0], threading.Event(), []  # type: tuple[list[int], threading.Event, list[Any]]

    def handler(request: Request) -> str:
        assert both.wait(5)
        threading.Event().wait(0.03)  # until the other one has come to wait
        return "accept"

    callback = elicitation_callback(handler)

    async def entered(context: Any, params: Any) -> Any:
        count[0] += 1
        if count[0] == 2:
            both.set()
        return await callback(context, params)

    async def use() -> str:
        async with Client(SmallServer().sdk, elicitation_callback=entered, mode="legacy") as client:
            result = await client.call_tool("page", {"url": "https://x.example/"})
            return str(result.content[0].text)  # type: ignore[union-attr]

    def run() -> None:
        try:
            told.append(asyncio.run(asyncio.wait_for(use(), 10)))
        except BaseException as error:  # told below
            told.append(error)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == ["accept", "accept"]


# ---- wrong values ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [str, Path])
def test_one_folder_is_one_root(kind: Callable[[Path], Any], tmp_path: Path) -> None:
    """A text is a sequence of texts, too: "/" among them."""
    small = SmallServer()

    async def body(toolset: McpToolset) -> None:
        told = await toolset.call_tool("roots")
        assert told["output"] == {"result": tmp_path.as_uri()}

    using(small.sdk, body, roots=kind(tmp_path))


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"roots": 7}, "roots"),
        ({"roots": [7]}, "roots"),
        ({"person": []}, "person"),
        ({"modes": "form"}, "modes"),
        ({"modes": "xx"}, "modes"),
    ],
)
def test_wrong_values_for_a_toolset_are_refused_by_name(given: dict[str, Any], named: str) -> None:
    more = {"elicitation_handler": "cancel"} if named == "person" else {}
    with pytest.raises(ValueError, match=named):
        McpToolset(SmallServer().sdk, **given, **more)


WRONG: list[tuple[Callable[[McpToolset], Awaitable[Any]], str]] = [
    (lambda toolset: toolset.call_tool(None), "name of a tool"),  # type: ignore[arg-type]
    (lambda toolset: toolset.call_tool("plain", [1]), "arguments"),  # type: ignore[arg-type]
    (lambda toolset: toolset.call_tool("plain", {1: 2}), "arguments"),  # type: ignore[dict-item]
    (lambda toolset: toolset.call_tool("plain", meta=[1]), "meta"),  # type: ignore[arg-type]
    (lambda toolset: toolset.call_tool("plain", meta={"progressToken": object()}), "meta"),
    (lambda toolset: toolset.call_tool("plain", {"opens": object()}), "arguments of 'plain'"),
    (lambda toolset: toolset.call_tool("ask", person=[]), "person"),  # type: ignore[arg-type]
    (lambda toolset: toolset.call_tool("plain", on_progress=3), "on_progress"),  # type: ignore[arg-type]
    (lambda toolset: toolset.call_tool("plain", on_progress=0), "on_progress"),  # type: ignore[arg-type]
    (lambda toolset: toolset.get_prompt("p", {"a": 3}), "arguments"),  # type: ignore[dict-item]
    (lambda toolset: toolset.get_prompt("p", [1]), "arguments"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "named"), WRONG)
def test_wrong_values_of_a_call_are_the_callers(call: Callable[[McpToolset], Awaitable[Any]], named: str) -> None:
    """The server never hears of them, and the next call is a good one."""

    async def body(toolset: McpToolset) -> None:
        with pytest.raises((ValueError, ToolsetError), match=named) as raised:
            await call(toolset)
        assert "server's answer" not in str(raised.value)
        assert (await toolset.call_tool("plain"))["output"] == {"result": "ok"}

    using(SmallServer().sdk, body, elicitation_handler="cancel")


def test_a_closed_toolset_says_what_to_do() -> None:
    async def body() -> None:
        toolset = McpToolset(SmallServer().sdk)
        async with toolset:
            pass
        with pytest.raises(ToolsetError, match=r"closed; make a new one"):
            await toolset.call_tool("plain")

    asyncio.run(body())


def test_a_tool_may_have_any_name_of_an_argument() -> None:
    async def body(toolset: McpToolset) -> None:
        (tool,) = [tool for tool in await toolset.list_tools() if tool.name == "selfish"]
        assert (await tool(self="me"))["output"] == {"result": "me"}

    using(SmallServer().sdk, body)
