"""FastMCP's client with our elicitation handler."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from fastmcp import Client

from gopher_mcp_python import GopherAgentElicitationResponse
from gopher_mcp_python.integrations.fastmcp import fastmcp_elicitation_handler
from tests.support.frameworks.asking import PLANTED, URL, Person, clear, example, fails, later, log, never, run
from tests.support.servers import click_allow


async def text_of(handler: Any, tool: str, mode: Any = "legacy", **arguments: Any) -> str:
    clear()
    async with Client(URL, elicitation_handler=handler, message_handler=handler.on_message, mode=mode) as client:
        return str((await client.call_tool(tool, arguments)).content[0].text)


def test_a_page_is_asked_for() -> None:
    person = Person()
    assert run(text_of(fastmcp_elicitation_handler(person, server="mail"), "decline_aware")) == "action: accept"
    (request,) = person.requests
    assert (request.mode, request.server) == ("url", "mail") and request.url and request.elicitation_id


def test_a_form_goes_out_checked_and_without_nulls() -> None:
    handler = fastmcp_elicitation_handler(Person({"reason": "tax", "urgent": None}))
    assert run(text_of(handler, "form_tool")) == 'form: accept {"reason": "tax"}'


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_fixed_answer(action: str) -> None:
    assert run(text_of(fastmcp_elicitation_handler(action), "form_tool")) == f"form: {action} null"


def test_an_async_handler() -> None:
    assert run(text_of(fastmcp_elicitation_handler(later), "decline_aware")) == "action: accept"


def test_an_undeclared_mode_is_refused_as_far_as_fastmcp_can() -> None:
    person = Person()
    assert run(text_of(fastmcp_elicitation_handler(person, modes="url"), "form_tool")) == "form refused: -32603"
    assert log("elicit_error")[0]["message"] == "elicitation mode 'form' was not declared by this client"
    assert person.requests == []


def test_what_the_handler_raises_stays_here(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "gopher_mcp_python"):
        assert run(text_of(fastmcp_elicitation_handler(fails), "form_tool")) == "form refused: -32603"
    assert log("elicit_error")[0]["message"] == "the client's elicitation handler failed"
    assert "RuntimeError" in caplog.text and PLANTED not in caplog.text


def test_time_is_up() -> None:
    assert run(text_of(fastmcp_elicitation_handler(never, timeout_ms=50), "decline_aware")) == "action: cancel"


def test_a_round_of_2026_07_28_is_held_until_the_person_has_finished() -> None:
    order: list[str] = []

    async def finished() -> None:
        order.append("finished")

    def agree(request: Any) -> GopherAgentElicitationResponse:
        order.append("agreed")
        return GopherAgentElicitationResponse("accept", finished=finished)

    handler = fastmcp_elicitation_handler(agree)
    assert run(text_of(handler, "input_required", mode="auto", entries=1)) == "actions: accept"
    assert order == ["agreed", "finished"]


def test_a_completion_is_told_once_and_only_for_what_was_asked() -> None:
    told: list[str] = []
    pages: list[Any] = []

    async def body() -> None:
        done = asyncio.Event()

        async def accept(request: Any) -> str:
            pages.append(request)
            return "accept"

        async def complete(elicitation_id: str) -> None:
            told.append(elicitation_id)
            done.set()

        handler = fastmcp_elicitation_handler(accept, complete=complete)
        async with Client(
            URL, elicitation_handler=handler, message_handler=handler.on_message, mode="legacy"
        ) as client:
            calling = asyncio.ensure_future(client.call_tool("elicit_then_slow", {"seconds": 5}))
            while not pages:
                await asyncio.sleep(0.01)
            await asyncio.to_thread(click_allow, pages[0].url)
            await done.wait()
            await asyncio.to_thread(click_allow, pages[0].url)
            calling.cancel()

    run(body())
    assert told == [pages[0].elicitation_id]


def test_the_example() -> None:
    assert "Authorization was not given: cancel" in "".join(example("fastmcp").stdout.splitlines()[-1:])
