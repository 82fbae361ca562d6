# ruff: noqa: F401, F811
# Fixtures are used by their names.
"""Requests that are made again once somebody has answered: error -32042 of the older protocols and the results of
2026-07-28 that require input; for tools, prompts and resources.
"""

from __future__ import annotations

import asyncio
import json
import urllib.parse
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from gopher_mcp_python import GopherAgentElicitationRequest as Request
from gopher_mcp_python import GopherAgentElicitationResponse as Response
from gopher_mcp_python import McpToolset
from gopher_mcp_python.toolset import ElicitationRequiredError, ToolsetError
from tests.support.servers import click_allow
from tests.support.toolset_places import WITH_URLS, Asked, at, place, places
from tests.support.toolset_servers import MODERN, Place

# ---- error -32042, for tools, prompts and resources ----------------------------------------------------------------


async def a_tool(toolset: McpToolset, name: str, arguments: dict[str, Any]) -> str:
    return str((await toolset.call_tool(name, arguments))["output"])


async def a_prompt(toolset: McpToolset, name: str, arguments: dict[str, Any]) -> str:
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in arguments.items()}
    return str((await toolset.get_prompt(name, texts)).messages[0].content.text)  # type: ignore[union-attr]


async def a_resource(toolset: McpToolset, name: str, arguments: dict[str, Any]) -> str:
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in arguments.items()}
    uri = f"scenario://{name}?{urllib.parse.urlencode(texts)}"
    return str((await toolset.read_resource(uri)).contents[0].text)  # type: ignore[union-attr]


Way = Callable[[McpToolset, str, dict[str, Any]], Awaitable[str]]
every_way = pytest.mark.parametrize("way", [a_tool, a_prompt, a_resource])


def get(place: Place, way: Way, name: str, arguments: dict[str, Any] | None = None, **options: Any) -> str:
    return place.run(lambda toolset: way(toolset, name, arguments or {}), **options)


@at(WITH_URLS, MODERN)
@every_way
def test_required_urls_are_asked_for_and_the_request_made_again(place: Place, way: Way) -> None:
    handler = Asked()
    told = get(place, way, "error_32042", {"rounds": 3, "urls": 2}, elicitation_handler=handler)
    assert "ada@example.com" in told
    assert len({request.url for request in handler.requests}) == 6 and len(place.scenario.runs()) == 4
    assert {request.tool for request in handler.requests} == {"error_32042" if way is a_tool else None}
    assert [request.url for request in handler.requests] == [flow.url for flow in place.scenario.flows.values()]


@at(WITH_URLS, transports=("http",))
@every_way
def test_required_urls_inside_an_http_error(place: Place, way: Way) -> None:
    handler = Asked()
    assert "ada@example.com" in get(place, way, "error_32042_wrapped", {"rounds": 2}, elicitation_handler=handler)
    assert len(handler.requests) == 2 and len(place.scenario.runs()) == 3


@at(WITH_URLS)
@every_way
def test_required_urls_end_after_five_rounds_or_at_the_same_url(place: Place, way: Way) -> None:
    handler = Asked()
    with pytest.raises(ElicitationRequiredError, match="5 times"):
        get(place, way, "error_32042_endless", elicitation_handler=handler)
    assert len(handler.requests) == 5 == len(place.scenario.runs())
    place.scenario.clear()
    with pytest.raises(ElicitationRequiredError, match="same URL"):
        get(place, way, "error_32042_forever", elicitation_handler=(again := Asked()))
    assert len(again.requests) == 1 and len(place.scenario.runs()) == 2


@at(WITH_URLS)
@every_way
def test_required_urls_that_are_refused_or_not_served(place: Place, way: Way) -> None:
    for options, told in (
        ({"elicitation_handler": Asked("decline")}, "decline"), ({"elicitation_handler": "cancel"}, "cancel"),
        ({"elicitation_handler": Asked(), "modes": "form"}, "switched off"), ({}, "switched off"),
    ):  # fmt: skip
        place.scenario.clear()
        with pytest.raises(ElicitationRequiredError, match=told):
            get(place, way, "error_32042", **options)
        assert place.scenario.runs() == ["error_32042"]


@at(WITH_URLS)
@every_way
def test_malformed_lists_of_required_urls_fail_once_and_clearly(place: Place, way: Way) -> None:
    handler = Asked()
    told = {
        "missing": "missing, empty or not a list", "none": "missing, empty", "null": "missing, empty",
        "empty": "missing, empty", "not_a_list": "not a list", "not_objects": "not an object",
        "snake": "no elicitationId", "blank_id": "no elicitationId", "blank_url": "no url", "form": "not in URL mode",
    }  # fmt: skip

    async def body(toolset: McpToolset) -> None:
        for kind, text in told.items():
            place.scenario.clear()
            with pytest.raises(ElicitationRequiredError, match=text):
                await way(toolset, "error_32042_malformed", {"kind": kind})
            assert len(place.scenario.runs()) == 1, kind

    place.run(body, elicitation_handler=handler)
    assert not handler.requests


# ---- accept in URL mode is held until the page is finished ---------------------------------------------------------


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
    tool = "input_required" if place.version == MODERN else "error_32042"
    runs_when_done: list[int] = []

    def done() -> None:
        runs_when_done.append(len(place.scenario.runs()))

    async def done_later() -> None:
        await asyncio.sleep(0.02)
        done()

    answer = Response("accept", finished=done_later if kind == "async" else done)
    place.text(tool, elicitation_handler=Asked(answer))
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

    async def never() -> None:
        await complete(place, handler.requests[0])
        await asyncio.sleep(60)

    handler = Asked(Response("accept", finished=never))
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


# ---- 2026-07-28: questions in results ------------------------------------------------------------------------------

STATES = ["", " ", "\x00", "\u2028😀é", '{"a": 1} ', "null", "x" * 70_000, None, "%2F+\\u0041"]


@at(MODERN)
@every_way
def test_state_is_echoed_byte_for_byte_with_all_answers_and_a_new_id(place: Place, way: Way) -> None:
    handler = Asked(lambda request: _number(request))
    place.scenario.states[""] = STATES
    answers = json.loads(get(place, way, "in_rounds", {"forms": 2}, elicitation_handler=handler))
    assert [entry["state"] for entry in place.scenario.logged("round")] == [None, *STATES]
    assert answers == [
        {f"{n}.{at}": {"action": "accept", "content": {"n": 100 * n + at}} for at in (0, 1)} for n in range(len(STATES))
    ]
    assert handler.messages == [f" {n} {at}" for n in range(len(STATES)) for at in (0, 1)] and handler.most_open == 1
    if way is a_tool:
        ids = [entry["id"] for entry in place.scenario.logged("round")]
        assert len(set(ids)) == len(ids)


async def _number(request: Request) -> Response:
    _, *numbers = (request.message or "").rsplit(" ", 2)
    return Response("accept", {"n": 100 * int(numbers[0]) + int(numbers[1])})


@at(MODERN)
def test_nothing_leaks_to_a_parallel_call(place: Place) -> None:
    handler = Asked(_number)
    states: dict[str, list[str | None]] = {name: [f"{name}-{n}" for n in range(4)] for name in "abcdef"}

    async def body(toolset: McpToolset) -> None:
        calls = (a_tool(toolset, "in_rounds", {"name": name}) for name in states)
        for name, text in zip(states, await asyncio.gather(*calls), strict=True):
            expected = [{f"{name}{n}.0": {"action": "accept", "content": {"n": 100 * n}}} for n in range(4)]
            assert json.loads(text) == expected

    place.scenario.states.update(states)
    place.run(body, elicitation_handler=handler)
    for name, sent in states.items():
        seen = [entry["state"] for entry in place.scenario.logged("round") if entry["name"] == name]
        assert seen == [None, *sent]
    assert handler.most_open == 1 and len(handler.requests) == 24


@at(MODERN)
@every_way
def test_a_state_without_a_question_is_sent_back(place: Place, way: Way) -> None:
    place.scenario.states[""] = ["later"]
    told = get(place, way, "in_rounds", {"forms": 0}, elicitation_handler=Asked())
    assert json.loads(told) == [{}]
    assert [entry["state"] for entry in place.scenario.logged("round")] == [None, "later"]


@at(MODERN)
@every_way
def test_a_server_that_never_stops_asking_is_stopped(place: Place, way: Way) -> None:
    handler = Asked("decline")
    place.scenario.states[""] = ["s"] * 50
    with pytest.raises(ToolsetError, match="more than 10 times"):
        get(place, way, "in_rounds", elicitation_handler=handler)
    assert len(handler.requests) == 10
