# ruff: noqa: F401, F811
# Fixtures are used by their names.
"""Forms from a server's schema to the content on the wire: odd ones, hostile ones, and what is sent of an answer.

Nothing of the server's SDK shapes a schema here or reads an answer: both are as the wire has them.
"""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from gopher_mcp_python import GopherAgentElicitationRequest as Request
from gopher_mcp_python import GopherAgentElicitationResponse as Response
from gopher_mcp_python import McpToolset
from gopher_mcp_python.forms import FormContentError
from gopher_mcp_python.toolset import ElicitationHandlerError, ToolsetError
from tests.support.toolset_places import WITH_URLS, Asked, at, place, places
from tests.support.toolset_servers import MODERN, Place

# Each way of asking and each transport once: the rest makes no difference to a form.
both_ways = pytest.mark.parametrize("place", [("http", WITH_URLS), ("memory", MODERN)], indirect=True, ids="-".join)
STRING: dict[str, Any] = {"type": "string"}
ODD_NAMES = ("__proto__", "__class__", "class", "", "a b", "a.b", "constructor", "é\u2028", "0")
PRIORITY = {"type": "string", "enum": ["low", "high"]}


def form(required: tuple[str, ...] = (), defs: Any = None, **properties: Any) -> dict[str, Any]:
    more = {"$defs": defs} if defs else {}
    return {"type": "object", "properties": properties, "required": list(required), **more}


async def ask(toolset: McpToolset, place: Place, schema: Any) -> Any:
    """The answer to a form as it came over the wire, asked for in the way of the place's version."""
    params = {"mode": "form", "message": "Please fill in", "requestedSchema": schema}
    if place.version != MODERN:
        told = (await toolset.call_tool("raw_elicit", {"params": params}))["output"]
        return json.loads(told) if told.startswith("{") else told
    asked = {"q": {"method": "elicitation/create", "params": params}}
    wire = {"resultType": "input_required", "inputRequests": asked}
    return json.loads((await toolset.call_tool("raw_result", {"result": wire}))["output"])["q"]


def filled_in(place: Place, schema: Any, content: Any) -> Any:
    async def body(toolset: McpToolset) -> Any:
        return await ask(toolset, place, schema)

    answer = place.run(body, elicitation_handler=Asked(Response("accept", content)))
    assert answer["action"] == "accept"
    return answer["content"]


@both_ways
@pytest.mark.parametrize(
    ("schema", "content", "sent"),
    [
        pytest.param(form(), None, {}, id="confirmation"),
        pytest.param(form(a=STRING, b={"type": "number"}, c={"type": "boolean"}), {}, {}, id="untouched"),
        pytest.param(form(a=STRING, n={"type": "number"}), {"a": None, "n": None}, {}, id="none is left out"),
        pytest.param(form(("a",), a=STRING), {"a": ""}, {"a": ""}, id="explicit empty text"),
        pytest.param(form(p={"$ref": "#/$defs/P"}, defs={"P": PRIORITY}), {"p": "high"}, {"p": "high"}, id="ref"),
        pytest.param(
            form(x={"oneOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]}), {"x": "b"}, {"x": "b"},
            id="no type",
        ),
        pytest.param(
            form(f={"type": "array", "items": {"enum": ["apple", "banana"]}}), {"f": ["banana"]}, {"f": ["banana"]},
            id="items without a type",
        ),
        pytest.param(
            form(m={"type": "array", "items": PRIORITY, "minItems": 1}), {}, {}, id="optional choices, none picked"
        ),
        pytest.param(form(t={"anyOf": [STRING, {"type": "null"}]}), {"t": "x"}, {"t": "x"}, id="or null"),
        pytest.param(form(t={"anyOf": [STRING, {"type": "null"}]}), {"t": None}, {}, id="or null, null"),
        pytest.param(
            form(n={"type": "number"}, i={"type": "integer"}), {"n": 1.5, "i": 90071992547409910},
            {"n": 1.5, "i": 90071992547409910}, id="exact numbers",
        ),
        pytest.param(form(i={"type": "integer"}), {"i": 3.0}, {"i": 3}, id="whole number"),
        pytest.param(
            form(**dict.fromkeys(ODD_NAMES, STRING)), dict.fromkeys(ODD_NAMES, "v"), dict.fromkeys(ODD_NAMES, "v"),
            id="odd names",
        ),
        pytest.param(form(s={**STRING, "pattern": "b"}), {"s": "abc"}, {"s": "abc"}, id="pattern is not anchored"),
        pytest.param(form(s={**STRING, "pattern": r"^\p{L}+$"}), {"s": "Žluť"}, {"s": "Žluť"}, id="pattern of letters"),
        pytest.param(
            form(d={**STRING, "format": "date"}, t={**STRING, "format": "date-time"}),
            {"d": "2028-02-29", "t": "2026-01-31T10:00:00Z"}, {"d": "2028-02-29", "t": "2026-01-31T10:00:00Z"},
            id="dates",
        ),
        pytest.param(form(x={**STRING, "format": "zebra"}), {"x": "?"}, {"x": "?"}, id="unknown format"),
        pytest.param(form(x={**STRING, "maxLength": 2}), {"x": "😀😀"}, {"x": "😀😀"}, id="characters"),
    ],
)  # fmt: skip
def test_what_is_sent_of_an_answer(place: Place, schema: Any, content: Any, sent: Any) -> None:
    received = filled_in(place, schema, content)
    assert json.dumps(received) == json.dumps(sent)


@both_ways
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ({**STRING, "pattern": "^abc$"}, "abc\n"), ({**STRING, "format": "date"}, "20260131"),
        ({**STRING, "format": "date-time"}, "2026-01-31"), ({**STRING, "format": "uri"}, "no uri"),
        ({**STRING, "minLength": 2}, "😀"), ({"type": "number"}, float("nan")), ({"type": "number"}, float("-inf")),
        ({"type": "integer"}, 1.5), ({"type": "integer"}, True), ({"type": "boolean"}, 0), (STRING, 1),
        (PRIORITY, "High"), ({"type": "array", "items": PRIORITY, "maxItems": 1}, ["low", "high"]),
        ({"$ref": "#/$defs/P"}, "medium"),
    ],
)  # fmt: skip
def test_a_wrong_answer_never_leaves(place: Place, field: Any, value: Any) -> None:
    with pytest.raises(ElicitationHandlerError) as caught:
        filled_in(place, form(("x",), defs={"P": PRIORITY}, x=field), {"x": value})
    assert isinstance(caught.value.__cause__, FormContentError) and set(caught.value.__cause__.errors) == {"x"}
    assert not place.scenario.actions()


def _nested(depth: int) -> Any:
    inner: Any = STRING
    for _ in range(depth):
        inner = {"anyOf": [inner]}
    return inner


HOSTILE = {
    "no object": {"type": "array", "items": STRING},
    "deep": form(x=_nested(50)),
    "refs in a ring": form(x={"$ref": "#/$defs/A"}, defs={"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}),
    "a ref into the network": form(x={"$ref": "http://127.0.0.1:9/schema.json"}),
    "a ref to nowhere": form(x={"$ref": "#/$defs/Nothing"}),
    "too many options": form(x={**STRING, "enum": [str(number) for number in range(10_000)]}),
    "too many fields": form(**{f"f{number}": STRING for number in range(10_000)}),
    "a field that is no schema": form(x=7),
    "a broken pattern": form(x={**STRING, "pattern": "(("}),
    "an object in a form": form(("x",), x={"type": "object", "properties": {"y": STRING}}),
    "properties in a list": {"type": "object", "properties": [STRING]},
    "required without a field": form(("y",), x=STRING),
}


@at(WITH_URLS, MODERN)
def test_a_hostile_form_is_shown_to_nobody_and_ends_soon(place: Place) -> None:
    handler = Asked(Response("accept", {}))

    async def body(toolset: McpToolset) -> None:
        for kind, schema in HOSTILE.items():
            begin = time.monotonic()
            if place.version == MODERN:
                with pytest.raises(ToolsetError):
                    await ask(toolset, place, schema)
            else:
                assert str(await ask(toolset, place, schema)).startswith("error -32602"), kind
            assert time.monotonic() - begin < 5 and not handler.requests, kind
        assert (await toolset.call_tool("plain"))["output"] == "plain: ok"

    place.run(body, elicitation_handler=handler, limit=60)


@at(WITH_URLS, MODERN)
def test_a_pattern_that_never_ends_is_ended(place: Place) -> None:
    begin = time.monotonic()
    with pytest.raises(ElicitationHandlerError) as caught:
        filled_in(place, form(x={**STRING, "pattern": "^(a+)+$"}), {"x": "a" * 5000 + "!"})
    assert isinstance(caught.value.__cause__, ValueError) and time.monotonic() - begin < 10
