"""create_with_url against servers that want a token first: the caller's token and headers, and what their lack says
where no way to sign in is offered. Where there is one: test_oauth_signin.py and its neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gopher_mcp_python import AgentError, GopherAgent
from tests.support.servers import McpServer

TOKEN = "Qz7" + "Canaryservertoken"  # looked for in all output by the canary scan


@pytest.fixture(scope="module")
def guarded_server() -> Iterator[McpServer]:
    server = McpServer("--token", TOKEN)
    yield server
    server.close()


@pytest.fixture
def protected(guarded_server: McpServer) -> McpServer:
    return guarded_server.clear()


def create(server: McpServer, **options: Any) -> GopherAgent:
    given = {"engine": "embedded", **options}
    return GopherAgent.create_with_url("DirectProvider", "m", server.url, given)


@pytest.mark.parametrize(
    "options",
    [
        {"access_token": TOKEN},
        {"headers": {"Authorization": f"Bearer {TOKEN}"}},
        {"headers": {"authorization": f"Bearer {TOKEN}"}},
        {"access_token": "ignored", "headers": {"authorization": f"Bearer {TOKEN}"}},
        {"access_token": TOKEN, "oauth": {"mode": "disabled"}},
    ],
    ids=["token", "header", "lower case header", "header wins", "oauth disabled"],
)
def test_the_callers_own_authorization_is_sent_and_tools_can_still_ask(options: Any, protected: McpServer) -> None:
    asked: list[Any] = []

    def handler(request: Any) -> str:
        asked.append(request)
        return "accept"

    with create(protected, elicitation={"handler": handler}, **options) as agent:
        assert "ada@example.com" in agent.run("get mail profile, using get_gmail_users_get_profile")
    assert len(asked) == 1
    assert protected.actions() == ["accept"]


@pytest.mark.parametrize("options", [{}, {"access_token": TOKEN + "wrong"}, {"oauth": {"mode": "disabled"}}])
def test_without_the_right_token_the_error_says_so(options: Any, protected: McpServer) -> None:
    with pytest.raises(AgentError) as caught:
        create(protected, **options)
    text = str(caught.value).lower()
    assert "401" in text or "authoriz" in text or "token" in text
