"""Sign-ins that could harm somebody: wrong authorization servers, stores that fail, people asked for nothing."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gopher_mcp_python import AgentError, FileTokenStore, MemoryTokenStore
from gopher_mcp_python.oauth import privatefile
from gopher_mcp_python.oauth.challenge import Challenge, challenge_of
from gopher_mcp_python.oauth.errors import SignInError
from gopher_mcp_python.oauth.http import Http
from gopher_mcp_python.oauth.probe import probed
from gopher_mcp_python.oauth.signin import FLOW_SECONDS, ServerSignIn
from gopher_mcp_python.oauth.stores import one_process
from gopher_mcp_python.oauth_options import GopherAgentOAuthOptions, GopherAgentTokenRecord
from gopher_mcp_python.toolset.connection import HttpConnection, is_answer
from tests.support.browsing import World

# ---- wrong authorization servers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("registers", [False, True])
def test_nobody_is_sent_to_another_authorization_server_than_the_one_named(world: World, registers: bool) -> None:
    """The person would type their password into a page of somebody else's choice."""
    world.idp.add_client("desk")
    client = {} if registers else {"client_id": "desk"}
    with pytest.raises(SignInError) as caught:
        world.create(issuer="https://login.example.test", **client)
    assert caught.value.reason == "misconfigured" and "login.example.test" in str(caught.value)
    assert world.browser.visits == [] and world.idp.count("register") == 0
    world.nothing_is_kept()


class Scripted(Http):
    """The servers of a sign-in by https, without a network."""

    def __init__(self, server: str, answers: dict[str, Any]) -> None:
        super().__init__(server)
        self.answers = answers

    async def send(self, request: httpx2.Request) -> httpx2.Response:
        self.last = request
        facts = self.answers.get(str(request.url))
        self.answer = httpx2.Response(404 if facts is None else 200, json=facts, request=request)
        return self.answer


def test_a_page_without_encryption_is_not_opened_for_an_https_server() -> None:
    """MCP 2025-11-25, "Communication Security": all authorization server endpoints MUST be served over HTTPS."""
    from gopher_mcp_python.oauth.flow import Flow

    server, issuer = "https://mcp.example.test/mcp", "https://login.example.test"
    answers = {
        "https://mcp.example.test/.well-known/oauth-protected-resource/mcp": {
            "resource": server,
            "authorization_servers": [issuer],
        },
        f"{issuer}/.well-known/oauth-authorization-server": {
            "issuer": issuer,
            "authorization_endpoint": "http://login.example.test/authorize",
            "token_endpoint": f"{issuer}/token",
            "code_challenge_methods_supported": ["S256"],
        },
    }
    opened: list[str] = []

    async def person(url: str) -> tuple[str, str | None, str | None]:
        opened.append(url)
        raise SignInError("enough", "cancelled")

    async def sign_in() -> None:
        async with Scripted(server, answers) as http:
            flow = Flow(server, GopherAgentOAuthOptions(client_id="desk"), None, http)
            await flow.sign_in(Challenge(401), "http://127.0.0.1:1/callback", person)

    with pytest.raises(SignInError) as caught:
        asyncio.run(sign_in())
    assert opened == [] and caught.value.reason == "misconfigured" and "without encryption" in str(caught.value)


# ---- stores that fail ------------------------------------------------------------------------------------------------

NO_TOKEN = ("initialize", "notifications/initialized", "tools/list", "tools/call", "GET", "DELETE", "server/discover")


class Store(MemoryTokenStore):
    """Counts who reads, and fails where `fails` says."""

    def __init__(self, fails: str = "") -> None:
        super().__init__()
        self.fails, self.reads = fails, 0

    async def get(self, key: str) -> GopherAgentTokenRecord | None:
        self.reads += 1
        if self.fails == "get":
            raise OSError("the disk is full of sand")
        return await super().get(key)

    async def set(self, key: str, token: GopherAgentTokenRecord) -> None:
        if self.fails == "set":
            raise OSError("the disk is full of sand")
        await super().set(key, token)


def test_a_store_that_fails_matters_to_no_server_that_wants_no_token(world: World) -> None:
    world.store = Store("get")
    world.server.settings.open = NO_TOKEN
    with world.create() as agent:
        with pytest.raises(AgentError) as caught:
            agent.run("plain")  # which that server fails at without a token
        assert "sand" not in str(caught.value)
    connection = HttpConnection(world.server.url)
    sign_in = ServerSignIn(world.server.url, "the server", GopherAgentOAuthOptions(), world.store)
    assert asyncio.run(probed(connection, sign_in)) is None
    world.server.settings.open = ()
    with pytest.raises(SignInError, match="sand"):
        asyncio.run(probed(connection, sign_in))


def test_a_server_that_wants_no_token_costs_one_look_into_the_store(world: World) -> None:
    """A look may mean deciphering a file, or a question to a keyring."""
    world.store = store = Store()
    world.server.settings.open = NO_TOKEN
    with world.create() as agent:
        for _ in range(3):
            with pytest.raises(AgentError):
                agent.run("plain")
    assert store.reads <= 2


def test_a_token_that_can_not_be_stored_is_renewed_all_the_same(world: World) -> None:
    """The store has an older one, whose refresh token the provider would take for a stolen one."""
    world.store = store = Store()
    with world.create() as agent:
        store.fails = "set"
        for _ in range(3):
            world.idp.expire_access_tokens()
            assert agent.run("plain") == "plain: ok"
        store.fails = ""
        world.idp.expire_access_tokens()
        assert agent.run("plain") == "plain: ok"
    assert (world.idp.count("refresh"), world.idp.count("reuse"), world.sign_ins()) == (4, 0, 1)
    assert world.whoami()["subject"] == "ada", "the last one was stored"
    assert world.sign_ins() == 1


def test_a_sign_in_that_fails_leaves_what_somebody_else_has_stored(world: World) -> None:
    world.whoami()
    world.change_record(expires_at=None, refresh_token=None)
    good = world.record().access_token
    with world.create() as agent:
        world.idp.revoke_grants()
        world.idp.settings.consent = "deny"
        hold = world.idp.hold("authorize")
        with ThreadPoolExecutor() as pool:
            running = pool.submit(agent.run, "plain")
            hold.wait_reached()
            world.change_record(access_token="of-somebody-else")
            hold.release()
            assert isinstance(running.exception(20), SignInError)
    assert world.record().access_token == "of-somebody-else" != good


def test_another_process_is_waited_for_as_long_as_its_refresh_may_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before that its refresh token must not be sent a second time."""

    class Clock:
        now = 0.0

        def monotonic(self) -> float:
            return self.now

        def sleep(self, seconds: float) -> None:
            self.now += seconds

    async def renew() -> None:
        async with one_process(FileTokenStore(tmp_path / "tokens", key="of a test")):
            pass

    with privatefile.locked(FileTokenStore(tmp_path / "tokens", key="of a test").refresh_lock):
        clock = Clock()
        monkeypatch.setattr(privatefile, "time", clock)
        asyncio.run(renew())
    assert clock.now > FLOW_SECONDS


def test_a_store_that_deletes_nothing_hides_no_reason(world: World) -> None:
    world.whoami()
    world.idp.revoke_grants()
    world.idp.settings.consent = "deny"

    async def delete(key: str) -> None:
        raise OSError("the disk is full of sand")

    world.store.delete = delete  # type: ignore[method-assign]
    with pytest.raises(SignInError) as caught:
        world.create()
    assert caught.value.reason == "denied"


# ---- people asked for nothing ----------------------------------------------------------------------------------------


def test_nobody_is_asked_for_a_notification(world: World) -> None:
    """A run that was given up tells the server so; a sign-in for that would be for a run that is over."""
    with world.create() as agent:
        hold = world.idp.hold("refresh")
        world.server.before("notifications/cancelled", world.idp.revoke_grants)
        with pytest.raises(AgentError):
            agent.run('slow {"seconds": 3}', 300)
        hold.wait_reached()  # it was refused, and a token without a person was tried for it
        hold.release()
        assert json.loads(agent.run("whoami"))["subject"] == "ada"
        refused = [one["method"] for one in world.server.events("unauthorized")]
    posted = [method for method in refused if method not in ("GET", "DELETE")]
    assert posted == ["initialize", "notifications/cancelled", "tools/call"]
    assert world.sign_ins() == 2, "for the one who asked who that is"


# ---- answers to what servers ask -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ({"action": "accept", "content": {"method": "card"}}, "result"),
        ({"code": -32602, "message": "no"}, "error"),
        ({"action": "cancel"}, "result"),
        ({"name": "buy", "arguments": {"result": 1, "error": 2}}, "params"),
    ],
)
def test_an_answer_is_known_by_what_it_is(result: dict[str, Any], message: str) -> None:
    """A form may have a field of any name, a tool arguments of any name."""
    told = {"jsonrpc": "2.0", "id": 'a "method": b', **({"method": "tools/call"} if message == "params" else {})}
    body = json.dumps({**told, message: result}, separators=(",", ":")).encode()
    request = httpx2.Request("POST", "https://mcp.example.test/mcp", content=body)
    assert is_answer(request) == (message != "params")


# ---- what servers say ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", ["Bearer", 'Bearer realm="proxy"', 'Bearer scope="of another"'])
def test_a_second_challenge_takes_nothing_from_the_first(other: str) -> None:
    first = 'Bearer error="insufficient_scope", scope="admin", resource_metadata="https://mcp.example.test/about"'
    wanted = Challenge(403, "https://mcp.example.test/about", "admin")
    assert challenge_of(403, [first, other]) == wanted
    assert challenge_of(403, ["Bearer", first]) == wanted


# ---- answers that do not arrive --------------------------------------------------------------------------------------


def test_an_answer_that_is_refused_ends_the_call(world: World) -> None:
    """The server would wait for it for ever, and the run for the server."""

    def handler(request: Any) -> str:
        world.idp.revoke_grants()
        world.idp.settings.consent = "deny"
        return "accept"

    with world.create(options={"elicitation": {"handler": handler}}) as agent:
        with pytest.raises(SignInError, match="denied") as caught:
            agent.run("ask", 0)
        assert caught.value.reason == "denied"
