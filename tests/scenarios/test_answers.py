"""What is answered when, as the server sees it on the wire."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.servers import McpServer
from tests.support.variants import Variant, on_all, on_both

from .conftest import Played

Play = Callable[..., Played]
MAIL = "ada@example.com"


@on_all
def test_provider_authorization_completes_the_run(
    play: Play, server_with: Callable[..., McpServer], variant: Variant
) -> None:
    server = server_with("--need-allow")
    played = play("authorization", variant, server.url)
    assert MAIL in played["text"] and played["asked"] == 1
    assert server.actions() == ["accept"]
    assert server.tools_run() == ["get_gmail_users_get_profile"], "the tool runs once, not once more after the sign-in"
    assert [entry["event"] for entry in server.log() if entry["event"] in ("page", "allowed", "done")] == [
        "page", "allowed", "done",
    ]  # fmt: skip


@on_all
@pytest.mark.parametrize("action", ["accept", "decline", "cancel"])
def test_an_action_reaches_the_server_as_it_was_said(
    play: Play, server: McpServer, variant: Variant, action: str
) -> None:
    played = play("answer", variant, server.url, answer=action)
    assert server.actions() == [action]
    assert (MAIL in played["text"]) == (action == "accept")
    assert played["engine"] == variant.engine and played["success"]
    assert server.tools_run() == ["get_gmail_users_get_profile"]


@on_both
def test_the_handler_sees_the_whole_request_on_the_callers_thread(
    play: Play, server: McpServer, variant: Variant
) -> None:
    (request,) = play("answer", variant, server.url)["requests"]
    assert request["mode"] == "url" and request["message"] == "Sign in to Gmail to continue."
    assert request["path"] == server.provider
    assert request["elicitation_id"] == server.log("answer")[0]["id"]
    assert request["main_thread"], "a program's handler runs on the thread that called run()"
    assert request["raw"][0] == ["id", "jsonrpc", "method", "params"] and "url" in request["raw"][1]


@on_both
@pytest.mark.parametrize("policy", ["cancel", "decline"])
def test_a_policy_answers_by_itself(play: Play, server: McpServer, variant: Variant, policy: str) -> None:
    played = play("fixed_answer", variant, server.url, query="decline_aware", more={"elicitation": {"handler": policy}})
    assert server.actions() == [policy] and f"action: {policy}" in played["text"]


@on_both
def test_switched_off_means_no_capability_and_no_answer(play: Play, server: McpServer, variant: Variant) -> None:
    played = play("fixed_answer", variant, server.url, query="plain", more={"elicitation": False})
    assert "plain: ok" in played["text"]
    assert server.actions() == []
    for hello in server.log("hello"):
        assert "elicitation" not in (hello["capabilities"] or {})


@on_both
def test_elicitation_is_declared_by_default(play: Play, server: McpServer, variant: Variant) -> None:
    play("fixed_answer", variant, server.url, query="plain", more={"elicitation": None})
    declared = [hello["capabilities"] for hello in server.log("hello") if hello["capabilities"]]
    assert declared and all("url" in capabilities["elicitation"] for capabilities in declared)


@on_both
def test_a_failing_handler_cancels_and_its_cause_is_kept(play: Play, server: McpServer, variant: Variant) -> None:
    played = play("handler_error", variant, server.url)
    assert server.actions() == ["cancel", "cancel"]
    assert played["same_cause"], "the handler's own exception is on the result"
    assert played["nonsense"] == "ValueError"
    assert "ValueError" in played.err, "the cause is logged"


@on_both
@pytest.mark.parametrize("kind", ["KeyboardInterrupt", "SystemExit"])
def test_an_interrupt_in_a_handler_cancels_and_passes(
    play: Play, server: McpServer, variant: Variant, kind: str
) -> None:
    played = play("keyboard_interrupt", variant, server.url, query="decline_aware", more={"kind": kind})
    assert played["error"] == kind
    assert [entry["action"] for entry in server.wait_for("answer")] == ["cancel"]


@on_both
def test_a_handler_may_not_run_its_own_agent_but_may_dispose_it(
    play: Play, server: McpServer, variant: Variant
) -> None:
    played = play("nested", variant, server.url)
    (inner,) = played["inner"]
    assert inner["error"] == "AgentError" and inner["seconds"] < 1
    assert MAIL in played["outer"]["text"]
    assert played["disposed"]["error"] == "AgentError" and played["is_disposed"]
    assert played["disposed"]["seconds"] < 5


@on_both
@pytest.mark.parametrize("tool", ["elicit_same_id", "elicit_same_id_at_once"])
def test_one_elicitation_id_is_asked_once(play: Play, server: McpServer, variant: Variant, tool: str) -> None:
    played = play("in_order", variant, server.url, query=tool)
    assert len(played["requests"]) == 1
    assert server.actions() == ["accept", "accept"]


@on_both
@pytest.mark.parametrize("tool", ["elicit_twice", "elicit_parallel"])
def test_two_requests_are_answered_in_order(play: Play, server: McpServer, variant: Variant, tool: str) -> None:
    played = play("in_order", variant, server.url, query=tool)
    assert len(played["requests"]) == 2 and played["most_at_once"] == 1
    assert server.actions() == ["accept", "accept"]
    asked = [request["elicitation_id"] for request in played["requests"]]
    assert asked == [entry["id"] for entry in server.log("answer")]
    assert "actions: accept accept" in played["text"]


@on_both
def test_an_error_32042_is_answered_and_the_call_made_once_more(
    play: Play, server: McpServer, variant: Variant
) -> None:
    played = play("answer", variant, server.url, query="error_32042")
    assert MAIL in played["text"] and len(played["requests"]) == 1
    assert server.tools_run() == ["error_32042", "error_32042"]


@on_both
def test_the_get_stream_is_answered_too(play: Play, server: McpServer, variant: Variant) -> None:
    played = play("answer", variant, server.url, query="get_stream")
    assert server.actions() == ["accept"] and "action: accept" in played["text"]


@on_both
def test_an_authorization_url_as_text_asks_and_runs_once_more(
    play: Play, server: McpServer, variant: Variant
) -> None:
    played = play("answer", variant, server.url, query="auth_url_text")
    assert MAIL in played["text"] and len(played["requests"]) == 1
    assert server.tools_run() == ["auth_url_text", "auth_url_text"]


@on_both
def test_an_answer_is_posted_while_the_stream_stays_open(play: Play, server: McpServer, variant: Variant) -> None:
    play("answer", variant, server.url, query="withhold")
    assert server.log("withheld")[0]["seconds"] < 1


@on_both
def test_events_are_told_on_both_engines(play: Play, server: McpServer, variant: Variant) -> None:
    played = play("events", variant, server.url)
    kinds: list[Any] = played["kinds"]
    assert kinds[-1] == "run_completed" and kinds.count("run_completed") == 1
    for kind in ("iteration_start", "tool_dispatched", "tool_result", "iteration_end"):
        assert kind in kinds
    assert len(played["runs"]) == 1
