# ruff: noqa: F401, F811
# Fixtures are used by their names.
"""Whose turn it is to be asked, how long it takes, what is withdrawn, what a handler's failure comes to."""

from __future__ import annotations

import asyncio
import contextvars
import sys
from collections.abc import Callable
from typing import Any

import pytest
from mcp import Client

from gopher_mcp_python import GopherAgentElicitationRequest as Request
from gopher_mcp_python import GopherAgentElicitationResponse as Response
from gopher_mcp_python import McpToolset
from gopher_mcp_python.forms import read_form
from gopher_mcp_python.toolset import (
    CallTimeoutError,
    ElicitationHandlerError,
    HttpConnection,
    SessionLostError,
    StdioConnection,
    ToolsetError,
)
from tests.support.servers import McpServer
from tests.support.toolset_places import (
    WITH_URLS,
    Asked,
    at,
    form_tool,
    never,
    place,
    places,
    url_tool,
)
from tests.support.toolset_servers import MODERN, VERSIONS, Place, using

STDIO = StdioConnection(sys.executable, ("-m", "tests.support.mcp_server", "--stdio"), cwd=".")
META = {"example.com/trace": {"id": 7, "tags": ["a", None]}}


# ---- whose turn it is ----------------------------------------------------------------------------------------------


@at(WITH_URLS)
def test_one_question_at_a_time_first_come_first_served(place: Place) -> None:
    async def slowly(request: Request) -> str:
        await asyncio.sleep(0.02)
        return "decline" if request.message == "parallel 1" else "accept"

    handler = Asked(slowly)
    told = place.text("elicit_parallel", {"count": 4}, elicitation_handler=handler)
    assert told == "actions: accept decline accept accept"
    assert handler.messages == [f"parallel {n}" for n in range(4)] and handler.most_open == 1


@at(WITH_URLS, MODERN)
@pytest.mark.parametrize("persons", ["ada ada", "ada bob"])
def test_a_person_is_asked_one_thing_at_a_time_by_all_toolsets(place: Place, persons: str) -> None:
    first, second = persons.split()
    met = asyncio.Event()

    async def wait(request: Request) -> str:
        if first == second:
            await asyncio.sleep(0.05)
        elif handler.open == 2:
            met.set()
        else:
            await met.wait()
        return "accept"

    handler = Asked(wait)

    async def body(toolset: McpToolset) -> None:
        async with McpToolset(
            place.connection, elicitation_handler=handler, person=second, protocol=place.protocol
        ) as other:
            responses = await asyncio.gather(*(one.call_tool(url_tool(place)) for one in (toolset, other)))
            assert all(response["output"].endswith("accept") for response in responses)

    place.run(body, elicitation_handler=handler, person=first)
    assert handler.most_open == (1 if first == second else 2)


@at(WITH_URLS, MODERN)
def test_one_toolset_serves_several_people(place: Place) -> None:
    """Whom a call is for is said with the call: Ada is asked one thing at a time, and Bob meanwhile."""
    met = asyncio.Event()

    async def wait(request: Request) -> str:
        if handler.open == 2:
            met.set()
        await met.wait()
        return "accept"

    handler = Asked(wait)

    async def body(toolset: McpToolset) -> None:
        people = ["ada", "ada", "ada", "bob"]
        responses = await asyncio.gather(*(toolset.call_tool(url_tool(place), person=person) for person in people))
        assert all(response["output"].endswith("accept") for response in responses)

    place.run(body, elicitation_handler=handler)
    assert handler.most_open == 2


@at(WITH_URLS, MODERN)
def test_two_people_on_one_server_get_their_own_answers(place: Place) -> None:
    async def body(toolset: McpToolset) -> None:
        async with McpToolset(
            place.connection, elicitation_handler=Asked("decline"), protocol=place.protocol, person="bob"
        ) as other:
            responses = await asyncio.gather(*(one.call_tool(url_tool(place)) for one in (toolset, other) * 3))
            actions = [response["output"].split()[-1] for response in responses]
            assert actions == ["accept", "decline"] * 3

    place.run(body, elicitation_handler=Asked("accept"), person="ada")


@at(WITH_URLS, MODERN)
def test_a_handler_sees_the_context_of_its_own_call(place: Place) -> None:
    user: contextvars.ContextVar[str] = contextvars.ContextVar("user")

    async def call_as(toolset: McpToolset, name: str) -> str:
        user.set(name)
        return str((await toolset.call_tool(url_tool(place)))["output"]).split()[-1]

    async def body(toolset: McpToolset) -> list[str]:
        names = ["accept", "decline", "cancel", "accept"]
        assert await asyncio.gather(*(call_as(toolset, name) for name in names)) == names
        return names

    async def as_the_user_is(request: Request) -> str:
        await asyncio.sleep(0.01)
        return user.get()

    place.run(body, elicitation_handler=as_the_user_is)


def test_a_handler_sees_its_callers_context_where_the_transport_has_none() -> None:
    """On stdio a question comes on the one stream that there is, read by the session's own task."""
    user: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="cancel")

    async def body(toolset: McpToolset) -> None:
        for name in ("accept", "decline"):
            user.set(name)
            assert await toolset.call_tool("decline_aware") == {"output": f"action: {name}"}

    using(STDIO, body, elicitation_handler=lambda request: user.get())


@at(WITH_URLS, MODERN)
def test_many_calls_at_once_get_their_own_answers(place: Place) -> None:
    def schema(number: int) -> dict[str, Any]:
        return {"type": "object", "properties": {"reason": {"type": "string", "default": f"reason {number}"}}}

    def by_default(request: Request) -> Response:
        return Response("accept", {"reason": read_form(request.requested_schema or {}).fields[0].default})

    async def body(toolset: McpToolset) -> None:
        calls = (toolset.call_tool(form_tool(place), {"schema": schema(number)}) for number in range(30))
        told = [response["output"] for response in await asyncio.gather(*calls)]
        assert told == [f'form: accept {{"reason": "reason {number}"}}' for number in range(30)]

    place.run(body, elicitation_handler=by_default)


# ---- time, withdrawal, failure -------------------------------------------------------------------------------------


@at(WITH_URLS)
def test_the_clock_stands_still_until_the_last_question_is_answered(place: Place) -> None:
    async def slowly(request: Request) -> str:
        await asyncio.sleep(0.4)
        return "accept"

    async def body(toolset: McpToolset) -> None:
        both = await toolset.call_tool("elicit_parallel", {"count": 2}, timeout=0.6)
        assert both == {"output": "actions: accept accept"}
        with pytest.raises(CallTimeoutError):  # it goes on afterwards
            await toolset.call_tool("elicit_then_slow", {"seconds": 60}, timeout=0.3)

    place.run(body, elicitation_handler=slowly)


@at(WITH_URLS, MODERN)
def test_a_question_has_a_time_limit_of_its_own(place: Place) -> None:
    handler = Asked(never)
    assert place.text(url_tool(place), elicitation_handler=handler, elicitation_timeout=0.1).endswith("cancel")
    assert handler.withdrawn == 1


@at(WITH_URLS, MODERN)
def test_a_question_is_withdrawn_with_its_call(place: Place) -> None:
    handler = Asked(never)

    async def body(toolset: McpToolset) -> None:
        calling = asyncio.create_task(toolset.call_tool(url_tool(place)))
        await handler.wait_open()
        waiting = asyncio.create_task(toolset.call_tool(url_tool(place)))
        await place.scenario.wait_for("run", 2)
        waiting.cancel()  # its turn has not come, and now never will
        await asyncio.wait((waiting,))
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        while handler.open:
            await asyncio.sleep(0.005)
        assert (await toolset.call_tool("plain"))["output"] == "plain: ok"

    place.run(body, elicitation_handler=handler)
    assert (len(handler.requests), handler.withdrawn) == (1, 1)
    assert "accept" not in place.scenario.actions()


@at(WITH_URLS, MODERN)
def test_closing_withdraws_what_is_asked(place: Place) -> None:
    handler = Asked(never)

    async def body(toolset: McpToolset) -> None:
        calls = [asyncio.create_task(toolset.call_tool(url_tool(place))) for _ in range(2)]
        await handler.wait_open()
        await toolset.aclose()
        for ended in await asyncio.gather(*calls, return_exceptions=True):
            assert isinstance(ended, ToolsetError) or "cancel" in str(ended)

    place.run(body, elicitation_handler=handler)
    assert handler.withdrawn == 1 and "accept" not in place.scenario.actions()


@at(WITH_URLS)
def test_a_server_that_asks_again_while_it_is_closed_asks_nobody(place: Place) -> None:
    handler = Asked(never)

    async def body(toolset: McpToolset) -> None:
        calling = asyncio.create_task(toolset.call_tool("elicit_twice"))
        await handler.wait_open()
        await toolset.aclose()
        await asyncio.wait((calling,))
        calling.exception()

    place.run(body, elicitation_handler=handler)
    assert handler.messages == ["Sign in to Gmail to continue."]


@at(WITH_URLS, transports=("http",))
def test_a_question_is_withdrawn_when_its_stream_dies(place: Place) -> None:
    handler = Asked(never)
    with pytest.raises(SessionLostError, match="not known whether the tool ran"):
        place.text("dropped", elicitation_handler=handler)
    assert handler.withdrawn == 1 and place.scenario.runs() == ["dropped"]


@pytest.mark.parametrize("transport", ["stdio", "http", "sse"])
def test_a_question_is_withdrawn_when_its_server_dies(transport: str, server_with: Callable[..., McpServer]) -> None:
    handler = Asked(never)
    if transport == "stdio":
        connection: Any = STDIO
    else:
        url = server_with().url
        connection = url if transport == "http" else HttpConnection(url.replace("/mcp", "/sse"), transport="sse")

    async def body(toolset: McpToolset) -> None:
        with pytest.raises(SessionLostError, match="not called again"):
            await toolset.call_tool("dies")
        while handler.open:
            await asyncio.sleep(0.005)

    using(connection, body, elicitation_handler=handler)
    assert handler.withdrawn == 1


def _broken(request: Request) -> str:
    raise ValueError("no such window")


async def _broken_later(request: Request) -> str:
    await asyncio.sleep(0)
    raise ValueError("no such window")


@at(*VERSIONS)
@pytest.mark.parametrize("handler", [_broken, _broken_later])
def test_what_a_handler_raises_reaches_the_caller_and_the_server(place: Place, handler: Any) -> None:
    with pytest.raises(ElicitationHandlerError) as caught:
        place.text(form_tool(place), elicitation_handler=handler)
    assert isinstance(caught.value.__cause__, ValueError) and str(caught.value.__cause__) == "no such window"
    if place.version != MODERN:
        assert place.scenario.logged("elicit_error")[0]["code"] == -32603
    assert not place.scenario.actions() and len(place.scenario.runs()) == 1


@at(WITH_URLS, MODERN)
@pytest.mark.parametrize("answer", ["yes", None, True, 1, {"action": "accept"}])
def test_what_is_no_answer_is_never_one(place: Place, answer: Any) -> None:
    with pytest.raises(ElicitationHandlerError):
        place.text(url_tool(place), elicitation_handler=lambda request: answer)
    assert not place.scenario.actions()


# ---- a client of the caller's own ----------------------------------------------------------------------------------


@at(WITH_URLS, MODERN)
@pytest.mark.parametrize("what", ["client", "session"])
def test_a_client_of_the_callers_own(place: Place, what: str) -> None:
    async def body() -> None:
        mode = MODERN if place.version == MODERN else "legacy"
        async with Client(place.connection, mode=mode) as client:
            async with McpToolset(client if what == "client" else client.session) as toolset:
                assert "kind" in {tool.name for tool in await toolset.list_tools()}
                response = await toolset.call_tool("kind", {"kind": "text", "meta": META})
                assert response["output"] == "hello" and response["_meta"].items() >= META.items()
                assert (await toolset.get_prompt("plain")).messages[0].content.text == "plain: ok"
            assert not (await client.call_tool("plain")).is_error, "it is the caller's to close"

    asyncio.run(asyncio.wait_for(body(), 20))


@at(WITH_URLS)
def test_a_closed_toolset_refuses(place: Place) -> None:
    async def body(toolset: McpToolset) -> None:
        await toolset.aclose()
        with pytest.raises(ToolsetError, match="was closed"):
            await toolset.call_tool("plain")

    place.run(body)
