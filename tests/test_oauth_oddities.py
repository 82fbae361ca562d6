"""Sign-in with providers, servers and stores that are odd, careless or hostile: what is told, kept and sent nowhere."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Any

import pytest

from gopher_mcp_python import AgentError, GopherAgent, GopherAgentTokenRecord
from gopher_mcp_python.oauth.errors import SignInError
from tests.support.browsing import Person, World
from tests.support.fault_proxy import FaultProxy, redirect
from tests.support.idp import IdentityProvider
from tests.support.protected import ProtectedServer


def refused(world: World, **oauth: Any) -> SignInError:
    with pytest.raises(SignInError) as caught:
        world.create(**{"timeout_ms": 5000, **oauth})
    world.nothing_is_kept()
    return caught.value


# ---- what servers say ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "header",
    [
        'bearer resource_metadata="{metadata}"',
        "Bearer resource_metadata={metadata}",
        'Bearer realm="a, b", resource_metadata="{metadata}" , error="invalid_token"',
        'Basic realm="Bearer", Bearer resource_metadata="{metadata}"',
        'Bearer resource_metadata="{metadata}", Basic realm="resource_metadata=http://127.0.0.1:9/"',
        'Bearer realm="say \\"hello\\"", resource_metadata="{metadata}"',
        'Bearer   resource_metadata = "{metadata}"',
    ],
)
def test_challenges_in_every_form(world: World, header: str) -> None:
    world.server.settings.challenge_header, world.server.settings.metadata_at = header, ("custom",)
    assert world.whoami()["subject"] == "ada"


@pytest.mark.parametrize(
    "address", ["file:///etc/passwd", "ftp://127.0.0.1/", "http://[::1", "http://", "javascript:alert(1)", "\\\\x\\y"]
)
def test_a_challenge_that_leads_nowhere(world: World, address: str) -> None:
    world.server.settings.challenge_header = f'Bearer resource_metadata="{address}"'
    assert len(str(refused(world))) < 500
    assert world.idp.log == []


@pytest.mark.parametrize("scheme", ['Basic realm="x"', 'Digest realm="x", nonce="y"', "Negotiate"])
def test_a_demand_for_something_else_is_no_sign_in(world: World, scheme: str) -> None:
    world.server.settings.challenge_header = scheme
    with pytest.raises(AgentError) as caught:
        world.create()
    assert "401" in str(caught.value)
    assert world.idp.log == []


def test_a_server_that_wants_a_token_for_tools_only(world: World) -> None:
    world.server.settings.open = ("initialize", "notifications/initialized", "tools/list", "GET", "DELETE", "ping",
                                  "server/discover")  # fmt: skip
    with world.create() as agent:
        assert json.loads(agent.run("whoami"))["subject"] == "ada"
        assert agent.run("plain") == "plain: ok"
    assert world.sign_ins() == 1


@pytest.mark.parametrize("where", ["the address", "the description", "both"])
def test_a_slash_at_the_end_is_no_other_server(world: World, where: str) -> None:
    if where != "the address":
        world.server.settings.resource = f"{world.server.url}/"
    url = world.server.url if where == "the description" else f"{world.server.url}/"
    for _ in range(2):
        with world.create(url) as agent:
            assert json.loads(agent.run("whoami"))["subject"] == "ada"
    assert world.sign_ins() == 1


def test_a_server_that_moves_to_another_provider(world: World, canary: Any) -> None:
    """What belongs to the old one is not shown to the new one."""
    world.whoami()
    before = world.idp.events("register", "authorize")
    with IdentityProvider(subject="grace") as other:
        canary.allow_shown(other.authorize_url, exact=False)
        world.server.idp = other
        try:
            assert world.whoami()["subject"] == "grace"
            other.expire_access_tokens()
            assert world.whoami()["subject"] == "grace"
        finally:
            world.server.idp = world.idp
        assert other.count("register") == 1 and other.count("refused") == 0
        assert [entry["known"] for entry in other.events("authorize")] == [True]
        assert [other.count("refresh"), other.count("token")] == [1, 1]
    assert world.idp.events("register", "authorize") == before


def test_a_provider_that_is_gone_for_good(world: World, canary: Any) -> None:
    """Its token is over and can't be renewed; the server says who its provider is now."""
    with IdentityProvider(subject="grace") as old:
        canary.allow_shown(old.authorize_url, exact=False)
        world.server.idp = old
        try:
            assert world.whoami()["subject"] == "grace"
        finally:
            world.server.idp = world.idp
    world.change_record(expires_at=time.time() - 3600)
    assert world.whoami()["subject"] == "ada"
    assert world.idp.count("authorize") == 1


def test_from_inside_an_event_loop(world: World) -> None:
    """The blocking factory does not care that a loop runs on this thread."""

    async def go() -> dict[str, Any]:
        return world.whoami()

    assert asyncio.run(go())["subject"] == "ada"


def test_a_token_follows_no_redirect(world: World) -> None:
    world.whoami()
    with FaultProxy(world.server.base) as elsewhere, FaultProxy(world.server.base) as proxy:
        world.server.settings.resource = world.server.url
        world.server.settings.audience = False
        proxy.fault("/mcp", redirect(f"{elsewhere.base}/mcp"))
        with pytest.raises(AgentError):
            world.create(f"{proxy.base}/mcp", timeout_ms=5000)
        assert elsewhere.seen == []


# ---- what providers say ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address", ["javascript:alert(1)", "file:///etc/passwd", "ftp://127.0.0.1/authorize", "authorize", "http://", ""]
)
def test_a_page_that_is_none_is_never_opened(world: World, address: str) -> None:
    world.idp.settings.members = {"authorization_endpoint": address}
    error = refused(world)
    assert error.reason == "misconfigured" and len(str(error)) < 500
    assert world.browser.visits == []


def test_parameters_of_the_page_are_kept(world: World) -> None:
    """RFC 6749 3.1: the endpoint may have a query, which must be retained."""
    world.idp.settings.members = {"authorization_endpoint": f"{world.idp.base}/authorize?tenant=a%20b&x=1"}
    assert world.whoami()["subject"] == "ada"
    visited = world.browser.visits[0].parameters
    assert (visited["tenant"], visited["x"], visited["response_type"]) == ("a b", "1", "code")


def test_the_token_endpoint_may_have_a_query(world: World) -> None:
    world.idp.settings.members = {"token_endpoint": f"{world.idp.base}/token?tenant=1"}
    assert world.whoami()["subject"] == "ada"


@pytest.mark.parametrize("name", ["token_endpoint", "registration_endpoint"])
@pytest.mark.parametrize("address", ["ftp://127.0.0.1/token", "file:///etc/passwd", "nonsense"])
def test_endpoints_that_are_none(world: World, name: str, address: str) -> None:
    world.idp.settings.members = {name: address}
    assert refused(world).reason == "misconfigured"
    assert world.sign_ins() == 0


@pytest.mark.parametrize(
    "members",
    [
        {"unknown_member": {"a": [1, None]}},
        {"scopes_supported": []},
        {"token_endpoint_auth_methods_supported": ["none", "tls_client_auth"]},
        {"grant_types_supported": None},
        {"code_challenge_methods_supported": ["plain", "S256"]},
        {"service_documentation": ""},
    ],
    ids=lambda members: next(iter(members)),
)
def test_metadata_with_more_and_with_less(world: World, members: dict[str, Any]) -> None:
    world.idp.settings.members = members
    assert world.whoami()["subject"] == "ada"


ESCAPES = "\x1b[2J\x1b]0;owned\x07 then\u202e\u200b text\r\nSecond line"


@pytest.mark.parametrize("step", ["authorize", "register", "token"])
def test_what_a_provider_says_is_shown_inert_and_short(world: World, step: str) -> None:
    world.idp.settings.error_description = ESCAPES + "x" * 5000
    if step == "authorize":
        world.idp.settings.authorize_error = "invalid_scope"
    elif step == "register":
        world.idp.settings.registration = "refused"
    else:
        world.idp.settings.token_error = "invalid_grant"
    text = str(refused(world))
    assert "text" in text and len(text) < 700
    assert not any(character in text for character in "\x1b\x07\u202e\u200b\r\n")


@pytest.mark.parametrize("step", ["token", "refresh", "authorize"])
def test_a_provider_that_echoes_secrets(world: World, step: str, canary: Any) -> None:
    """What it says is left out rather than shown: the canary looks at every text."""
    client = world.idp.add_client("app-1", method="client_secret_post")
    given = {"client_id": "app-1", "client_secret": client.secret, "token_endpoint_auth_method": client.method}
    world.idp.settings.error_description = "I do not like {secrets}"
    if step == "authorize":
        world.idp.settings.authorize_error = "server_error"
        refused(world, **given)
    elif step == "token":
        world.idp.settings.token_error = "invalid_grant"
        refused(world, **given)
    else:
        with world.create(**given) as agent:
            world.idp.expire_access_tokens()
            world.idp.settings.token_error = "temporarily_unavailable"
            world.idp.settings.consent = "deny"
            with pytest.raises(AgentError) as caught:
                agent.run("plain")
        canary.check_exception("the run's error", caught.value)


@pytest.mark.parametrize(
    "members",
    [
        {"token_type": "bearer"},
        {"token_type": "BEARER"},
        {"expires_in": "3600"},
        {"expires_in": 3600.0},
        {"expires_in": None},
        {"scope": ""},
        {"scope": None},
        {"refresh_token": None},
        {"refresh_token": ""},
        {"id_token": "x.y.z", "foo": {"bar": []}},
    ],
    ids=str,
)
def test_token_replies_that_will_do(world: World, members: dict[str, Any]) -> None:
    world.idp.settings.reply_members = members
    assert world.whoami()["subject"] == "ada"
    assert world.record().refresh_token != ""


@pytest.mark.parametrize(
    "members",
    [
        {"token_type": "DPoP"},
        {"token_type": "mac"},
        {"access_token": None},
        {"access_token": ""},
        {"access_token": ["a"]},
        {"access_token": "two words\r\nX-Evil: 1"},
        {"access_token": "schlüssel"},
        {"access_token": "a\x00b"},
    ],
    ids=str,
)
def test_token_replies_that_will_not(world: World, members: dict[str, Any]) -> None:
    world.idp.settings.reply_members = members
    error = refused(world)
    assert error.reason in ("misconfigured", "refused") and len(str(error)) < 500
    (visit,) = world.browser.finished()
    assert "you are signed in" not in visit.page.words.lower()


@pytest.mark.parametrize("seconds", [0, -5, 1, 10])
def test_tokens_that_end_at_once_are_used_all_the_same(world: World, seconds: int) -> None:
    """Some providers count wrongly. A token that works is not renewed for each message."""
    world.idp.settings.reply_members = {"expires_in": seconds}
    with world.create() as agent:
        assert json.loads(agent.run("whoami"))["subject"] == "ada"
        assert agent.run("plain") == "plain: ok"
    assert world.sign_ins() == 1
    assert world.idp.count("refresh") <= 3


def test_a_huge_token(world: World) -> None:
    world.idp.settings.reply_members = {"access_token": "t" * 200_000}
    with pytest.raises(AgentError) as caught:
        world.create(timeout_ms=5000)
    assert len(str(caught.value)) < 500


# ---- stores ----------------------------------------------------------------------------------------------------------


class Plain:
    """A store of somebody's own: the three methods of the protocol. Fails where `fails` says."""

    def __init__(self, fails: str = "") -> None:
        self.kept: dict[str, GopherAgentTokenRecord] = {}
        self.fails = fails

    async def get(self, key: str) -> GopherAgentTokenRecord | None:
        if self.fails == "get":
            raise OSError("the disk is full of sand")
        return self.kept.get(key)

    async def set(self, key: str, token: GopherAgentTokenRecord) -> None:
        if self.fails == "set" or (self.fails == "set token" and not key.endswith("/client")):
            raise OSError("the disk is full of sand")
        self.kept[key] = token

    async def delete(self, key: str) -> None:
        self.kept.pop(key, None)


def test_a_store_of_somebodys_own(world: World) -> None:
    world.store = Plain()  # type: ignore[assignment]
    for _ in range(2):
        world.idp.expire_access_tokens()
        assert world.whoami()["subject"] == "ada"
    assert world.sign_ins() == 1 and world.idp.count("refresh") == 1


def test_a_store_that_can_not_be_read(world: World) -> None:
    store = Plain("get")
    world.store = store  # type: ignore[assignment]
    with pytest.raises(AgentError) as caught:
        world.create(timeout_ms=5000)
    assert "store" in str(caught.value) and "sand" in str(caught.value)
    assert world.sign_ins() == 0
    store.fails = ""
    assert world.whoami()["subject"] == "ada"


@pytest.mark.parametrize("fails", ["set", "set token"])
def test_a_store_that_can_not_be_written(world: World, fails: str, caplog: pytest.LogCaptureFixture) -> None:
    """The person has signed in: the agent works, and a warning says that the next one will ask again."""
    store = Plain(fails)
    world.store = store  # type: ignore[assignment]
    assert world.whoami()["subject"] == "ada"
    assert any("sand" in record.getMessage() for record in caplog.records)
    assert not [key for key in store.kept if not key.endswith("/client")]
    store.fails = ""
    assert world.whoami()["subject"] == "ada"
    assert world.sign_ins() == 2


@pytest.mark.parametrize("damage", ["nothing", "garbage", "json", "other shapes"])
def test_a_damaged_registration_is_made_anew(world: World, damage: str) -> None:
    store = Plain()
    world.store = store  # type: ignore[assignment]
    world.whoami()
    texts = {"garbage": "{{{", "json": "[1]", "other shapes": '{"client": {"client_id": 5}, "server": {"issuer": 1}}'}
    (key,) = [key for key in store.kept if key.endswith("/client")]
    if damage == "nothing":
        del store.kept[key]
    else:
        store.kept[key] = GopherAgentTokenRecord(texts[damage])
    world.idp.expire_access_tokens()
    assert world.whoami()["subject"] == "ada"
    assert world.sign_ins() == 2 and world.idp.count("register") == 2


# ---- calling off -----------------------------------------------------------------------------------------------------


def test_a_run_that_is_called_off_loses_no_refresh_token(world: World) -> None:
    """A refresh that has gone out is completed and stored: the provider has rotated the token."""
    options = {"engine": "embedded", "oauth": {"token_store": world.store}}

    async def go() -> str:
        agent = await GopherAgent.create_with_url_async("DirectProvider", "m", world.server.url, options)
        try:
            world.idp.expire_access_tokens()
            hold = world.idp.hold("refresh")
            running = asyncio.ensure_future(agent.run_async("plain"))
            await asyncio.to_thread(hold.wait_reached)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            hold.release()
            return str(await agent.run_async("plain"))
        finally:
            agent.dispose()

    assert asyncio.run(go()) == "plain: ok"
    assert world.sign_ins() == 1 and world.idp.count("refresh") == 1 and world.idp.count("reuse") == 0


def test_an_agent_that_is_disposed_during_a_sign_in(world: World) -> None:
    with world.create() as agent:
        world.idp.revoke_grants()
        world.browser.person = Person(stop_at_callback=True)
        errors: list[BaseException] = []

        def run() -> None:
            try:
                agent.run("plain")
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=run)
        visits = len(world.browser.visits)
        thread.start()
        end = threading.Event()
        while len(world.browser.visits) == visits:
            assert not end.wait(0.01)
        agent.dispose()
        thread.join(20)
    assert not thread.is_alive()
    assert len(errors) == 1 and isinstance(errors[0], AgentError)


def test_one_step_up_for_two_runs_at_once(world: World) -> None:
    with world.create() as one, world.create() as other:
        hold = world.idp.hold("authorize")
        done: list[str] = []
        threads = [threading.Thread(target=lambda a=a: done.append(a.run("needs_admin"))) for a in (one, other)]
        for thread in threads:
            thread.start()
        hold.wait_reached()
        end = threading.Event()
        while world.server.count("forbidden") < 2:
            assert not end.wait(0.01)
        hold.release()
        for thread in threads:
            thread.join(20)
    assert done == ["admin: mcp admin"] * 2
    assert world.sign_ins() == 2


def test_two_servers_of_one_provider(world: World) -> None:
    with ProtectedServer(world.idp, suffix="_b") as server:
        config = json.dumps({"servers": [{"name": "a", "url": world.server.url}, {"name": "b", "url": server.url}]})
        options = {"engine": "embedded", "oauth": {"token_store": world.store}}
        with GopherAgent.create_with_server_config("DirectProvider", "m", config, options) as agent:
            assert json.loads(agent.run("whoami"))["subject"] == "ada"
            assert json.loads(agent.run("whoami_b"))["subject"] == "ada"
        resources = {entry["resource"] for entry in world.idp.events("token")}
        assert resources == {world.server.url, server.url} and len(world.keys()) == 2


def test_who_signs_in_anew_may_be_somebody_else(world: World) -> None:
    """The server's session belongs to the first one: it is not found for the other, who gets one of their own."""
    with world.create() as agent:
        assert json.loads(agent.run("whoami"))["subject"] == "ada"
        world.idp.revoke_grants()
        world.idp.settings.subject = "grace"
        assert json.loads(agent.run("whoami"))["subject"] == "grace"
    assert world.sign_ins() == 2


def test_many_threads_and_a_token_that_keeps_ending(world: World) -> None:
    world.whoami()
    failures: list[BaseException] = []

    def work() -> None:
        try:
            with world.create() as agent:
                for _ in range(3):
                    world.idp.expire_access_tokens()
                    assert agent.run("plain") == "plain: ok"
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert world.idp.count("reuse") == 0
    # Six threads that let each other's tokens end: a new one may be over before it is used, which looks like a server
    # that takes none. Then a person is asked, or the attempts are over; but in no other way.
    assert all("401" in str(error) for error in failures)


def test_without_a_store_the_process_has_one(world: World) -> None:
    from gopher_mcp_python.oauth.stores import resolve_store

    try:
        assert world.whoami(token_store=None)["subject"] == "ada"
        assert world.whoami(token_store=None)["subject"] == "ada"
        assert world.sign_ins() == 1
    finally:
        asyncio.run(resolve_store(None).clear())  # type: ignore[attr-defined]


def test_a_name_is_shown_inert(world: World, capfd: pytest.CaptureFixture[str]) -> None:
    config = json.dumps({"servers": [{"name": "mail\x1b[2J\u202e\r\nHost: trusted", "url": world.server.url}]})
    options = {"engine": "embedded", "oauth": {"token_store": world.store}}
    with GopherAgent.create_with_server_config("DirectProvider", "m", config, options) as agent:
        assert json.loads(agent.run("whoami"))["subject"] == "ada"
    shown = capfd.readouterr().err
    assert "mail" in shown and "\x1b" not in shown and "\u202e" not in shown
    assert not any(line.startswith("Host: trusted") for line in shown.splitlines())
    (visit,) = world.browser.finished()
    assert visit.page.status == 200 and "\x1b" not in visit.page.text


def test_secrets_in_the_servers_address_stay_there(world: World, canary: Any) -> None:
    with world.create(f"{world.server.url}?api_key={canary.secret('query')}") as agent:
        assert json.loads(agent.run("whoami"))["subject"] == "ada"
    assert world.idp.events("authorize")[0]["resource"] == world.server.url
    print(world.keys())  # looked at by the canary


# ---- redirects and clients of the caller's own -----------------------------------------------------------------------


@pytest.mark.parametrize("uri", ["http://localhost/signed-in", "http://127.0.0.1/signed-in?a=b", "http://[::1]/x"])
def test_a_redirect_of_the_callers(world: World, uri: str) -> None:
    world.idp.settings.loopback_ports = "free"
    assert world.whoami(redirect_uri=uri)["subject"] == "ada"
    asked = world.idp.events("authorize")[0]["redirect_uri"]
    assert asked.startswith(uri.split("/")[0] + "//" + uri.split("/")[2] + ":")
    assert asked.endswith(uri.split("/", 3)[3])


@pytest.mark.parametrize("method", [None, "client_secret_basic", "client_secret_post"])
def test_a_program_signs_in_by_itself(world: World, method: str | None) -> None:
    client = world.idp.add_client("job", method=method or "client_secret_basic")
    given = {"grant": "client_credentials", "client_id": "job", "client_secret": client.secret}
    if method:
        given["token_endpoint_auth_method"] = method
    with world.create(**given) as agent:
        assert json.loads(agent.run("whoami"))["subject"] == "job"
        world.idp.expire_access_tokens()
        assert agent.run("plain") == "plain: ok"
        assert agent.run("needs_admin") == "admin: mcp admin"
    assert world.whoami(**given)["subject"] == "job"
    assert world.sign_ins() == 0 and world.browser.visits == [] and world.idp.count("token") == 3


def test_a_wrong_secret_is_told(world: World, canary: Any) -> None:
    world.idp.add_client("job", method="client_secret_basic")
    error = refused(world, grant="client_credentials", client_id="job", client_secret=canary.secret("guessed"))
    assert error.reason == "refused" and "invalid_client" in str(error)
