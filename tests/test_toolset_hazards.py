"""What may go wrong around a handler, and stays there: odd failures, late answers, other calls and people, ends."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from collections.abc import Awaitable, Callable

import anyio
import pytest
from mcp.shared.exceptions import MCPError

from gopher_mcp_python import GopherAgentElicitationRequest as Request
from gopher_mcp_python import GopherAgentElicitationResponse as Response
from gopher_mcp_python import McpToolset
from gopher_mcp_python.toolset import ElicitationHandlerError, ServerError, SessionLostError, StdioConnection
from gopher_mcp_python.toolset.elicitation import Prompt
from gopher_mcp_python.toolset.handling import asker_for
from tests.support.canary import secret
from tests.support.hazards import (
    USER,
    WhoIsAsked,
    as_user,
    asked_for_a_call_that_was_given_up,
    failing,
    of_user,
)
from tests.support.small_server import SmallServer
from tests.support.toolset_servers import MODERN, Place, using

STDIO = StdioConnection(sys.executable, ("-m", "tests.support.small_server"), cwd=".", name="small")
FAILED = (-32603, "the client's elicitation handler failed", None)


class Odd(BaseException):
    """What a program or a framework may raise that is no Exception."""


# ---- a handler's failure ---------------------------------------------------------------------------------------------


def test_an_error_of_the_sdk_that_a_handler_raises_is_not_sent_to_the_server() -> None:
    """It may be another server's, with that one's text and the URLs of its -32042."""
    small, error = SmallServer(), MCPError(-32042, "of another server", {"elicitations": [{"url": "https://x.example/"}]})

    async def body(toolset: McpToolset) -> None:
        with pytest.raises(ElicitationHandlerError) as raised:
            await toolset.call_tool("ask")
        assert raised.value.__cause__ is error

    using(small.sdk, body, elicitation_handler=failing(error, "async"))
    assert small.seen == [FAILED]


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("error", [GeneratorExit, Odd, asyncio.CancelledError])
def test_whatever_a_handler_raises_ends_its_own_call_only(error: type[BaseException], kind: str) -> None:
    small = SmallServer()

    async def body(toolset: McpToolset) -> None:
        other = asyncio.create_task(toolset.call_tool("wait", {"gate": "after"}))
        with pytest.raises(ElicitationHandlerError) as raised:
            await toolset.call_tool("ask")
        assert isinstance(raised.value.__cause__, error)
        small.gates["after"].set()
        assert (await other)["output"] == {"result": "waited"}

    using(small.sdk, body, elicitation_handler=failing(error("own"), kind))
    assert small.seen == [FAILED]


@pytest.mark.parametrize("error", [Odd, asyncio.CancelledError])
def test_a_wait_for_the_person_that_fails_is_no_cancel(error: type[BaseException]) -> None:
    async def finished() -> bool:
        raise error("own")

    place = Place("memory", MODERN)
    with pytest.raises(ElicitationHandlerError) as raised:
        place.text("input_required", elicitation_handler=lambda request: Response("accept", finished=finished))
    assert isinstance(raised.value.__cause__, error) and place.scenario.actions() == []


def test_a_handlers_own_error_of_our_kind_is_its_failure_too() -> None:
    error = ElicitationHandlerError("of a policy of the program's")

    async def body(toolset: McpToolset) -> None:
        with pytest.raises(ElicitationHandlerError) as raised:
            await toolset.call_tool("ask")
        assert raised.value.__cause__ is error

    using(SmallServer().sdk, body, elicitation_handler=failing(error, "async"))


def test_a_failure_in_the_moment_of_a_withdrawal_is_nobodys(caplog: pytest.LogCaptureFixture) -> None:
    """asyncio logs an exception that nobody looks at, as it is."""

    async def body() -> None:
        go = asyncio.Event()

        async def handler(request: Request) -> str:
            await go.wait()
            prompt.withdraw()
            raise ValueError("what a person typed")

        asker = asker_for(handler)
        assert asker is not None
        prompt = Prompt(Request("url", "1", "Sign in.", "https://x.example/"), asker)
        answer = asyncio.ensure_future(prompt.answer())
        await asyncio.sleep(0.01)
        go.set()
        assert (await answer).action == "cancel"

    asyncio.run(body())
    gc.collect()
    assert caplog.text == ""


# ---- late answers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["catches", "returns in finally"])
def test_an_answer_after_the_time_is_up_does_not_count(way: str) -> None:
    small = SmallServer()

    async def catches(request: Request) -> Response:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass
        return Response("accept", {"name": "late"})

    async def returns(request: Request) -> Response:
        try:
            await asyncio.sleep(60)
        except BaseException:
            return Response("accept", {"name": "late"})
        raise AssertionError("nobody ended the wait")

    async def body(toolset: McpToolset) -> None:
        assert (await toolset.call_tool("ask"))["output"] == {"result": "cancel None"}

    handler = catches if way == "catches" else returns
    using(small.sdk, body, elicitation_handler=handler, elicitation_timeout=0.03)
    assert small.seen == ["cancel"]


def test_a_handler_that_will_not_end_holds_neither_its_call_nor_the_person() -> None:
    small, running, over = SmallServer(), [0], asyncio.Event()

    async def stays(request: Request) -> str:
        running[0] += 1
        while not over.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                pass
        running[0] -= 1
        return "accept"

    async def body(toolset: McpToolset) -> None:
        for count in (1, 2):
            told = await asyncio.wait_for(toolset.call_tool("ask"), 2)
            assert told["output"] == {"result": "cancel None"} and running == [count]
        over.set()
        while running[0]:
            await asyncio.sleep(0.01)

    async def bounded() -> None:
        try:
            async with McpToolset(small.sdk, elicitation_handler=stays, elicitation_timeout=0.03) as toolset:
                await body(toolset)
        finally:
            over.set()

    asyncio.run(bounded())


# ---- whose question it is, where the protocol does not say -------------------------------------------------------


def test_a_session_opened_again_by_a_call_is_not_that_calls() -> None:
    handler = WhoIsAsked()

    async def body(toolset: McpToolset) -> None:
        with pytest.raises(SessionLostError):
            await toolset.call_tool("die")
        first = as_user(toolset, "ada", "wait", {"gate": "end", "opens": "ada"})
        await asyncio.sleep(0)  # it opens the session, on behalf of all
        await of_user(toolset, "bob", "wait", {"gate": "ada"})
        told = await of_user(toolset, "bob", "ask", {})
        await toolset.call_tool("plain", {"opens": "end"})
        assert await first == "waited"
        assert told == "accept nobody" and handler.asked == [(None, "nobody")]

    using(STDIO, body, elicitation_handler=handler)


def test_two_calls_that_ask_over_stdio_are_nobodys_and_in_nobodys_context() -> None:
    """Not in that of whoever connected first, either."""
    handler = WhoIsAsked()

    async def body(toolset: McpToolset) -> None:
        ada = as_user(toolset, "ada", "ask", {"gate": "both", "after": "asked"})
        bob = as_user(toolset, "bob", "ask", {"opens": "both", "after": "more asked"})
        assert [await ada, await bob] == ["accept nobody"] * 2
        assert handler.asked == [(None, "nobody")] * 2

    async def first() -> None:
        USER.set("first")
        async with McpToolset(STDIO, elicitation_handler=handler) as toolset:
            await body(toolset)

    asyncio.run(asyncio.wait_for(first(), 20))


def test_a_question_of_a_call_that_was_given_up_is_not_asked_in_another_call() -> None:
    handler = WhoIsAsked()

    async def body(toolset: McpToolset) -> None:
        await asked_for_a_call_that_was_given_up(toolset, handler)

    using(STDIO, body, elicitation_handler=handler)


@pytest.mark.parametrize("when", ["two calls are under way", "no call is"])
def test_a_failure_that_no_call_is_known_to_have_is_logged(when: str, caplog: pytest.LogCaptureFixture) -> None:
    token = secret("handler")

    async def body(toolset: McpToolset) -> None:
        if when == "no call is":
            await toolset.call_tool("later")
            await toolset.call_tool("plain", {"opens": "later"})
            while "elicitation handler failed" not in caplog.text:
                await asyncio.sleep(0.01)
            return
        other = asyncio.create_task(toolset.call_tool("wait", {"gate": "end", "opens": "both"}))
        with pytest.raises(ServerError, match="elicitation handler failed"):
            await toolset.call_tool("ask", {"gate": "both"})
        await toolset.call_tool("plain", {"opens": "end"})
        await other

    error = KeyError(f"no https://example.com/?token={token}")
    server = SmallServer().sdk if when == "no call is" else STDIO
    with caplog.at_level(logging.WARNING, "gopher_mcp_python"):
        using(server, body, elicitation_handler=failing(error, "async"), limit=10)
    assert "KeyError" in caplog.text and "small" in caplog.text and token not in caplog.text


# ---- the end ---------------------------------------------------------------------------------------------------------


async def _cancelled_scope(use: Callable[[], Awaitable[None]]) -> None:
    """Every wait inside is cancelled at once, also those of the clean-up."""
    with anyio.CancelScope() as scope:
        asyncio.get_running_loop().call_later(0.05, scope.cancel)
        await use()


async def _cancelled_twice(use: Callable[[], Awaitable[None]]) -> None:
    task = asyncio.ensure_future(use())
    await asyncio.sleep(0.05)
    task.cancel()
    await asyncio.sleep(0)  # now it is in aclose
    while not task.done():
        task.cancel()
        await asyncio.sleep(0)


@pytest.mark.parametrize("cancelled", [_cancelled_scope, _cancelled_twice])
def test_a_session_ends_although_its_end_is_not_awaited(cancelled: Callable[..., Awaitable[None]]) -> None:
    small = SmallServer()
    toolset = McpToolset(small.sdk, elicitation_handler="cancel")

    async def use() -> None:
        async with toolset:
            await toolset.call_tool("wait", {"gate": "never"})

    async def body() -> None:
        await cancelled(use)
        assert not small.ended, "it was awaited"
        while not small.ended:
            await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(body(), 2))
