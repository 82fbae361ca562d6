# ruff: noqa: F401, F811
# Fixtures are used by their names.
"""Requests that are made again once somebody has answered: error -32042 of the older protocols and the results of
2026-07-28 that require input; for tools, prompts and resources.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from gopher_mcp_python import GopherAgentElicitationRequest as Request
from gopher_mcp_python import GopherAgentElicitationResponse as Response
from gopher_mcp_python import McpToolset
from gopher_mcp_python.toolset import ElicitationRequiredError, ToolsetError
from tests.support.toolset_places import WITH_URLS, Asked, Way, a_tool, at, every_way, get, place, places
from tests.support.toolset_servers import BOTH, MODERN, Place

# ---- error -32042, for tools, prompts and resources ----------------------------------------------------------------


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


@at(WITH_URLS, transports=("http",))
@pytest.mark.parametrize("status", [400, 401, 404, 409, 428, 500, 502])
def test_required_urls_inside_any_http_error(place: Place, status: int) -> None:
    place.scenario.gateway_status = status
    handler = Asked()
    assert "ada@example.com" in get(place, a_tool, "error_32042_wrapped", {"rounds": 2}, elicitation_handler=handler)
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
        ({"elicitation_handler": Asked(), "modes": "form"}, "no handler here"), ({}, "no handler here"),
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


# ---- servers of both generations -----------------------------------------------------------------------------------


@at(BOTH)
@every_way
def test_each_request_is_made_where_its_question_can_be_asked(place: Place, way: Way) -> None:
    async def body(toolset: McpToolset) -> list[str]:
        return [await way(toolset, name, {}) for name in ("decline_aware", "input_required") * 2]

    assert place.run(body, elicitation_handler=Asked()) == ["action: accept", "actions: accept"] * 2
    runs = [(run["tool"], run["version"]) for run in place.scenario.logged("run")]
    # Entered once too early, before the session at 2026-07-28 was known to be needed; it had asked nobody then.
    assert runs.count(("input_required", WITH_URLS)) == 1 and runs.count(("decline_aware", WITH_URLS)) == 2
    assert runs.count(("input_required", MODERN)) == 4 and ("decline_aware", MODERN) not in runs
