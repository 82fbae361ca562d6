"""`elicitation_callback` in the client of the MCP SDK (2.x): the same rules as everywhere, over HTTP and in memory."""

from __future__ import annotations

import asyncio
import contextvars
import copy
import json
import logging
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

import mcp_types as types
import pytest
from mcp import Client
from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.exceptions import MCPError

from gopher_mcp_python import (
    GopherAgentElicitationOptions,
    GopherAgentElicitationRequest,
    GopherAgentElicitationResponse,
    elicitation_callback,
)
from gopher_mcp_python.integrations.sdk_types import types_of
from tests.support.canary import secret
from tests.support.servers import McpServer, click_allow

T = TypeVar("T")
Request = GopherAgentElicitationRequest


def run(body: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(body, 20))


def client(server: McpServer, callback: Any, mode: Any = "legacy") -> Client:
    handler = getattr(callback, "on_message", None)
    return Client(server.url, elicitation_callback=callback, message_handler=handler, mode=mode)


def text_of(server: McpServer, callback: Any, tool: str, mode: Any = "legacy", **arguments: Any) -> str:
    async def body() -> str:
        async with client(server, callback, mode) as session:
            return str((await session.call_tool(tool, arguments)).content[0].text)  # type: ignore[union-attr]

    return run(body())


# ---- what the handler is given --------------------------------------------------------------------------------------


def test_a_page(server: McpServer) -> None:
    asked: list[Request] = []

    def handler(request: Request) -> str:
        asked.append(request)
        return "accept"

    callback = elicitation_callback(handler, server="mail.example.com")
    assert text_of(server, callback, "decline_aware") == "action: accept"
    (request,) = asked
    assert (request.server, request.tool, request.mode) == ("mail.example.com", None, "url")
    assert request.message == "Sign in to Gmail to continue."
    assert request.url and request.elicitation_id and request.requested_schema is None
    assert json.loads(request.raw_params_json or "")["elicitationId"] == request.elicitation_id
    assert json.loads(request.raw_json or "")["method"] == "elicitation/create"


def test_a_form_as_it_came(server: McpServer) -> None:
    asked: list[Request] = []
    schema = {
        "type": "object",
        "properties": {"__proto__": {"type": "string", "default": None, "x-own": None}, "": {"type": "integer"}},
        "x-more": [None, {"a": None}],
    }

    async def handler(request: Request) -> GopherAgentElicitationResponse:
        asked.append(request)
        return GopherAgentElicitationResponse("accept", {"": 1, "__proto__": None})

    params = {"mode": "form", "message": "m", "requestedSchema": schema}
    answer = json.loads(text_of(server, elicitation_callback(handler), "raw_elicit", params=params))
    assert asked[0].requested_schema == schema and asked[0].server is None
    assert answer == {"action": "accept", "content": {"": 1}}


def test_context_thread_and_options_as_a_mapping(server: McpServer) -> None:
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")
    seen: list[tuple[str, bool]] = []

    def handler(request: Request) -> str:
        seen.append((who.get(), threading.current_thread() is threading.main_thread()))
        return "decline"

    who.set("ada")
    assert text_of(server, elicitation_callback({"handler": handler}), "decline_aware") == "action: decline"
    assert seen == [("ada", False)]


# ---- answers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["cancel", "decline"])
def test_fixed_answers(server: McpServer, action: Any) -> None:
    for given in (action, GopherAgentElicitationOptions(action), {"handler": action}):
        assert text_of(server, elicitation_callback(given), "form_tool") == f"form: {action} null"


@pytest.mark.parametrize(("modes", "tool"), [("url", "form_tool"), ("form", "decline_aware")])
def test_an_undeclared_mode(server: McpServer, modes: str, tool: str) -> None:
    def handler(request: Request) -> str:
        raise AssertionError("asked")

    options = {"handler": handler, "modes": modes}
    for callback in (elicitation_callback(handler, modes=modes), elicitation_callback(options)):
        server.clear()
        with suppress(Exception):  # the tool fails with what it is told
            text_of(server, callback, tool)
        assert [error["code"] for error in server.log("elicit_error")] == [-32602]


def test_the_terminal_is_for_forms_too(server: McpServer, monkeypatch: pytest.MonkeyPatch) -> None:
    from gopher_mcp_python import elicitation_runtime

    lines = ["audit", "y", ""]
    monkeypatch.setattr(elicitation_runtime, "_read_line", lambda limit: lines.pop(0))
    told = text_of(server, elicitation_callback(), "form_tool")
    assert told == 'form: accept {"reason": "audit", "urgent": true}' and not lines
    assert text_of(server, elicitation_callback({"modes": "url"}), "form_tool") == "form refused: -32602"


def test_the_terminal(server: McpServer, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    from gopher_mcp_python import elicitation_runtime

    monkeypatch.setattr(elicitation_runtime, "_read_line", lambda limit: "")
    callback = elicitation_callback({"open_browser": False}, server="mail.example.com")
    page = {"mode": "url", "message": "m", "url": "https://example.com/page", "elicitationId": "e"}
    assert json.loads(text_of(server, callback, "raw_elicit", params=page)) == {"action": "accept"}
    shown = capfd.readouterr().err
    assert "mail.example.com asks you to open a page" in shown and "https://example.com/page" in shown


def test_a_required_field_is_missing(server: McpServer, caplog: pytest.LogCaptureFixture) -> None:
    callback = elicitation_callback(lambda request: GopherAgentElicitationResponse("accept", {"urgent": True}))
    with caplog.at_level(logging.WARNING, "gopher_mcp_python"):
        assert text_of(server, callback, "form_tool") == "form refused: -32603"
    assert "reason" in caplog.text


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 3, {"action": "accept"}, None])
def test_what_is_no_answer(server: McpServer, value: Any, caplog: pytest.LogCaptureFixture) -> None:
    answer = GopherAgentElicitationResponse("accept", {"reason": value}) if isinstance(value, float) else value
    with caplog.at_level(logging.WARNING, "gopher_mcp_python"):
        assert text_of(server, elicitation_callback(lambda request: answer), "form_tool") == "form refused: -32603"
    assert server.log("elicit_error")[0]["message"] == "the client's elicitation handler failed"


def test_a_handler_that_raises_keeps_its_secrets(server: McpServer, caplog: pytest.LogCaptureFixture) -> None:
    token = secret("handler")

    def handler(request: Request) -> str:
        raise RuntimeError(f"no https://example.com/?token={token}")

    with caplog.at_level(logging.DEBUG):
        assert text_of(server, elicitation_callback(handler), "form_tool") == "form refused: -32603"
    assert "RuntimeError: no https://example.com/" in caplog.text and token not in caplog.text
    assert server.log("elicit_error")[0]["message"] == "the client's elicitation handler failed"


def test_time_is_up(server: McpServer) -> None:
    left = threading.Event()

    async def handler(request: Request) -> str:
        try:
            await asyncio.sleep(3600)
        finally:
            left.set()
        return "accept"

    assert text_of(server, elicitation_callback(handler, timeout_ms=30), "decline_aware") == "action: cancel"
    assert left.is_set()


def test_a_round_is_held_until_the_person_has_finished(server: McpServer) -> None:
    order: list[str] = []

    def handler(request: Request) -> GopherAgentElicitationResponse:
        order.append(f"agreed {request.elicitation_id}")
        return GopherAgentElicitationResponse("accept", finished=lambda: order.append("finished"))

    assert text_of(server, elicitation_callback(handler), "input_required", "auto") == "actions: accept"
    assert order == ["agreed None", "finished"]


def test_during_a_call_consent_is_enough(server: McpServer) -> None:
    def handler(request: Request) -> GopherAgentElicitationResponse:
        return GopherAgentElicitationResponse("accept", finished=lambda: pytest.fail("waited for"))

    assert text_of(server, elicitation_callback(handler), "decline_aware") == "action: accept"


# ---- once, one after the other, withdrawn ---------------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["elicit_same_id", "elicit_same_id_at_once"])
def test_one_id_is_asked_once(server: McpServer, tool: str) -> None:
    asked: list[Request] = []

    async def handler(request: Request) -> str:
        asked.append(request)
        await asyncio.sleep(0.05)
        return "accept"

    assert text_of(server, elicitation_callback(handler), tool) == "actions: accept accept"
    assert len(asked) == 1


def test_what_was_refused_or_failed_may_be_asked_again(server: McpServer) -> None:
    answers = ["decline", "accept"]
    assert text_of(server, elicitation_callback(lambda request: answers.pop(0)), "elicit_same_id") == (
        "actions: decline accept"
    )


@pytest.mark.parametrize("person", [None, "ada"])
def test_one_prompt_at_a_time_first_come_first_served(server: McpServer, person: str | None) -> None:
    order: list[str] = []
    open_now: list[str] = []

    async def handler(request: Request) -> str:
        open_now.append(str(request.message))
        assert len(open_now) == 1
        await asyncio.sleep(0.02)
        order.append(open_now.pop())
        return "accept"

    first = elicitation_callback(handler, person=person)
    second = elicitation_callback(handler, person=person) if person else first

    async def body() -> None:
        async with client(server, first) as one, client(server, second) as other:
            calls = [session.call_tool("elicit_parallel", {"count": 2}) for session in (one, other)]
            for result in await asyncio.gather(*calls):
                assert result.content[0].text == "actions: accept accept"  # type: ignore[union-attr]

    run(body())
    assert len(order) == 4


def test_one_callback_on_several_event_loops(server: McpServer) -> None:
    open_now: list[Request] = []
    failed: list[BaseException] = []

    async def handler(request: Request) -> str:
        open_now.append(request)
        assert len(open_now) == 1
        await asyncio.sleep(0.02)
        open_now.pop()
        return "accept"

    callback = elicitation_callback(handler)

    def use() -> None:
        try:
            assert text_of(server, callback, "elicit_twice") == "actions: accept accept"
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=use) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


def test_a_withdrawn_question_is_cancelled(server: McpServer) -> None:
    async def body() -> None:
        asked, left = asyncio.Event(), asyncio.Event()

        async def handler(request: Request) -> str:
            asked.set()
            try:
                await asyncio.sleep(3600)
            finally:
                left.set()
            return "accept"

        async with client(server, elicitation_callback(handler)) as session:
            call = asyncio.ensure_future(session.call_tool("decline_aware", {}))
            await asked.wait()
            call.cancel()
        await left.wait()  # at the latest when the session ends

    run(body())


def test_a_page_that_is_complete(server: McpServer) -> None:
    """Told once, for what was asked for here; a prompt that is still open ends with it."""
    told: list[str] = []
    pages: list[Request] = []

    async def body() -> None:
        asked, done = asyncio.Event(), asyncio.Event()

        async def handler(request: Request) -> str:
            pages.append(request)
            asked.set()
            await done.wait()
            return "accept"

        def complete(elicitation_id: str) -> None:
            told.append(elicitation_id)
            loop.call_soon_threadsafe(done.set)

        loop = asyncio.get_running_loop()
        callback = elicitation_callback(handler, complete=complete)
        async with client(server, callback) as session:
            call = asyncio.ensure_future(session.call_tool("decline_aware", {}))
            await asked.wait()
            await callback.on_message(_complete("somebody-else"))
            await asyncio.to_thread(click_allow, str(pages[0].url))
            assert (await call).content[0].text == "action: accept"  # type: ignore[union-attr]
            await callback.on_message(_complete(str(pages[0].elicitation_id)))
            await callback.on_message(RuntimeError("the transport's"))

    run(body())
    assert told == [pages[0].elicitation_id]


def _complete(elicitation_id: str) -> types.ElicitCompleteNotification:
    params = types.ElicitCompleteNotificationParams(elicitation_id=elicitation_id)
    return types.ElicitCompleteNotification(params=params)


# ---- what servers may try -------------------------------------------------------------------------------------------


def told_by(callback: Any, *asked: types.ElicitRequestParams) -> list[Any]:
    """What a server is told when its tool asks for one after another: actions, or an error's code, text and data."""
    server: MCPServer[Any] = MCPServer("in memory")
    told: list[Any] = []

    async def ask(ctx: Context[Any, Any]) -> None:
        for params in asked:
            try:
                answer = await ctx.session.send_request(types.ElicitRequest(params=params), types.ElicitResult)
                told.append(answer.action if answer.content is None else answer.content)
            except MCPError as error:
                told.append((error.error.code, error.error.message, error.error.data))

    server.add_tool(ask)

    async def body() -> None:
        async with Client(server, elicitation_callback=callback, mode="legacy") as session:
            assert not (await session.call_tool("ask")).is_error

    run(body())
    return told


def _page(url: str, elicitation_id: str = "1") -> types.ElicitRequestURLParams:
    return types.ElicitRequestURLParams(message="m", url=url, elicitation_id=elicitation_id)


def test_a_page_that_must_not_be_opened_reaches_no_handler() -> None:
    asked: list[str | None] = []

    def handler(request: Request) -> str:
        asked.append(request.url)
        return "accept"

    urls = ["javascript:alert(1)", "file:///etc/passwd", "\x01http://x/", "https://example.com/"]
    pages = [_page(url, str(number)) for number, url in enumerate(urls)]
    assert told_by(elicitation_callback(handler), *pages) == ["decline"] * 3 + ["accept"]
    assert asked == urls[-1:]


def test_ids_of_forms_mean_nothing() -> None:
    def handler(request: Request) -> GopherAgentElicitationResponse:
        return GopherAgentElicitationResponse("accept", {"name": request.message})

    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    forms = [
        types.ElicitRequestFormParams.model_validate({"message": text, "requestedSchema": schema, "elicitationId": "1"})
        for text in ("show A?", "delete B?")
    ]
    assert told_by(elicitation_callback(handler), *forms) == [{"name": "show A?"}, {"name": "delete B?"}]


class _Odd(BaseException):
    """A framework's own way to end a task."""


@pytest.mark.parametrize("made", [MCPError, _Odd, asyncio.CancelledError])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_handler_that_fails_in_another_way(made: type[BaseException], is_async: bool) -> None:
    """The server is told nothing of it, and the session goes on."""

    def handler(request: Request) -> str:
        raise MCPError(-32042, "another server's", {"token": "t"}) if made is MCPError else made("secret")

    async def later(request: Request) -> str:
        return handler(request)

    failed = (-32603, "the client's elicitation handler failed", None)
    callback = elicitation_callback(later if is_async else handler)
    assert told_by(callback, _page("https://example.com/"), _page("https://example.com/", "2")) == [failed, failed]


# ---- what it is -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"enabled": False}, "leave the framework's own elicitation argument out"),
        (GopherAgentElicitationOptions(enabled=False), "leave the framework's own elicitation argument out"),
        ("accept", "handler"),
        ({"open_browser": "perhaps"}, "open_browser"),
        ({"modes": "both"}, "modes"),
    ],
)
def test_wrong_options(given: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        elicitation_callback(given)


def test_copies_ask_the_same_person() -> None:
    callback = elicitation_callback("cancel", server="mail")
    assert copy.deepcopy({"a": callback})["a"] is callback is copy.copy(callback)
    assert repr(callback) == "<elicitation callback for 'mail'>"


def test_answers_are_of_the_generation_that_asks() -> None:
    class Own(types.ElicitRequestURLParams):
        """A program's own kind."""

    assert types_of(Own(message="m", url="https://example.com/")) is types
    with pytest.raises(TypeError, match="dict is no parameter type"):
        types_of({})
