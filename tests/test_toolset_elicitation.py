"""Elicitation in the session layer, over real HTTP to a real SDK server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from gopher_mcp_python.elicitation import GopherAgentElicitationRequest, GopherAgentElicitationResponse
from gopher_mcp_python.toolset import (
    ElicitationHandlerError,
    ElicitationRequiredError,
    ServerError,
    SessionLostError,
    ToolsetError,
)
from gopher_mcp_python.toolset.toolset import Toolset
from tests.support.servers import McpServer, click_allow
from tests.support.toolset import ToldAsker, text_of, with_toolset

PROFILE = "get_gmail_users_get_profile"


def call(
    server: McpServer, asker: ToldAsker | None, name: str, arguments: dict[str, Any] | None = None, **more: Any
) -> str:
    return with_toolset(server.url, asker, lambda toolset: text_of(toolset, name, arguments, **more))


@pytest.mark.parametrize("action", ["accept", "decline", "cancel"])
def test_each_answer_reaches_the_server(server: McpServer, action: str) -> None:
    asker = ToldAsker(action)
    text = call(server, asker, PROFILE)
    assert server.actions() == [action]
    assert ("ada@example.com" in text) == (action == "accept")
    assert server.tools_run() == [PROFILE]


def test_request_says_who_asks_and_what_was_sent(server: McpServer) -> None:
    asker = ToldAsker()
    call(server, asker, PROFILE)
    (request,) = asker.requests
    assert (request.mode, request.server, request.tool) == ("url", "127.0.0.1", PROFILE)
    raw, params = json.loads(request.raw_json or ""), json.loads(request.raw_params_json or "")
    assert raw["method"] == "elicitation/create" and raw["params"] == params
    assert json.loads(request.request_id_json or "") == raw["id"]
    assert params["url"] == request.url and params["elicitationId"] == request.elicitation_id
    assert request.raw_params_json == json.dumps(params, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def test_fields_that_the_sdk_does_not_know_stay_in_the_raw_request(server: McpServer) -> None:
    asker = ToldAsker()
    params = {"mode": "url", "message": "Ä", "url": "https://x.example/", "elicitationId": "e1", "zz": [1, None]}
    call(server, asker, "raw_elicit", {"params": params})
    assert json.loads(asker.requests[0].raw_params_json or "") == params
    assert "Ä" in (asker.requests[0].raw_json or "")


@pytest.mark.parametrize(
    ("modes", "declared"),
    [("url", {"url": {}}), ("form", {"form": {}}), ("url form", {"url": {}, "form": {}})],
)
def test_exactly_the_served_modes_are_declared(server: McpServer, modes: str, declared: dict[str, Any]) -> None:
    call(server, ToldAsker(modes=modes), "plain")
    assert server.log("hello")[0]["capabilities"].get("elicitation") == declared


@pytest.mark.parametrize("protocol", ["handshake", "2026-07-28"])
def test_nothing_is_declared_without_a_handler(server: McpServer, protocol: str) -> None:
    with_toolset(server.url, None, lambda toolset: text_of(toolset, "plain"), protocol=protocol)
    assert "elicitation" not in (server.log("hello")[0]["capabilities"] or {})


def test_2026_declares_the_same_modes_with_each_request(server: McpServer) -> None:
    with_toolset(server.url, ToldAsker(), lambda toolset: text_of(toolset, "plain"), protocol="2026-07-28")
    assert server.log("hello")[0]["capabilities"]["elicitation"] == {"url": {}}


@pytest.mark.parametrize(
    "params",
    [
        {"mode": "form", "message": "m", "requestedSchema": {"type": "object", "properties": {}}},
        {"message": "m", "requestedSchema": {"type": "object", "properties": {}}},
        {"mode": "zebra", "message": "m", "url": "https://x.example/", "elicitationId": "e"},
        {"mode": 7, "message": "m"},
        {"mode": "url", "message": "m", "url": "https://x.example/"},
        {"mode": "url", "message": "m", "url": "https://x.example/", "elicitationId": "  "},
        {"mode": "url", "message": "m", "url": "", "elicitationId": "e"},
        {"mode": "url", "message": "m", "elicitationId": "e"},
        {"mode": "url", "message": "m", "url": ["https://x.example/"], "elicitationId": "e"},
        {"mode": "url", "url": "https://x.example/", "elicitationId": "e"},
    ],
)
def test_undeclared_modes_and_broken_requests_are_invalid_params(server: McpServer, params: dict[str, Any]) -> None:
    asker = ToldAsker()
    text = call(server, asker, "raw_elicit", {"params": params})
    assert text.startswith("error -32602") and not asker.requests


def test_form_answers_carry_content_without_nulls(server: McpServer) -> None:
    answer = GopherAgentElicitationResponse("accept", {"reason": "audit", "urgent": None})
    assert call(server, ToldAsker(answer, "form"), "form_tool") == 'form: accept {"reason": "audit"}'


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_content_goes_with_accept_only(server: McpServer, action: str) -> None:
    answer = GopherAgentElicitationResponse(action, {"reason": "kept to myself"})
    assert call(server, ToldAsker(answer, "form"), "form_tool") == f"form: {action} null"


def test_numbers_that_json_does_not_have_are_an_error(server: McpServer) -> None:
    answer = GopherAgentElicitationResponse("accept", {"reason": float("nan")})
    with pytest.raises(ElicitationHandlerError):
        call(server, ToldAsker(answer, "form"), "form_tool")
    assert server.log("elicit_error")[0]["code"] == -32603


@pytest.mark.parametrize("tool", ["elicit_same_id", "elicit_same_id_at_once"])
def test_one_id_is_asked_once(server: McpServer, tool: str) -> None:
    asker = ToldAsker()
    assert call(server, asker, tool) == "actions: accept accept"
    assert len(asker.requests) == 1


def test_answers_go_to_their_own_questions(server: McpServer) -> None:
    async def by_message(request: GopherAgentElicitationRequest) -> str:
        if request.message == "parallel 0":
            await asyncio.sleep(0.1)
        return {"parallel 0": "accept", "parallel 1": "decline"}[request.message or ""]

    asker = ToldAsker(by_message)
    assert call(server, asker, "elicit_parallel") == "actions: accept decline"
    assert [request.message for request in asker.requests] == ["parallel 0", "parallel 1"]


def test_two_calls_at_the_same_time_keep_their_questions_apart(server: McpServer) -> None:
    async def by_tool(request: GopherAgentElicitationRequest) -> str:
        await asyncio.sleep(0.05)
        return "accept" if request.tool == "decline_aware" else "decline"

    async def both(toolset: Toolset) -> list[str]:
        return await asyncio.gather(text_of(toolset, "decline_aware"), text_of(toolset, "withhold"))

    assert with_toolset(server.url, ToldAsker(by_tool), both) == ["action: accept", "action: decline"]


def test_answer_is_posted_while_the_stream_stays_open(server: McpServer) -> None:
    assert call(server, ToldAsker(), "withhold") == "action: accept"
    assert server.log("withheld")[0]["seconds"] < 1


def test_question_on_the_sessions_own_stream(server: McpServer) -> None:
    asker = ToldAsker()
    assert call(server, asker, "get_stream") == "action: accept"
    assert asker.requests[0].tool == "get_stream"  # the only call under way


def test_completion_is_passed_on_while_open_and_ignored_otherwise(server: McpServer) -> None:
    asker = ToldAsker()

    async def until_complete(request: GopherAgentElicitationRequest) -> str:
        await asyncio.to_thread(click_allow, request.url or "")
        for _ in range(100):
            if request.elicitation_id in asker.completions:
                return "accept"
            await asyncio.sleep(0.02)
        return "cancel"

    asker._answer = until_complete

    async def body(toolset: Toolset) -> str:
        text = await text_of(toolset, PROFILE)
        session = toolset._main
        assert session is not None
        before = list(asker.completions)
        for odd in ({"elicitationId": before[0]}, {"elicitationId": "unknown"}, {"elicitationId": 5}, {}, None):
            session.questions.completed(odd)
        assert asker.completions == before
        return text

    assert "ada@example.com" in with_toolset(server.url, asker, body)
    assert server.actions() == ["accept"]


def test_completion_of_a_required_url(server: McpServer) -> None:
    asker = ToldAsker()

    async def until_complete(request: GopherAgentElicitationRequest) -> str:
        await asyncio.to_thread(click_allow, request.url or "")
        for _ in range(100):
            if request.elicitation_id in asker.completions:
                return "accept"
            await asyncio.sleep(0.02)
        return "cancel"

    asker._answer = until_complete
    assert "ada@example.com" in call(server, asker, "error_32042")


# ---- failures of handlers and streams ------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["error_32042", "input_required"])
def test_handler_failure_outside_a_stream_keeps_its_cause(server: McpServer, tool: str) -> None:
    async def broken(request: GopherAgentElicitationRequest) -> str:
        raise ValueError("no such window")

    with pytest.raises(ToolsetError) as caught:
        call(server, ToldAsker(broken), tool)
    assert isinstance(caught.value.__cause__, ValueError)


def test_handler_failure_reaches_the_server_and_the_caller(server: McpServer) -> None:
    async def broken(request: GopherAgentElicitationRequest) -> str:
        raise ValueError("no such window")

    with pytest.raises((ElicitationHandlerError, ServerError)) as caught:
        call(server, ToldAsker(broken), "decline_aware")
    assert isinstance(caught.value.__cause__, ValueError)
    assert server.log("elicit_error")[0]["code"] == -32603


def test_dropped_stream_withdraws_the_prompt_and_fails_the_call(server: McpServer) -> None:
    async def never(request: GopherAgentElicitationRequest) -> str:
        await asyncio.sleep(60)
        return "accept"

    asker = ToldAsker(never)
    with pytest.raises(SessionLostError, match="not known whether the tool ran"):
        call(server, asker, "dropped")
    assert asker.withdrawn == 1
    assert server.wait_for("answer")[0]["action"] == "cancel"
    assert server.tools_run() == ["dropped"]


def test_persons_time_is_not_the_tools_time(server: McpServer) -> None:
    async def slowly(request: GopherAgentElicitationRequest) -> str:
        await asyncio.sleep(0.8)
        return "accept"

    asker = ToldAsker(slowly)
    assert call(server, asker, "decline_aware", timeout=0.5) == "action: accept"
    assert server.actions() == ["accept"]


def test_clock_resumes_when_both_of_two_questions_are_answered(server: McpServer) -> None:
    async def one_slow(request: GopherAgentElicitationRequest) -> str:
        await asyncio.sleep(0.7 if request.message == "parallel 1" else 0.01)
        return "accept"

    assert call(server, ToldAsker(one_slow), "elicit_parallel", timeout=0.5) == "actions: accept accept"


# ---- error -32042 --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["error_32042", "error_32042_wrapped"])
def test_required_urls_are_asked_and_the_call_is_made_again(server: McpServer, tool: str) -> None:
    asker = ToldAsker()
    assert "ada@example.com" in call(server, asker, tool, {"rounds": 1, "urls": 2})
    assert len(asker.requests) == 2 and server.tools_run() == [tool, tool]
    assert asker.requests[0].request_id_json == "null"
    assert json.loads(asker.requests[0].raw_json or "")["code"] == -32042


def test_rounds_are_bounded(server: McpServer) -> None:
    asker = ToldAsker()
    with pytest.raises(ElicitationRequiredError, match="5 times"):
        call(server, asker, "error_32042_endless")
    assert len(asker.requests) == 5 and len(server.tools_run()) == 5


def test_same_url_for_ever_is_one_prompt_and_a_loop_error(server: McpServer) -> None:
    asker = ToldAsker()
    with pytest.raises(ElicitationRequiredError, match="same URL"):
        call(server, asker, "error_32042_forever")
    assert len(asker.requests) == 1


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_required_url_that_is_not_accepted_ends_the_call(server: McpServer, action: str) -> None:
    with pytest.raises(ElicitationRequiredError, match=action):
        call(server, ToldAsker(action), "error_32042")
    assert server.tools_run() == ["error_32042"]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("missing", "missing, empty or not a list"), ("none", "missing, empty"), ("null", "missing, empty"),
        ("empty", "missing, empty"), ("not_a_list", "not a list"), ("not_objects", "not an object"),
        ("snake", "no elicitationId"), ("blank_id", "no elicitationId"), ("blank_url", "no url"),
        ("form", "not in URL mode"),
    ],
)
def test_malformed_lists_are_a_clear_error_once(server: McpServer, kind: str, text: str) -> None:
    asker = ToldAsker()
    with pytest.raises(ElicitationRequiredError, match=text):
        call(server, asker, "error_32042_malformed", {"kind": kind})
    assert not asker.requests and len(server.tools_run()) == 1


def test_required_url_without_url_mode_is_never_declined_for_anybody(server: McpServer) -> None:
    with pytest.raises(ElicitationRequiredError, match="no handler here"):
        call(server, None, "error_32042")
    assert server.tools_run() == ["error_32042"]


# ---- both protocol generations -------------------------------------------------------------------------------------


def test_questions_in_results_are_asked_one_after_another(server: McpServer) -> None:
    busy = 0

    async def alone(request: GopherAgentElicitationRequest) -> str:
        nonlocal busy
        busy += 1
        assert busy == 1
        await asyncio.sleep(0.02)
        busy -= 1
        return "accept"

    asker = ToldAsker(alone)
    assert call(server, asker, "input_required", {"rounds": 2, "entries": 2}) == "actions: accept accept accept accept"
    assert [request.request_id_json for request in asker.requests] == ['"q0_0"', '"q0_1"', '"q1_0"', '"q1_1"']
    assert all(request.elicitation_id is None for request in asker.requests)


def test_form_in_a_result(server: McpServer) -> None:
    answer = GopherAgentElicitationResponse("accept", {"reason": "audit"})
    assert call(server, ToldAsker(answer, "form"), "input_required_form") == 'form: accept {"reason": "audit"}'


def test_one_server_serves_both_ways_of_asking(server: McpServer) -> None:
    async def both(toolset: Toolset) -> list[str]:
        return [await text_of(toolset, "decline_aware"), await text_of(toolset, "input_required"),
                await text_of(toolset, "decline_aware"), await text_of(toolset, "input_required")]  # fmt: skip

    texts = with_toolset(server.url, ToldAsker(), both)
    assert texts == ["action: accept", "actions: accept"] * 2
    runs = [(entry["tool"], entry["version"]) for entry in server.log("run")]
    # Entered once too early, before the session at 2026-07-28 was known to be needed; it had asked nobody then.
    assert runs.count(("input_required", "2025-11-25")) == 1
    assert runs.count(("decline_aware", "2025-11-25")) == 2
    assert ("decline_aware", "2026-07-28") not in runs


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_servers_of_one_generation(server_with: Callable[..., McpServer], era: str) -> None:
    server = server_with("--era", era)
    tool = "decline_aware" if era == "legacy" else "input_required"
    assert "accept" in call(server, ToldAsker(), tool)
    version = {"legacy": "2025-11-25", "modern": "2026-07-28"}[era]
    assert {entry["version"] for entry in server.log("run")} == {version}


def test_result_question_on_a_handshake_only_server_names_the_remedy(server_with: Callable[..., McpServer]) -> None:
    server = server_with("--era", "legacy")
    with pytest.raises(ServerError, match="GOPHER_MCP_PROTOCOL"):
        call(server, ToldAsker(), "input_required")
    assert server.tools_run() == ["input_required"]


def test_session_without_a_way_back_says_so(server: McpServer) -> None:
    with pytest.raises(ServerError, match="can't carry the question") as caught:
        with_toolset(server.url, ToldAsker(), lambda t: text_of(t, "decline_aware"), protocol="2026-07-28")
    assert caught.value.code == -32600 and server.tools_run() == ["decline_aware"]
