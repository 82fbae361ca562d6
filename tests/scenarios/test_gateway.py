"""A gateway with a pending sign-in asks on the session's GET stream right after the list of tools, before any call.

Both engines answer it through the agent's own handler, once, and what the call then asks again is known already. The
internal X-Gopher-Internal-... headers of the published package are not needed for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.support.servers import McpServer
from tests.support.variants import EMBEDDED, Variant, on_both

from .conftest import Played

Play = Callable[..., Played]
Gateways = Callable[..., McpServer]
MAIL, TOOL = "ada@example.com", "get_gmail_users_get_profile"
# How often the wire carries the question: on the GET stream, and in the call where the gateway repeats it there.
SENT = {"same-id": 2, "new-id": 2, "every-session": 1, "withhold": 1}


LATE = ("--gateway-delay", "0.3")


@pytest.fixture(scope="module", autouse=True)
def _started() -> Iterator[dict[tuple[str, ...], McpServer]]:
    wanted = [(kind,) for kind in SENT] + [("new-id", *LATE), ("withhold", *LATE)]
    servers = {key: McpServer("--need-allow", "--gateway", *key) for key in wanted}
    yield servers
    for server in servers.values():
        server.close()


@pytest.fixture
def gateway(_started: dict[tuple[str, ...], McpServer]) -> Gateways:
    """Gives a gateway of one kind with an empty log. Its tool works only after Allow was pressed."""

    def get(kind: str, *options: str) -> McpServer:
        return _started[(kind, *options)].clear()

    return get


@on_both
@pytest.mark.parametrize("kind", list(SENT))
def test_a_pending_sign_in_is_asked_once_and_the_tool_runs_once(
    play: Play, gateway: Gateways, variant: Variant, kind: str
) -> None:
    server = gateway(kind)
    played = play("gateway", variant, server.url)
    assert MAIL in played["runs"][0]["text"], played["runs"]
    assert len(played["requests"]) == 1
    assert server.actions() == ["accept"] * SENT[kind]
    assert server.tools_run() == [TOOL]
    assert not any(name.startswith("x-gopher") for entry in server.log("run") for name in entry["headers"])


@on_both
@pytest.mark.parametrize(
    ("kind", "action"), [("same-id", "decline"), ("new-id", "decline"), ("new-id", "cancel"), ("withhold", "decline")]
)
def test_a_refusal_stays_one_in_that_run(
    play: Play, gateway: Gateways, variant: Variant, kind: str, action: str
) -> None:
    server = gateway(kind)
    played = play("gateway", variant, server.url, answer=action)
    assert f"Authorization was not given: {action}" in played["runs"][0]["text"]
    assert len(played["requests"]) == 1
    assert server.actions() == [action] * SENT[kind]
    assert server.tools_run() == [TOOL]


@on_both
@pytest.mark.parametrize("kind", ["new-id", "withhold"])
def test_a_question_that_comes_about_when_the_call_does_is_asked_once(
    play: Play, gateway: Gateways, variant: Variant, kind: str
) -> None:
    """And the person's time counts against nothing: the run's limit is shorter."""
    server = gateway(kind, *LATE)
    played = play("gateway", variant, server.url, timeout_ms=1500, more={"seconds": 2.0})
    assert MAIL in played["runs"][0]["text"], played["runs"]
    assert len(played["requests"]) == 1 and played["most_at_once"] == 1
    assert server.tools_run() == [TOOL]


@on_both
def test_a_run_that_begins_while_the_person_is_asked_waits_for_them(
    play: Play, gateway: Gateways, variant: Variant
) -> None:
    server = gateway("every-session")
    played = play("gateway", variant, server.url, timeout_ms=1500, more={"seconds": 2.5, "pause": 0.5})
    assert MAIL in played["runs"][0]["text"], played["runs"]
    assert len(played["requests"]) == 1


@on_both
@pytest.mark.parametrize(("action", "asked"), [("accept", [1, 1, 1, 1]), ("decline", [1, 1, 2, 3])])
def test_an_acceptance_holds_for_the_agents_life_and_a_refusal_for_one_run(
    play: Play, gateway: Gateways, variant: Variant, action: str, asked: list[int]
) -> None:
    played = play("gateway", variant, gateway("same-id").url, answer=action, more={"runs": 3, "pause": 1.0})
    assert played["asked"] == asked


@on_both
def test_the_same_page_under_a_new_id_is_another_question_in_a_later_run(
    play: Play, gateway: Gateways, variant: Variant
) -> None:
    played = play("gateway", variant, gateway("new-id").url, more={"runs": 2, "pause": 1.0})
    assert played["asked"] == [1, 1, 2]


def test_a_session_that_replaces_a_forgotten_one_asks_nobody_again(play: Play, gateway: Gateways) -> None:
    """The native library never makes a second session, so this is the embedded engine's alone."""
    server = gateway("every-session")
    played = play("gateway", EMBEDDED, server.url, more={"runs": 2, "forget": True})
    assert all(MAIL in run["text"] for run in played["runs"]), played["runs"]
    assert played["asked"][-1] == 1
    assert server.actions() == ["accept", "accept"] and server.tools_run() == [TOOL, TOOL]
