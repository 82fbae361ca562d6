# ruff: noqa: F401, F811
# Fixtures are used by their names.
"""McpToolset against real servers of the SDK at three protocol versions, in memory and over HTTP: what is
declared, what is answered, what comes back.

At 2025-06-18 servers ask with forms only. At 2026-07-28 they ask through their results, where the older ones ask on the
way back; the scenario server has a tool for each way.
"""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

from gopher_mcp_python import GopherAgentElicitationRequest as Request
from gopher_mcp_python import GopherAgentElicitationResponse as Response
from gopher_mcp_python import McpToolset
from gopher_mcp_python.forms import read_form
from gopher_mcp_python.toolset import CallTimeoutError, ServerError, ToolsetError
from tests.support.choices import FIVE_CHOICES
from tests.support.toolset_places import WITH_URLS, Asked, at, form_tool, place, places, url_tool
from tests.support.toolset_servers import HANDSHAKE, MODERN, PICTURE, VERSIONS, Place

TEXT = {"content": [{"type": "text", "text": "t"}], "resultType": "complete"}
SERVER_INFO = {"io.modelcontextprotocol/serverInfo": {"name": "scenario", "version": "1"}}


# ---- what is declared, what is answered ----------------------------------------------------------------------------


@at(*VERSIONS)
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Response("accept", {"reason": "audit", "urgent": None}), 'accept {"reason": "audit"}'),
        (Response("decline", {"reason": "mine"}), "decline null"), ("decline", "decline null"),
        ("cancel", "cancel null"),
    ],
)  # fmt: skip
def test_answers_to_a_form(place: Place, answer: Any, told: str) -> None:
    handler = Asked(answer)
    assert place.text(form_tool(place), elicitation_handler=handler) == f"form: {told}"
    (request,) = handler.requests
    assert (request.mode, request.tool, request.url) == ("form", form_tool(place), None)
    assert (request.requested_schema or {})["required"] == ["reason"]
    assert {run["version"] for run in place.scenario.logged("run")} == {place.version}


@at(WITH_URLS, MODERN)
def test_the_five_choices_of_the_conformance_suite(place: Place) -> None:
    """Its scenario elicitation-sep1330-enums has these fields, and this answer to them."""
    answer = {
        "untitledSingle": "option1", "titledSingle": "value1", "legacyEnum": "opt1",
        "untitledMulti": ["option1", "option2"], "titledMulti": ["value1", "value2"],
    }  # fmt: skip
    drawn: dict[str, Any] = {}

    def fill_in(request: Request) -> Response:
        for field in read_form(request.requested_schema or {}).fields:
            drawn[field.name] = (field.kind, field.options[0].value, field.options[0].title)
        return Response("accept", answer)

    schema = {"type": "object", "properties": FIVE_CHOICES, "required": list(FIVE_CHOICES)}
    told = place.text(form_tool(place), {"schema": schema}, elicitation_handler=fill_in)
    assert json.loads(told.removeprefix("form: accept ")) == answer
    assert drawn == {
        "untitledSingle": ("choice", "option1", "option1"), "titledSingle": ("choice", "value1", "First Option"),
        "legacyEnum": ("choice", "opt1", "Option One"), "untitledMulti": ("choices", "option1", "option1"),
        "titledMulti": ("choices", "value1", "First Option"),
    }  # fmt: skip


@at(WITH_URLS, MODERN)
@pytest.mark.parametrize("answer", ["accept", "decline", "cancel", Response("decline", {"url": "kept"})])
def test_answers_to_a_url(place: Place, answer: Any) -> None:
    handler = Asked(answer)
    action = answer if isinstance(answer, str) else answer.action
    assert place.text(url_tool(place), elicitation_handler=handler).endswith(f": {action}")
    assert place.scenario.actions() == [action] and place.scenario.logged("answer")[0]["content"] is None
    (request,) = handler.requests
    assert request.mode == "url" and request.url == next(iter(place.scenario.flows.values())).url
    assert (request.elicitation_id is None) == (place.version == MODERN)


@at(*VERSIONS)
@pytest.mark.parametrize(
    ("modes", "declared"),
    [
        (None, {"form": {}, "url": {}}), ("url", {"url": {}}), (["form"], {"form": {}}),
        ({"url", "form"}, {"form": {}, "url": {}}),
    ],
)  # fmt: skip
def test_exactly_the_modes_asked_for_are_declared_beside_the_rest(place: Place, modes: Any, declared: Any) -> None:
    place.text("plain")
    plain = {entry["method"]: entry["capabilities"] or {} for entry in place.scenario.logged("hello")}
    place.scenario.clear()
    place.text("plain", elicitation_handler=Asked(), modes=modes)
    asking = {entry["method"]: entry["capabilities"] for entry in place.scenario.logged("hello")}
    assert plain and not any("elicitation" in capabilities for capabilities in plain.values())
    assert asking == {method: {**rest, "elicitation": declared} for method, rest in plain.items()}


@at(*VERSIONS)
def test_roots_survive_a_handler(place: Place) -> None:
    for options in ({}, {"elicitation_handler": Asked()}):
        told = place.text("roots", roots=["file:///srv/a", "file:///srv/b"], **options)
        assert json.loads(told) == ["file:///srv/a", "file:///srv/b"]
    assert all("roots" in entry["capabilities"] for entry in place.scenario.logged("hello"))


@at(*HANDSHAKE)
def test_a_mode_that_was_not_declared_is_invalid_params(place: Place) -> None:
    handler = Asked()
    assert place.text("form_tool", elicitation_handler=handler, modes="url") == "form refused: -32602"
    params = {"mode": "url", "message": "m", "url": "https://x.example/", "elicitationId": "e"}
    told = place.text("raw_elicit", {"params": params}, elicitation_handler=handler, modes="form")
    assert told.startswith("error -32602") and not handler.requests


@at(MODERN)
def test_a_mode_that_was_not_declared_in_a_result_ends_the_call(place: Place) -> None:
    for name, modes in (("input_required", "form"), ("input_required_form", "url")):
        handler = Asked()
        with pytest.raises(ToolsetError, match="not declared"):
            place.text(name, elicitation_handler=handler, modes=modes)
        assert not handler.requests
    assert place.scenario.runs() == ["input_required", "input_required_form"]


@at(*VERSIONS)
def test_without_a_handler_nobody_declines_for_anybody(place: Place) -> None:
    if place.version == MODERN:
        with pytest.raises(ToolsetError, match="not declared"):
            place.text(form_tool(place))
    else:
        assert place.text(form_tool(place)) == "form refused: -32602"
    assert not place.scenario.actions() and len(place.scenario.runs()) == 1


@at(WITH_URLS)
@pytest.mark.parametrize(
    ("handler", "action"),
    [
        ("cancel", "cancel"), ("decline", "decline"), ({"handler": "decline"}, "decline"),
        ({"handler": lambda request: "accept", "modes": "url"}, "accept"), (lambda request: "accept", "accept"),
    ],
)  # fmt: skip
def test_handlers_given_as_words_options_or_functions(place: Place, handler: Any, action: str) -> None:
    assert place.text("decline_aware", elicitation_handler=handler) == f"action: {action}"


@at(WITH_URLS)
def test_a_plain_function_may_wait_and_holds_nothing_up(place: Place) -> None:
    gate = threading.Event()

    def wait(request: Request) -> str:
        assert gate.wait(15)
        return "accept"

    async def body(toolset: McpToolset) -> None:
        asking = asyncio.create_task(toolset.call_tool("decline_aware"))
        assert await toolset.call_tool("plain") == {"output": "plain: ok"}
        gate.set()
        assert await asking == {"output": "action: accept"}

    place.run(body, elicitation_handler=wait)


# ---- results -------------------------------------------------------------------------------------------------------

META = {
    "example.com/trace": {"id": 7, "tags": ["a", None, {"b": None}]}, "": [[]], "f": 0.1, "big": 2**70, "é\u2028": "😀",
}  # fmt: skip
KINDS: dict[str, dict[str, Any]] = {
    "text": {"output": "hello"},
    "error": {"error": "hello", "isError": True},
    "structured": {"output": {"temperature": 22.5}, "content": [{"type": "text", "text": "hello"}]},
    "empty": {"output": ""},
    "image": {"output": "", "content": [{"type": "image", "data": PICTURE, "mimeType": "image/png"}]},
    "audio": {"output": "", "content": [{"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}]},
    "resource_link": {
        "output": "", "content": [{"type": "resource_link", "name": "report", "uri": "file:///report.txt"}],
    },
    "embedded": {
        "output": "", "content": [{"type": "resource", "resource": {"uri": "file:///a.txt", "text": "inside"}}],
    },
}  # fmt: skip


@at(*VERSIONS)
def test_meta_of_every_kind_of_result(place: Place) -> None:
    stamp = SERVER_INFO if place.version == MODERN else {}  # the server's own, on every result

    async def body(toolset: McpToolset) -> None:
        for kind, expected in KINDS.items():
            response = await toolset.call_tool("kind", {"kind": kind, "meta": META})
            assert response == {**expected, "_meta": {**META, **stamp}}, kind
            without = await toolset.call_tool("kind", {"kind": kind})
            assert without == {**expected, **({"_meta": stamp} if stamp else {})}, kind

    place.run(body)


@at(*VERSIONS)
def test_meta_is_what_came_over_the_wire(place: Place) -> None:
    """Nothing of the server's SDK is between these results and the wire."""
    deep: Any = None
    for _ in range(60):
        deep = {"x": [deep]}
    odd = [{}, {"a": None}, {"a": {"b": None}}, {"progressToken": 5}, {"progressToken": None}, {"__proto__": {"x": 1}},
           {"n": -0.0, "i": 10**30, "e": 1e-300, "z": 0}, {"_meta": {"_meta": {}}}, {"deep": deep}, {"": ""},
           {"t": "\x00\x7f \t\n"}, {"isError": True, "output": "no"}, {str(n): n for n in range(500)}]  # fmt: skip

    async def body(toolset: McpToolset) -> None:
        for meta in odd:
            for error in (False, True):
                wire = {**TEXT, "isError": error, "_meta": meta}
                response = await toolset.call_tool("raw_result", {"result": wire})
                assert json.dumps(response.pop("_meta")) == json.dumps(meta)
                assert response == ({"error": "t", "isError": True} if error else {"output": "t"})
        blocks = [{"type": "text", "text": "t", "_meta": {"inner": [None]}}]  # the block's own, which is no result's
        response = await toolset.call_tool("raw_result", {"result": {**TEXT, "content": blocks}})
        assert response == {"output": "t", "content": blocks}

    place.run(body)


@at(*VERSIONS)
def test_texts_are_joined_and_other_blocks_kept_in_order_and_whole(place: Place) -> None:
    link = {"type": "resource_link", "name": "r", "uri": "file:///r", "_meta": {"n": None}, "size": 3,
            "annotations": {"audience": ["user"], "priority": 0.2}}  # fmt: skip
    picture = {"type": "image", "data": PICTURE, "mimeType": "image/png", "_meta": {"k": [None]}}
    blocks = [picture, {"type": "text", "text": "a"}, link, {"type": "text", "text": ""}, {"type": "text", "text": "b"}]

    async def body(toolset: McpToolset) -> None:
        wire = {"content": blocks, "resultType": "complete"}
        response = await toolset.call_tool("raw_result", {"result": wire})
        assert response == {"output": "a\n\nb", "content": [picture, link]}
        structured = {**wire, "structuredContent": {"n": None, "list": []}}
        response = await toolset.call_tool("raw_result", {"result": structured})
        assert response == {"output": {"n": None, "list": []}, "content": blocks}
        repeated = {**TEXT, "content": [{"type": "text", "text": '{"n": 1}'}], "structuredContent": {"n": 1}}
        assert await toolset.call_tool("raw_result", {"result": repeated}) == {"output": {"n": 1}}

    place.run(body)


@at(*VERSIONS)
def test_the_sdks_own_result_and_the_servers_errors(place: Place) -> None:
    async def body(toolset: McpToolset) -> None:
        result = await toolset.call("kind", {"kind": "error", "meta": META})
        assert result.is_error and result.content[0].text == "hello" and result.meta is not None  # type: ignore[union-attr]
        assert result.meta["example.com/trace"] == META["example.com/trace"]
        with pytest.raises(ServerError, match="the server broke") as caught:
            await toolset.call_tool("protocol_error")
        assert caught.value.code == -32603

    place.run(body)


@at(*VERSIONS)
def test_progress_is_told_while_the_call_runs(place: Place) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    async def later(*step: Any) -> None:
        told.append(step)

    async def body(toolset: McpToolset) -> None:
        for seen in (later, lambda *step: told.append(step)):
            told.clear()
            assert (await toolset.call_tool("progress", on_progress=seen))["output"] == "done"
            assert told == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]

    place.run(body)


@at(*VERSIONS)
def test_a_call_that_is_given_up_is_cancelled_at_the_server(place: Place) -> None:
    async def body(toolset: McpToolset) -> None:
        calling = asyncio.create_task(toolset.call_tool("slow", {"seconds": 60}))
        await place.scenario.wait_for("run")
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        await place.scenario.wait_for("tool_cancelled")
        with pytest.raises(CallTimeoutError):
            await toolset.call_tool("slow", {"seconds": 60}, timeout=0.1)
        await place.scenario.wait_for("tool_cancelled", 2)
        assert (await toolset.call_tool("plain"))["output"] == "plain: ok"

    place.run(body)
