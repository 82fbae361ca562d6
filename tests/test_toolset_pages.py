# ruff: noqa: F401, F811
# Fixtures are used by their names.
"""Pages that a person has accepted to visit: an answer of accept is held until they are done, where the request is made
again afterwards (error -32042, and the results of 2026-07-28).
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gopher_mcp_python import GopherAgentElicitationRequest as Request
from gopher_mcp_python import GopherAgentElicitationResponse as Response
from gopher_mcp_python import McpToolset
from gopher_mcp_python.toolset import ElicitationHandlerError, ElicitationRequiredError
from tests.support.servers import click_allow
from tests.support.toolset_places import WITH_URLS, Asked, Way, at, every_way, never, place, places
from tests.support.toolset_servers import MODERN, Place


def again_tool(place: Place) -> str:
    """The tool that is called again after a page was visited."""
    return "input_required" if place.version == MODERN else "error_32042"


class Waiting:
    """What a person does who takes for ever over a page; says whether it was given up."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.withdrawn = 0

    async def __call__(self) -> None:
        self.begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.withdrawn += 1
            raise


async def complete(place: Place, request: Request) -> None:
    """The person presses Allow on the provider's page, and the server tells the client."""
    if place.transport == "http":
        await asyncio.to_thread(click_allow, request.url or "")
    else:
        flow = next(flow for flow in place.scenario.flows.values() if flow.url == request.url)
        assert flow.complete is not None
        await flow.complete()


@at(WITH_URLS, MODERN)
@pytest.mark.parametrize("kind", ["async", "plain"])
def test_the_call_is_made_again_only_when_the_person_is_done(place: Place, kind: str) -> None:
    runs_when_done: list[int] = []

    def done() -> None:
        runs_when_done.append(len(place.scenario.runs()))

    async def done_later() -> None:
        await asyncio.sleep(0.02)
        done()

    answer = Response("accept", finished=done_later if kind == "async" else done)
    place.text(again_tool(place), elicitation_handler=Asked(answer))
    assert runs_when_done == [1] and len(place.scenario.runs()) == 2


@at(WITH_URLS, MODERN)
def test_a_page_that_the_person_gave_up_is_cancelled(place: Place) -> None:
    handler = Asked(Response("accept", finished=lambda: False))
    if place.version == MODERN:
        assert place.text("input_required", elicitation_handler=handler) == "actions: cancel"
    else:
        with pytest.raises(ElicitationRequiredError, match="cancel"):
            place.text("error_32042", elicitation_handler=handler)
        assert place.scenario.runs() == ["error_32042"]


@at(WITH_URLS)
def test_the_servers_notice_ends_the_waiting_too(place: Place) -> None:
    completed: list[str] = []

    async def never_done() -> None:
        await complete(place, handler.requests[0])
        await asyncio.sleep(60)

    handler = Asked(Response("accept", finished=never_done))
    told = place.text("error_32042", elicitation_handler=handler, elicitation_complete_handler=completed.append)
    assert "ada@example.com" in told and completed == [handler.requests[0].elicitation_id]


@at(WITH_URLS)
@pytest.mark.parametrize("kind", ["async", "plain"])
def test_notices_of_unknown_and_finished_ids_are_ignored(place: Place, kind: str) -> None:
    completed: list[str] = []
    told = asyncio.Event()

    async def answer(request: Request) -> str:
        place.scenario.released.set()
        await told.wait()
        return "accept"

    def seen(elicitation_id: str) -> None:
        completed.append(elicitation_id)
        told.set()

    async def seen_later(elicitation_id: str) -> None:
        seen(elicitation_id)

    handler = Asked(answer)
    complete_handler = seen_later if kind == "async" else seen
    text = place.text("until_released", elicitation_handler=handler, elicitation_complete_handler=complete_handler)
    assert text == "action: accept" and completed == [handler.requests[0].elicitation_id]


@at(WITH_URLS, MODERN)
def test_time_over_the_page_is_not_the_calls_time(place: Place) -> None:
    answer = Response("accept", finished=lambda: asyncio.sleep(0.5))

    async def body(toolset: McpToolset) -> str:
        return str(await toolset.call_tool(again_tool(place), timeout=0.3))

    told = place.run(body, elicitation_handler=Asked(answer))
    assert ("actions: accept" if place.version == MODERN else "ada@example.com") in told


@at(WITH_URLS, MODERN)
def test_the_limit_of_a_question_covers_the_page_too(place: Place) -> None:
    waiting = Waiting()
    handler = Asked(Response("accept", finished=waiting))
    if place.version == MODERN:
        assert place.text("input_required", elicitation_handler=handler, elicitation_timeout=0.2) == "actions: cancel"
    else:
        with pytest.raises(ElicitationRequiredError, match="cancel"):
            place.text("error_32042", elicitation_handler=handler, elicitation_timeout=0.2)
    assert waiting.withdrawn == 1


@at(WITH_URLS, MODERN)
def test_a_page_is_given_up_with_its_call(place: Place) -> None:
    waiting = Waiting()

    async def body(toolset: McpToolset) -> None:
        calling = asyncio.create_task(toolset.call_tool(again_tool(place)))
        await waiting.begun.wait()
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        while not waiting.withdrawn:
            await asyncio.sleep(0.005)
        assert (await toolset.call_tool("plain"))["output"] == "plain: ok"

    place.run(body, elicitation_handler=Asked(Response("accept", finished=waiting)))
    assert len(place.scenario.runs()) == 2  # the refused one, and plain


@at(WITH_URLS, MODERN)
def test_what_goes_wrong_over_the_page_reaches_the_caller(place: Place) -> None:
    def broken() -> None:
        raise ValueError("the window is gone")

    with pytest.raises(ElicitationHandlerError) as caught:
        place.text(again_tool(place), elicitation_handler=Asked(Response("accept", finished=broken)))
    assert isinstance(caught.value.__cause__, ValueError)
    assert len(place.scenario.runs()) == 1


@at(WITH_URLS)
def test_a_notice_that_comes_before_the_answer_counts(place: Place) -> None:
    async def finish_first(request: Request) -> Response:
        await complete(place, request)
        await asyncio.sleep(0.1)
        return Response("accept", finished=Waiting())

    assert "ada@example.com" in place.text("error_32042", elicitation_handler=Asked(finish_first), limit=8)


@at(WITH_URLS)
@every_way
def test_a_required_url_is_withdrawn_with_its_request(place: Place, way: Way) -> None:
    handler = Asked(never)

    async def body(toolset: McpToolset) -> None:
        calling = asyncio.create_task(way(toolset, "error_32042", {}))
        await handler.wait_open()
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        while handler.open:
            await asyncio.sleep(0.005)

    place.run(body, elicitation_handler=handler)
    assert handler.withdrawn == 1 and place.scenario.runs() == ["error_32042"]
