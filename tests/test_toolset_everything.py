"""The toolset against server-everything, the protocol's own reference server, which nobody here wrote."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from gopher_mcp_python import GopherAgentElicitationRequest, GopherAgentElicitationResponse, McpToolset
from gopher_mcp_python.forms import FormContentError, read_form
from gopher_mcp_python.toolset import ElicitationHandlerError, ElicitationRequiredError
from tests.support import everything
from tests.support.everything import Everything
from tests.support.toolset_servers import using

ALL_13 = {
    "name": "Ada Lovelace", "check": True, "firstLine": "", "email": "ada@example.com",
    "homepage": "https://ada.example/home?x=1#top", "birthdate": "1815-12-10", "integer": 100, "number": 0.5,
    "untitledSingleSelectEnum": "Phoebe", "untitledMultipleSelectEnum": ["Bass", "Guitar", "Drums"],
    "titledSingleSelectEnum": "hero-3", "titledMultipleSelectEnum": ["fish-3"], "legacyTitledEnum": "pet-5",
}  # fmt: skip
FORM, URL = "trigger-elicitation-request", "trigger-url-elicitation"
PAGE = "https://login.example/device?user_code=AB-12"
PREREQUISITE = "https://modelcontextprotocol.io"


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Everything]:
    server = Everything("streamableHttp", tmp_path_factory.mktemp("everything") / "log")
    yield server
    server.close()


@pytest.fixture(scope="module")
def sse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Everything]:
    server = Everything("sse", tmp_path_factory.mktemp("everything") / "log")
    yield server
    server.close()


class Person:
    """A handler that gives one answer and remembers what it was asked."""

    def __init__(self, action: str, content: dict[str, Any] | None = None) -> None:
        self.asked: list[GopherAgentElicitationRequest] = []
        self._answer = GopherAgentElicitationResponse(action, content)

    def __call__(self, request: GopherAgentElicitationRequest) -> GopherAgentElicitationResponse:
        self.asked.append(request)
        return self._answer


def call(connection: Any, name: str, arguments: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    async def body(toolset: McpToolset) -> dict[str, Any]:
        return await toolset.call_tool(name, arguments)

    return using(connection, body, **options)


def sent(response: dict[str, Any]) -> dict[str, Any]:
    """What came to the server: its tools tell the raw answer."""
    told = re.search(r"Raw result: (\{.*\})", response["output"], re.DOTALL)
    assert told, response
    raw: dict[str, Any] = json.loads(told[1])
    return raw


# ---- lists ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "asking"),
    [
        ({}, set()),
        ({"elicitation_handler": "cancel"}, {FORM, URL}),
        ({"elicitation_handler": "cancel", "modes": "form"}, {FORM}),
        ({"elicitation_handler": "cancel", "modes": ("url", "form")}, {FORM, URL}),
    ],
)
def test_tools_that_ask_are_there_for_whoever_declares_their_mode(
    http: Everything, options: dict[str, Any], asking: set[str]
) -> None:
    async def body(toolset: McpToolset) -> dict[str, str]:
        return {tool.name: tool.description or "" for tool in await toolset.list_tools()}

    found = using(http.connection, body, **options)
    assert found["echo"] == "Echoes back the input string" and {"get-sum", "get-tiny-image"} <= set(found)
    assert {FORM, URL} & set(found) == asking
    assert "get-roots-list" not in found, "roots were not declared"


def test_roots_are_told_with_and_without_a_handler(http: Everything) -> None:
    for handler in ({}, {"elicitation_handler": "cancel"}):
        roots = ["file:///srv/project", "file:///srv/other"]
        told = call(http.connection, "get-roots-list", roots=roots, **handler)["output"]
        assert "Current MCP Roots (2 total)" in told and all(f"URI: {root}" in told for root in roots)


def test_a_tool_of_the_list_says_what_it_is_and_can_be_called(http: Everything) -> None:
    async def body(toolset: McpToolset) -> Any:
        (tool,) = (tool for tool in await toolset.list_tools() if tool.name == "get-sum")
        return tool.input_schema, tool.annotations, await tool.call({"a": 2, "b": 40})

    schema, annotations, response = using(http.connection, body)
    assert set(schema["properties"]) == {"a", "b"} and annotations.read_only_hint
    assert response == {"output": "The sum of 2 and 40 is 42."}


def test_prompts_and_resources(http: Everything) -> None:
    async def body(toolset: McpToolset) -> Any:
        return [
            {prompt.name for prompt in await toolset.list_prompts()},
            await toolset.get_prompt("args-prompt", {"city": "Paris", "state": "Texas"}),
            await toolset.get_prompt("resource-prompt", {"resourceType": "Text", "resourceId": "7"}),
            {str(resource.uri) for resource in await toolset.list_resources()},
            await toolset.read_resource("demo://resource/dynamic/blob/2"),
            await toolset.read_resource("demo://resource/static/document/features.md"),
        ]

    names, arguments, embedded, uris, blob, document = using(http.connection, body)
    assert names == {"simple-prompt", "args-prompt", "completable-prompt", "resource-prompt"}
    assert arguments.messages[0].content.text == "What's weather in Paris, Texas?"
    assert str(embedded.messages[1].content.resource.uri) == "demo://resource/dynamic/text/7"
    assert "demo://resource/static/document/features.md" in uris
    assert blob.contents[0].blob and "# Everything Server" in document.contents[0].text


# ---- results -------------------------------------------------------------------------------------------------------


def test_an_image_between_two_texts(http: Everything) -> None:
    response = call(http.connection, "get-tiny-image")
    (image,) = response.pop("content")
    assert response == {"output": "Here's the image you requested:\nThe image above is the MCP logo."}
    assert (image["type"], image["mimeType"]) == ("image", "image/png") and image["data"].startswith("iVBORw0KGgo")


def test_resource_links(http: Everything) -> None:
    response = call(http.connection, "get-resource-links", {"count": 2})
    assert response["output"] == "Here are 2 resource links to resources available in this server:"
    assert [(link["type"], link["name"], link["uri"], link["mimeType"]) for link in response["content"]] == [
        ("resource_link", "Blob Resource 1", "demo://resource/dynamic/blob/1", "text/plain"),
        ("resource_link", "Text Resource 2", "demo://resource/dynamic/text/2", "text/plain"),
    ]


@pytest.mark.parametrize(("kind", "field"), [("Text", "text"), ("Blob", "blob")])
def test_embedded_resources(http: Everything, kind: str, field: str) -> None:
    response = call(http.connection, "get-resource-reference", {"resourceType": kind, "resourceId": 3})
    assert response["output"].startswith("Returning resource reference for Resource 3:\nYou can access this resource")
    (block,) = response["content"]
    assert block["type"] == "resource" and block["resource"][field]
    assert block["resource"]["uri"] == f"demo://resource/dynamic/{kind.lower()}/3"


def test_structured_content(http: Everything) -> None:
    response = call(http.connection, "get-structured-content", {"location": "Chicago"})
    assert response == {"output": {"temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82}}


def test_annotated_messages(http: Everything) -> None:
    response = call(http.connection, "get-annotated-message", {"messageType": "error", "includeImage": True})
    text, image = response["content"]
    assert response["output"] == text["text"] == "Error: Operation failed" and "isError" not in response
    assert text["annotations"] == {"priority": 1, "audience": ["user", "assistant"]}
    assert image["annotations"] == {"priority": 0.5, "audience": ["user"]} and image["type"] == "image"


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [("get-sum", {"a": "two"}, "Input validation error"), ("no-such-tool", {}, "Tool no-such-tool not found")],
)
def test_errors_of_tools_are_results(http: Everything, name: str, arguments: dict[str, Any], told: str) -> None:
    response = call(http.connection, name, arguments)
    assert response.keys() == {"error", "isError"} and response["isError"] is True and told in response["error"]


# ---- time ----------------------------------------------------------------------------------------------------------


def test_progress_of_a_long_call(http: Everything) -> None:
    async def body(toolset: McpToolset) -> Any:
        told: list[tuple[float, float | None]] = []

        def seen(progress: float, total: float | None, message: str | None) -> None:
            told.append((progress, total))

        arguments = {"duration": 0.3, "steps": 3}
        return await toolset.call_tool("trigger-long-running-operation", arguments, on_progress=seen), told

    response, told = using(http.connection, body)
    assert response == {"output": "Long running operation completed. Duration: 0.3 seconds, Steps: 3."}
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_a_call_given_up_in_the_middle_is_told_to_the_server(http: Everything) -> None:
    """The server tells each message that it gets in its output; the one after the call's is the cancellation."""

    async def body(toolset: McpToolset) -> None:
        started = asyncio.Event()
        arguments = {"duration": 20, "steps": 400}

        async def seen(progress: float, total: float | None, message: str | None) -> None:
            started.set()

        calling = asyncio.create_task(
            toolset.call_tool("trigger-long-running-operation", arguments, on_progress=seen)
        )
        await started.wait()
        before = http.output().count("MCP POST request")
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        end = time.monotonic() + 10
        while http.output().count("MCP POST request") == before:
            assert time.monotonic() < end, "the server was not told"
            await asyncio.sleep(0.02)
        assert await toolset.call_tool("echo", {"message": "still there"}) == {"output": "Echo: still there"}

    using(http.connection, body)


# ---- forms ---------------------------------------------------------------------------------------------------------


def test_form_with_13_fields_is_answered(http: Everything) -> None:
    person = Person("accept", ALL_13)
    assert sent(call(http.connection, FORM, elicitation_handler=person)) == {"action": "accept", "content": ALL_13}
    (request,) = person.asked
    assert (request.mode, request.server, request.tool) == ("form", "everything", FORM)
    assert set((request.requested_schema or {})["properties"]) == set(ALL_13)


def test_form_is_read_with_all_five_kinds_of_choice(http: Everything) -> None:
    person = Person("decline")
    call(http.connection, FORM, elicitation_handler=person)
    fields = {field.name: field for field in read_form(person.asked[0].requested_schema or {}).fields}
    assert list(fields) == list(ALL_13)
    assert {name: field.kind for name, field in fields.items() if field.options} == {
        "untitledSingleSelectEnum": "choice", "untitledMultipleSelectEnum": "choices",
        "titledSingleSelectEnum": "choice", "titledMultipleSelectEnum": "choices", "legacyTitledEnum": "choice",
    }  # fmt: skip
    titles = {name: [(one.value, one.title) for one in field.options] for name, field in fields.items()}
    assert titles["untitledSingleSelectEnum"][0] == ("Monica", "Monica")
    assert titles["untitledMultipleSelectEnum"][-1] == ("Bass", "Bass")
    assert titles["titledSingleSelectEnum"][1] == ("hero-2", "Green Lantern")
    assert titles["titledMultipleSelectEnum"] == [("fish-1", "Tuna"), ("fish-2", "Salmon"), ("fish-3", "Trout")]
    assert titles["legacyTitledEnum"][4] == ("pet-5", "Reptiles")
    assert (fields["integer"].default, fields["number"].default) == (42, 3.14)
    assert fields["titledMultipleSelectEnum"].default == ["fish-1"] and fields["name"].required


@pytest.mark.parametrize("content", [{"name": "Ada"}, {"name": "", "check": False}, {"name": "A", "email": None}])
def test_only_what_was_filled_in_is_sent(http: Everything, content: dict[str, Any]) -> None:
    response = call(http.connection, FORM, elicitation_handler=Person("accept", content))
    kept = {name: value for name, value in content.items() if value is not None}
    assert sent(response) == {"action": "accept", "content": kept}


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_form_that_is_not_filled_in(http: Everything, action: str) -> None:
    response = call(http.connection, FORM, elicitation_handler=Person(action, {"name": "kept to myself"}))
    assert sent(response) == {"action": action} and "kept to myself" not in str(response)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("name", None), ("name", 7), ("check", "yes"), ("email", "ada@"), ("homepage", "ada"),
        ("birthdate", "2026-02-30"), ("birthdate", "20260131"), ("integer", 101), ("integer", 1.5), ("integer", True),
        ("number", 1000.001), ("number", float("nan")), ("number", float("inf")),
        ("untitledSingleSelectEnum", "Gunther"), ("untitledMultipleSelectEnum", []),
        ("untitledMultipleSelectEnum", ["Guitar", "Piano", "Violin", "Drums"]),
        ("untitledMultipleSelectEnum", ["Guitar", "Kazoo"]), ("titledSingleSelectEnum", "Superman"),
        ("titledMultipleSelectEnum", ["Tuna"]), ("titledMultipleSelectEnum", "fish-1"), ("legacyTitledEnum", "Cats"),
    ],
)  # fmt: skip
def test_a_wrong_answer_is_refused_before_it_is_sent(http: Everything, name: str, value: Any) -> None:
    person = Person("accept", {**ALL_13, name: value})
    with pytest.raises(ElicitationHandlerError) as caught:
        call(http.connection, FORM, elicitation_handler=person)
    cause = caught.value.__cause__
    assert isinstance(cause, FormContentError) and set(cause.errors) == {name}
    assert "Ada Lovelace" not in str(caught.value) + str(cause) and len(person.asked) == 1


# ---- URLs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("action", "told"), [("accept", "✅"), ("decline", "❌"), ("cancel", "⚠️")])
def test_url_elicitation(http: Everything, action: str, told: str) -> None:
    person = Person(action)
    arguments = {"url": PAGE, "message": "Sign in", "elicitationId": "el-7"}
    response = call(http.connection, URL, arguments, elicitation_handler=person)
    assert response["output"].startswith(told) and sent(response) == {"action": action}
    (request,) = person.asked
    assert (request.mode, request.url, request.message, request.elicitation_id) == ("url", PAGE, "Sign in", "el-7")
    assert (request.server, request.tool, request.requested_schema) == ("everything", URL, None)


def test_required_url_is_visited_and_the_call_made_again(http: Everything) -> None:
    person = Person("accept")
    response = call(http.connection, URL, {"url": PAGE, "errorPath": True}, elicitation_handler=person)
    assert response["output"].startswith("✅") and PAGE in response["output"]
    assert [request.url for request in person.asked] == [PREREQUISITE, PAGE]
    assert [request.tool for request in person.asked] == [URL, URL]


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_required_url_that_is_refused_ends_the_call(http: Everything, action: str) -> None:
    person = Person(action)
    with pytest.raises(ElicitationRequiredError, match=action):
        call(http.connection, URL, {"url": PAGE, "errorPath": True}, elicitation_handler=person)
    assert [request.url for request in person.asked] == [PREREQUISITE]


# ---- the other transports ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", ["sse", "stdio"])
def test_older_transports(transport: str, request: pytest.FixtureRequest) -> None:
    connection = everything.stdio() if transport == "stdio" else request.getfixturevalue("sse").connection
    asked: list[tuple[str | None, str | None]] = []

    async def person(request: GopherAgentElicitationRequest) -> GopherAgentElicitationResponse:
        asked.append((request.tool, request.url))
        return GopherAgentElicitationResponse("accept", ALL_13 if request.mode == "form" else None)

    async def body(toolset: McpToolset) -> list[Any]:
        told: list[float] = []
        return [
            {tool.name for tool in await toolset.list_tools()},
            await toolset.call_tool("echo", {"message": "ä \u2028 😀"}),
            sent(await toolset.call_tool(FORM)),
            await toolset.call_tool(URL, {"url": PAGE, "errorPath": True}),
            await toolset.call_tool(
                "trigger-long-running-operation", {"duration": 0.1, "steps": 2},
                on_progress=lambda progress, total, message: told.append(progress),
            ),
            told,
            (await toolset.get_prompt("simple-prompt")).messages[0].content.text,
        ]  # fmt: skip

    names, echo, form, url, _, told, prompt = using(connection, body, elicitation_handler=person)
    assert {FORM, URL} <= names and echo == {"output": "Echo: ä \u2028 😀"}
    assert form == {"action": "accept", "content": ALL_13} and url["output"].startswith("✅")
    assert asked == [(FORM, None), (URL, PREREQUISITE), (URL, PAGE)]
    assert told == [1, 2] and prompt == "This is a simple prompt without arguments."
