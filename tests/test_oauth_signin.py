"""First-step sign-in on the embedded engine by the public factories: a real provider, protected servers, a browser.

The person is tests/support/browsing.Browser, which does what a browser does with the page that the product opens.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from gopher_mcp_python import AgentError, ApiKeyError, GopherAgent, MemoryTokenStore
from gopher_mcp_python.oauth.errors import SignInError
from tests.support.browsing import FakeTime, Person, World
from tests.support.fault_proxy import FaultProxy, status
from tests.support.idp import IdentityProvider
from tests.support.protected import ProtectedServer

OAUTH, OIDC = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
QUICKLY = {"timeout_ms": 400}  # for a person who does not come back


def refused(world: World, url: str | None = None, **oauth: Any) -> SignInError:
    """The error of a sign-in that must fail, with no token left behind."""
    with pytest.raises(SignInError) as caught:
        world.create(url, **oauth)
    world.nothing_is_kept()
    return caught.value


# ---- success ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("token_format", ["opaque", "jwt"])
def test_a_person_signs_in_once(world: World, token_format: str) -> None:
    world.idp.settings.token_format = token_format
    assert world.whoami() == {"subject": "ada", "scopes": ["mcp"], "issuer": world.idp.issuer}
    assert world.whoami()["subject"] == "ada", "a stored token needs no person"
    assert world.sign_ins() == 1 and world.idp.count("register") == 1
    (visit,) = world.browser.finished()
    assert visit.page.status == 200 and "signed in" in visit.page.words.lower()
    asked = world.idp.events("authorize")[0]
    assert asked["pkce"] == "S256" and asked["resource"] == world.server.url and asked["has_state"]
    redirect = urllib.parse.urlsplit(asked["redirect_uri"])
    assert redirect.hostname == "127.0.0.1" and redirect.port
    assert world.server.refusals() == 1


def test_the_registration_names_a_native_public_program(world: World) -> None:
    world.whoami(client_name="Ada's program")
    (asked,) = world.idp.events("register")
    assert asked["client_name"] == "Ada's program"
    assert asked["method"] == "none" and asked["application_type"] == "native"
    assert "refresh_token" in asked["grant_types"]


def test_a_page_with_buttons(world: World) -> None:
    world.idp.settings.consent = "page"
    assert world.whoami()["subject"] == "ada"


def test_debug_output_holds_no_secret(world: World, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    monkeypatch.setenv("GOPHER_MCP_OAUTH_DEBUG", "1")
    world.server.before("plain", world.idp.expire_access_tokens)
    with world.create() as agent:
        agent.run("plain")
    assert world.idp.count("refresh") == 1
    assert capfd.readouterr().err.strip(), "nothing was shown at all"  # looked through by the canary


def test_sign_in_and_elicitation_do_not_meet(world: World) -> None:
    asked: list[Any] = []

    def handler(request: Any) -> str:
        asked.append(request)
        return "accept"

    world.server.before("ask", world.idp.expire_access_tokens)
    with world.create(options={"elicitation": {"handler": handler}}) as agent:
        assert agent.run("ask") == "action: accept"
    assert [request.message for request in asked] == ["Please allow access."]
    assert world.sign_ins() == 1 and world.idp.count("refresh") == 1


@pytest.mark.parametrize("how", ["expires", "is revoked"])
@pytest.mark.parametrize("transport", ["http", "sse"])
def test_a_token_that_ends_while_a_person_answers_something(world: World, how: str, transport: str) -> None:
    """The answer itself is refused first; it reaches the server all the same, once."""

    def handler(request: Any) -> str:
        if how == "expires":
            world.idp.expire_access_tokens()
        else:
            world.idp.revoke_grants()
        return "accept"

    url = world.server.url if transport == "http" else world.server.sse_url
    config = json.dumps({"servers": [{"name": "a", "url": url, "transport": transport}]})
    options = {"engine": "embedded", "oauth": {"token_store": world.store}, "elicitation": {"handler": handler}}
    with GopherAgent.create_with_server_config("DirectProvider", "m", config, options) as agent:
        assert agent.run("ask") == "action: accept"
    assert world.sign_ins() == (1 if how == "expires" else 2)
    assert world.server.calls() == [("ask", 1)]


def test_disabled_means_disabled(world: World) -> None:
    with pytest.raises(AgentError) as caught:
        world.create(mode="disabled")
    assert "401" in str(caught.value)
    assert world.idp.log == [] and world.server.count("metadata") == 0


def test_who_brings_a_token_is_not_signed_in(world: World, canary: Any) -> None:
    for options in ({"access_token": canary.secret("own")}, {"headers": canary.headers()}):
        with pytest.raises(AgentError):
            world.create(options=options)
    assert world.idp.log == []


def test_the_older_transport(world: World) -> None:
    config = json.dumps({"servers": [{"name": "old", "url": world.server.sse_url, "transport": "sse"}]})
    options = {"engine": "embedded", "oauth": {"token_store": world.store}}
    with GopherAgent.create_with_server_config("DirectProvider", "m", config, options) as agent:
        assert json.loads(agent.run("whoami"))["subject"] == "ada"
        world.idp.expire_access_tokens()
        assert agent.run("plain") == "plain: ok"
    assert world.sign_ins() == 1 and world.idp.count("refresh") == 1


# ---- discovery -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("challenge", ["metadata", "bare", "none"])
@pytest.mark.parametrize("at", ["path", "root", "custom"])
def test_resource_metadata_are_found(world: World, challenge: str, at: str) -> None:
    world.server.settings.challenge, world.server.settings.metadata_at = challenge, (at,)
    if at == "custom" and challenge != "metadata":
        # Nothing says where they are, so the server's own origin is asked (2025-03-26), where no provider is.
        with pytest.raises(ApiKeyError, match="access_token"):
            world.create()
        assert world.sign_ins() == 0 and world.keys() == []
    else:
        assert world.whoami()["subject"] == "ada"
        assert world.idp.events("authorize")[0]["resource"] == world.server.url


@pytest.mark.parametrize(
    ("metadata", "path", "found_at"),
    [
        ("oauth", "", OAUTH),
        ("oauth", "/tenant1", OAUTH + "/tenant1"),
        ("oidc-appended", "", OIDC),
        ("oidc-inserted", "/tenant1", OIDC + "/tenant1"),
        ("oidc-appended", "/tenant1", "/tenant1" + OIDC),
        ("both", "/tenant1", OAUTH + "/tenant1"),
    ],
)
def test_provider_metadata_are_found(world: World, metadata: str, path: str, found_at: str) -> None:
    world.idp.reset(metadata=metadata, issuer_path=path)
    assert world.whoami()["issuer"] == world.idp.issuer
    asked = [entry for entry in world.idp.events("http") if "well-known" in entry["path"]]
    assert [entry["path"] for entry in asked if entry["status"] == 200] == [found_at]


@pytest.mark.parametrize("metadata", ["none", "oauth"])
def test_a_server_of_2025_03_26_is_its_own_provider(world: World, metadata: str, canary: Any) -> None:
    with IdentityProvider(metadata=metadata) as idp, ProtectedServer(idp, legacy=True, audience=False) as server:
        canary.allow_shown(server.base, exact=False)
        assert world.whoami(server=server)["issuer"] == server.base
        refused = server.refusals()
        idp.expire_access_tokens()
        assert world.whoami(server=server)["subject"] == "ada"
        assert server.refusals() == refused + 1
        assert idp.count("authorize") == 1 and idp.count("refresh") == 1
    assert world.idp.log == []


def test_a_provider_without_metadata_elsewhere_is_refused(world: World) -> None:
    world.idp.settings.metadata = "none"
    error = refused(world)
    assert error.reason in ("refused", "misconfigured")
    assert world.sign_ins() == 0


@pytest.mark.parametrize("metadata", ["none", "unwell"])
def test_a_registered_client_is_not_shown_to_the_server_instead(world: World, metadata: str, canary: Any) -> None:
    """The server names its provider: where that describes itself badly, nothing falls back on the server's own origin,
    which would get the client's secret."""
    client = world.idp.add_client("app-1", method="client_secret_post")
    world.idp.settings.metadata = "none"
    canary.allow_shown(world.server.base, exact=False)
    with FaultProxy(world.idp.base) as proxy:
        if metadata == "unwell":
            proxy.fault("*", status(500))
        world.server.settings.authorization_servers = (proxy.base,)
        error = refused(world, client_id="app-1", client_secret=client.secret, **QUICKLY)
    assert error.reason in (("unavailable",) if metadata == "unwell" else ("refused", "misconfigured"))
    assert world.browser.visits == []


@pytest.mark.parametrize("told", ["https://somebody.example.test", "{base}/tenant2", "{base}/"])
def test_metadata_of_another_issuer_are_refused(world: World, told: str) -> None:
    world.idp.settings.issuer_told = told.format(base=world.idp.base)
    error = refused(world)
    assert error.reason == "misconfigured" and "issuer" in str(error)
    assert world.idp.paths() == [f"GET {OAUTH}"]


@pytest.mark.parametrize("resource", ["https://somebody.example.test/mcp", "{base}/other", "{base}/mcp/deeper"])
def test_metadata_of_another_resource_are_refused(world: World, resource: str) -> None:
    world.server.settings.resource = resource.format(base=world.server.base)
    error = refused(world)
    assert error.reason == "misconfigured" and "resource" in str(error)
    assert world.idp.log == []


def test_a_parent_of_the_server_is_its_resource(world: World) -> None:
    world.server.settings.resource, world.server.settings.audience = world.server.base, False
    assert world.whoami()["subject"] == "ada"
    assert world.idp.events("authorize")[0]["resource"].rstrip("/") == world.server.base


def test_the_first_of_several_authorization_servers_is_taken(world: World) -> None:
    with IdentityProvider() as other:
        world.server.settings.authorization_servers = (world.idp.issuer, other.issuer)
        assert world.whoami()["issuer"] == world.idp.issuer
        assert other.log == []


@pytest.mark.parametrize("methods", [None, ("plain",)])
def test_a_provider_without_pkce_is_refused(world: World, methods: tuple[str, ...] | None) -> None:
    """Specification 2025-11-25: clients must refuse where S256 is not among code_challenge_methods_supported."""
    world.idp.settings.pkce_methods, world.idp.settings.pkce = methods, "refused"
    error = refused(world)
    assert "PKCE" in str(error) or "S256" in str(error)
    assert world.sign_ins() == 0


def test_a_provider_that_refuses_pkce_after_all(world: World) -> None:
    world.idp.settings.pkce = "refused"
    error = refused(world)
    assert error.reason == "refused" and "invalid_request" in str(error)


# ---- clients ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["none", "client_secret_basic", "client_secret_post"])
def test_a_registered_client_authenticates_as_it_should(world: World, method: str) -> None:
    client = world.idp.add_client("app-1", method=method)
    given = {"client_id": "app-1", "client_secret": client.secret, "token_endpoint_auth_method": method}
    assert world.whoami(**given)["subject"] == "ada"
    world.idp.expire_access_tokens()
    assert world.whoami(**given)["subject"] == "ada"
    assert [entry["method"] for entry in world.idp.events("token", "refresh")] == [method, method]
    assert world.idp.count("register") == 0 and world.sign_ins() == 1


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
def test_the_method_is_the_one_that_the_provider_can_do(world: World, method: str) -> None:
    world.idp.settings.auth_methods = (method,)
    client = world.idp.add_client("app-1", method=method)
    assert world.whoami(client_id="app-1", client_secret=client.secret)["subject"] == "ada"
    assert world.idp.events("token")[0]["method"] == method


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
def test_a_provider_may_register_another_method_than_asked_for(world: World, method: str) -> None:
    world.idp.settings.registered_method = method
    assert world.whoami()["subject"] == "ada"
    world.idp.expire_access_tokens()
    assert world.whoami()["subject"] == "ada"
    assert [entry["method"] for entry in world.idp.events("token", "refresh")] == [method, method]


@pytest.mark.parametrize(
    ("settings", "reason", "words"),
    [
        ({"registration": "off"}, ("misconfigured", "refused"), "client_id"),
        ({"registration": "refused"}, ("refused",), "invalid_client_metadata"),
        ({"registration": "forbidden"}, ("refused",), "403"),
        ({"registration": "broken"}, ("misconfigured",), "registration"),
        ({"registered_method": "tls_client_auth"}, ("misconfigured",), "authentication"),
    ],
    ids=["off", "refused", "forbidden", "broken", "odd method"],
)
def test_without_a_registration_nobody_is_sent_anywhere(
    world: World, settings: dict[str, Any], reason: tuple[str, ...], words: str
) -> None:
    world.idp.reset(**settings)
    error = refused(world)
    assert error.reason in reason and words in str(error)
    assert world.sign_ins() == 0


def test_a_client_metadata_document_is_a_client(world: World) -> None:
    world.idp.settings.documents = True
    address = "https://app.example.test/client.json"
    assert world.whoami(client_metadata_url=address)["subject"] == "ada"
    assert world.idp.events("authorize")[0]["client_id"] == address
    world.idp.expire_access_tokens()
    assert world.whoami(client_metadata_url=address)["subject"] == "ada"
    assert world.idp.count("register") == 0 and world.sign_ins() == 1


def test_where_documents_are_not_taken_the_program_registers(world: World) -> None:
    assert world.whoami(client_metadata_url="https://app.example.test/client.json")["subject"] == "ada"
    assert world.idp.count("register") == 1


@pytest.mark.parametrize("ports", ["free", "exact"])
def test_a_second_sign_in_uses_a_registered_redirect(world: World, ports: str) -> None:
    """Also where the provider wants the very port that was registered."""
    world.idp.settings.loopback_ports = ports
    world.whoami()
    world.idp.revoke_grants()
    assert world.whoami()["subject"] == "ada"
    asked = world.idp.events("authorize")
    assert len(asked) == 2 and all(entry["known"] for entry in asked)


def test_a_provider_that_lost_its_registrations(world: World) -> None:
    world.whoami()
    world.idp.forget_clients()
    world.idp.expire_access_tokens()
    assert world.whoami(timeout_ms=5000)["subject"] == "ada"
    assert world.idp.count("register") == 2 and all(entry["known"] for entry in world.idp.events("authorize"))


# ---- scopes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("server", "idp", "oauth", "asked"),
    [
        ({}, {}, {}, None),
        ({"scopes_supported": ("mcp", "files")}, {}, {}, "mcp files"),
        ({"scopes_supported": ("mcp", "files"), "challenge_scope": "mcp"}, {}, {}, "mcp"),
        ({"scopes_supported": ("mcp", "files")}, {}, {"scopes": ["files"]}, "files"),
        ({"challenge_scope": "mcp"}, {"scopes_supported": ("mcp", "offline_access")}, {}, "mcp offline_access"),
    ],
)
def test_scopes_that_are_asked_for(
    world: World, server: dict[str, Any], idp: dict[str, Any], oauth: dict[str, Any], asked: str | None
) -> None:
    world.server.reset(**server)
    world.idp.reset(**idp)
    world.whoami(**oauth)
    assert world.idp.events("authorize")[0]["scope"] == asked


def test_tokens_are_not_shared_between_scopes_and_clients(world: World) -> None:
    world.idp.add_client("app-1")
    for oauth in ({}, {"scopes": ["mcp"]}, {"scopes": ["files", "mcp"]}, {"client_id": "app-1"}):
        told = [world.whoami(**oauth)["scopes"] for _ in range(2)]
        assert told[0] == told[1] == oauth.get("scopes", ["mcp"])
    assert world.whoami(scopes=["mcp", "files"])["scopes"] == ["files", "mcp"], "the same ones in another order"
    assert world.sign_ins() == 4 and len(world.keys()) == 4


def test_offline_access_brings_the_refresh_token(world: World) -> None:
    world.idp.reset(refresh="offline_access", scopes_supported=("mcp", "offline_access"))
    world.server.settings.scopes_supported = ("mcp",)
    world.whoami()
    world.idp.expire_access_tokens()
    world.whoami()
    assert world.sign_ins() == 1 and world.idp.count("refresh") == 1
    assert world.idp.events("authorize")[0]["prompt"] == "consent"


def test_step_up_asks_for_more_and_keeps_what_was_granted(world: World) -> None:
    with world.create() as agent:
        assert agent.run("needs_admin") == "admin: mcp admin"
        assert agent.run("needs_admin") == "admin: mcp admin"
        assert json.loads(agent.run("whoami"))["scopes"] == ["mcp", "admin"]
    assert [entry["scope"] for entry in world.idp.events("allowed")] == ["mcp", "mcp admin"]
    assert world.server.count("forbidden") == 1


def test_a_token_of_an_earlier_run_is_stepped_up_too(world: World) -> None:
    world.whoami()
    with world.create() as agent:
        assert agent.run("needs_admin") == "admin: mcp admin"
    assert world.sign_ins() == 2 and world.idp.count("register") == 1


@pytest.mark.parametrize("names_all", [False, True])
@pytest.mark.parametrize("why", ["never enough", "never granted"])
def test_step_up_has_an_end(world: World, why: str, names_all: bool) -> None:
    world.server.settings.names_all_scopes = names_all
    if why == "never enough":
        world.server.settings.admin_satisfiable = False
    else:
        world.idp.settings.grantable = ("mcp",)
    with world.create() as agent:
        for _ in range(2):
            with pytest.raises(AgentError) as caught:
                agent.run("needs_admin")
            assert "403" in str(caught.value) or "scope" in str(caught.value)
        assert json.loads(agent.run("whoami"))["subject"] == "ada", "the token that was there is still good"
    assert 2 <= world.sign_ins() <= 4


def test_after_a_new_sign_in_step_up_begins_anew(world: World) -> None:
    with world.create() as agent:
        assert agent.run("needs_admin") == "admin: mcp admin"
        world.idp.revoke_grants()
        assert agent.run("needs_admin") == "admin: mcp admin"


def test_step_up_with_a_token_that_somebody_else_renewed(world: World) -> None:
    """The token of the store is a newer one, but good for no more: a person is needed all the same."""
    with world.create() as agent:
        world.change_record(expires_at=time.time() - 3600)
        assert world.whoami()["subject"] == "ada"
        assert world.idp.count("refresh") == 1
        assert agent.run("needs_admin") == "admin: mcp admin"


def test_a_403_of_another_kind_asks_nobody(world: World) -> None:
    world.server.before("plain", lambda: setattr(world.server.settings, "forbid_all", "access_denied"))
    with world.create() as agent:
        with pytest.raises(AgentError) as caught:
            agent.run("plain")
        assert "403" in str(caught.value)
    assert world.sign_ins() == 1


def test_a_server_that_takes_no_token_at_all(world: World) -> None:
    world.server.settings.refuse_all = True
    with pytest.raises(AgentError) as caught:
        world.create()
    assert "401" in str(caught.value) or "token" in str(caught.value)
    assert world.sign_ins() <= 2


# ---- denial, strays, wrong answers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("consent", ["deny", "page"])
def test_a_denial_is_told_everywhere(world: World, consent: str) -> None:
    world.idp.settings.consent = consent
    world.browser.person = Person(allow=False)
    error = refused(world)
    assert error.reason == "denied"
    (visit,) = world.browser.finished()
    assert "you are signed in" not in visit.page.words.lower()
    assert world.idp.count("token") == 0
    world.idp.settings.consent = "auto"
    assert world.whoami()["subject"] == "ada", "another attempt is free to succeed"


def test_an_error_of_the_provider_is_told(world: World) -> None:
    world.idp.settings.authorize_error = "server_error"
    error = refused(world)
    assert error.reason in ("refused", "unavailable") and "server_error" in str(error)


@pytest.mark.parametrize("state", ["wrong", "missing"])
def test_a_redirect_without_the_right_state_is_none(world: World, state: str) -> None:
    world.idp.settings.state = state
    assert refused(world, **QUICKLY).reason == "timeout"
    assert world.idp.count("token") == 0
    (visit,) = world.browser.finished()
    assert visit.page.status == 400


def test_strays_and_repeats_change_nothing(world: World, canary: Any) -> None:
    stray = urllib.parse.urlencode({"error": "access_denied", "state": canary.secret("stray")})
    forged = urllib.parse.urlencode({"code": canary.secret("forged"), "state": canary.secret("stray")})
    strays = ["/favicon.ico", "/callback", f"/callback?{stray}", f"/callback?{forged}"]
    world.browser.person = Person(strays=strays, repeats=1)
    assert world.whoami()["subject"] == "ada"
    (visit,) = world.browser.finished()
    assert visit.page.status == 200 and [page.status for page in visit.pages[1:5]] == [404, 400, 400, 400]
    assert visit.pages[5].status in (0, 400), "the listener has gone, or says that it was here before"


@pytest.mark.parametrize("iss", ["wrong", "missing"])
def test_an_answer_of_another_issuer_is_refused(world: World, iss: str) -> None:
    if iss == "wrong":
        world.idp.settings.iss = "wrong"
    else:
        world.idp.settings.iss = None
        world.idp.settings.members = {"authorization_response_iss_parameter_supported": True}
    error = refused(world)
    assert error.reason in ("misconfigured", "refused") and "issuer" in str(error)
    assert world.idp.count("token") == 0
    (visit,) = world.browser.finished()
    assert "you are signed in" not in visit.page.words.lower()


def test_an_expired_code_is_told(world: World) -> None:
    world.browser.person = Person(before_callback=lambda address: world.idp.advance(61))
    error = refused(world)
    assert error.reason == "refused" and "invalid_grant" in str(error)
    (visit,) = world.browser.finished()
    assert "you are signed in" not in visit.page.words.lower()


def test_a_person_who_never_comes_back(world: World) -> None:
    world.browser.person = Person(stop_at_callback=True)
    error = refused(world, **QUICKLY)
    assert error.reason == "timeout"


def test_the_listener_is_gone_after_the_sign_in(world: World) -> None:
    callbacks: list[str] = []
    world.browser.person = Person(before_callback=callbacks.append)
    world.whoami()
    world.browser.finished()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with pytest.raises(OSError):
        opener.open(callbacks[0].partition("?")[0], timeout=5)


# ---- tokens that end -------------------------------------------------------------------------------------------------


def test_a_token_that_expires_during_a_run_is_renewed(world: World) -> None:
    world.server.before("plain", world.idp.expire_access_tokens)
    with world.create() as agent:
        assert json.loads(agent.run("whoami"))["subject"] == "ada"
        assert agent.run("plain") == "plain: ok"
    assert world.server.calls() == [("whoami", 1), ("plain", 2)], "the refused call ran once"
    assert world.sign_ins() == 1 and world.idp.count("refresh") == 1


def test_a_stored_token_that_expired_an_hour_ago_is_renewed_first(world: World) -> None:
    world.whoami()
    world.change_record(expires_at=time.time() - 3600)
    world.idp.expire_access_tokens()
    world.server.log.clear()
    assert world.whoami()["subject"] == "ada"
    assert world.sign_ins() == 1 and world.idp.count("refresh") == 1
    assert world.server.refusals() == 0, "the old token was not even tried"


def test_a_token_that_is_about_to_end_is_used_while_the_provider_is_away(world: World) -> None:
    """It is renewed a little early, but it is still good."""
    world.whoami()
    world.change_record(expires_at=time.time() + 5)
    world.idp.settings.refresh_error = "temporarily_unavailable"
    with FaultProxy(world.idp.base) as proxy:
        proxy.fault("*", status(503))
        key = f"{world.keys()[0]}/client"
        beside = asyncio.run(world.store.get(key))
        assert beside is not None
        beside.access_token = beside.access_token.replace(world.idp.base, proxy.base)
        asyncio.run(world.store.set(key, beside))
        assert world.whoami()["subject"] == "ada"
        assert proxy.seen == ["POST /token"] * len(proxy.seen)


def test_refresh_tokens_are_rotated(world: World) -> None:
    with world.create() as agent:
        for _ in range(3):
            world.idp.expire_access_tokens()
            assert agent.run("plain") == "plain: ok"
    world.idp.expire_access_tokens()
    assert world.whoami()["subject"] == "ada"
    assert world.sign_ins() == 1 and world.idp.count("refresh") == 4 and world.idp.count("reuse") == 0


@pytest.mark.parametrize("kind", ["omit", "same"])
def test_a_refresh_reply_without_refresh_token_keeps_the_old_one(world: World, kind: str) -> None:
    world.idp.settings.refresh_reply = kind
    world.whoami()
    old = world.record().refresh_token
    for _ in range(2):
        world.idp.expire_access_tokens()
        assert world.whoami()["subject"] == "ada"
    assert world.record().refresh_token == old
    assert world.sign_ins() == 1 and world.idp.count("refresh") == 2


def test_a_refresh_reply_without_scope_keeps_the_old_one(world: World) -> None:
    world.whoami()
    world.idp.settings.scope_reply = False
    world.idp.expire_access_tokens()
    world.whoami()
    with world.create() as agent:
        assert agent.run("needs_admin") == "admin: mcp admin"


def test_a_token_without_expiry_is_used_until_it_is_refused(world: World) -> None:
    world.idp.settings.expires_in = False
    world.whoami()
    assert world.record().expires_at is None
    world.idp.expire_access_tokens()
    assert world.whoami()["subject"] == "ada"
    assert world.sign_ins() == 1 and world.idp.count("refresh") == 1


def test_a_revoked_grant_is_signed_in_anew(world: World) -> None:
    world.server.before("plain", world.idp.revoke_grants)
    with world.create() as agent:
        assert agent.run("plain") == "plain: ok"
    assert world.sign_ins() == 2
    assert world.whoami()["subject"] == "ada"
    assert world.sign_ins() == 2


def test_a_revoked_grant_and_a_denial(world: World) -> None:
    with world.create() as agent:
        world.idp.revoke_grants()
        world.idp.settings.consent = "deny"
        with pytest.raises(AgentError) as caught:
            agent.run("plain")
        assert "denied" in str(caught.value).lower() or "said no" in str(caught.value)
        world.nothing_is_kept()
        world.idp.settings.consent = "auto"
        assert agent.run("plain") == "plain: ok", "the agent goes on"


def test_without_a_refresh_token_a_person_is_asked_again(world: World) -> None:
    world.idp.settings.refresh = "never"
    world.whoami()
    world.idp.expire_access_tokens()
    assert world.whoami()["subject"] == "ada"
    assert world.sign_ins() == 2 and world.idp.count("register") == 1


def test_a_token_that_another_process_renewed_is_taken(world: World) -> None:
    """The refresh token that this agent remembers was used up by somebody who shares the store."""
    with world.create() as agent, world.create() as other:
        world.idp.expire_access_tokens()
        assert other.run("plain") == "plain: ok"
        assert agent.run("plain") == "plain: ok"
    assert world.idp.count("refresh") == 1 and world.idp.count("reuse") == 0


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    with ThreadPoolExecutor(len(calls), thread_name_prefix="asyncio_") as pool:
        return [future.result(30) for future in [pool.submit(call) for call in calls]]


def test_two_refusals_at_once_make_one_refresh(world: World) -> None:
    with world.create() as one, world.create() as other:
        world.idp.expire_access_tokens()
        hold = world.idp.hold("refresh")
        done: list[str] = []
        threads = [threading.Thread(target=lambda a=a: done.append(a.run("plain"))) for a in (one, other)]
        for thread in threads:
            thread.start()
        hold.wait_reached()
        end = threading.Event()
        while world.server.refusals() < 3:  # the one of the sign-in, and one of each
            assert not end.wait(0.01)
        hold.release()
        for thread in threads:
            thread.join(20)
    assert done == ["plain: ok"] * 2
    assert hold.count == 1 and world.idp.count("refresh") == 1 and world.idp.count("reuse") == 0


def test_two_agents_at_once_ask_the_person_once(world: World) -> None:
    assert [told["subject"] for told in at_once(world.whoami, world.whoami)] == ["ada", "ada"]
    assert world.sign_ins() == 1


def test_from_event_loops(world: World) -> None:
    options = {"engine": "embedded", "oauth": {"token_store": world.store}}

    async def one() -> str:
        agent = await GopherAgent.create_with_url_async("DirectProvider", "m", world.server.url, options)
        try:
            world.idp.expire_access_tokens()
            return str(await agent.run_async("plain"))
        finally:
            agent.dispose()

    async def both() -> list[str]:
        return list(await asyncio.gather(one(), one()))

    assert asyncio.run(both()) == ["plain: ok"] * 2
    assert world.sign_ins() == 1 and world.idp.count("reuse") == 0


def test_a_cancelled_sign_in_leaves_nothing(world: World) -> None:
    world.browser.person = Person(stop_at_callback=True)
    options = {"engine": "embedded", "oauth": {"token_store": world.store}}

    async def go() -> None:
        making = asyncio.ensure_future(
            GopherAgent.create_with_url_async("DirectProvider", "m", world.server.url, options)
        )
        await asyncio.to_thread(world.browser.wait_opened)
        making.cancel()
        with pytest.raises(asyncio.CancelledError):
            await making

    asyncio.run(go())
    world.nothing_is_kept()


# ---- several servers -------------------------------------------------------------------------------------------------


def test_two_servers_with_two_issuers_get_a_token_each(world: World, canary: Any) -> None:
    with IdentityProvider(subject="grace") as idp, ProtectedServer(idp, suffix="_b") as server:
        canary.allow_shown(idp.authorize_url, exact=False)
        config = json.dumps({"servers": [{"name": "a", "url": world.server.url}, {"name": "b", "url": server.url}]})
        options = {"engine": "embedded", "oauth": {"token_store": world.store}}
        with GopherAgent.create_with_server_config("DirectProvider", "m", config, options) as agent:
            told = [json.loads(agent.run(tool)) for tool in ("whoami", "whoami_b")]
            assert [one["subject"] for one in told] == ["ada", "grace"]
            assert [one["issuer"] for one in told] == [world.idp.issuer, idp.issuer]
            idp.expire_access_tokens()
            assert agent.run("plain_b") == "plain: ok"
        assert len(world.keys()) == 2
        assert [world.idp.count("refresh"), idp.count("refresh")] == [0, 1]
        assert [world.sign_ins(), idp.count("authorize")] == [1, 1]


def test_one_open_server_among_protected_ones(world: World, server: Any) -> None:
    config = json.dumps({"servers": [{"name": "a", "url": world.server.url}, {"name": "open", "url": server.url}]})
    options = {"engine": "embedded", "oauth": {"token_store": world.store}, "elicitation": {"handler": "decline"}}
    with GopherAgent.create_with_server_config("DirectProvider", "m", config, options) as agent:
        assert json.loads(agent.run("whoami"))["subject"] == "ada"
        assert agent.run("decline_aware") == "action: decline"
    assert all("authorization" not in entry["headers"] for entry in server.log("run"))


# ---- the person's time -----------------------------------------------------------------------------------------------


def test_a_slow_person_does_not_time_the_creation_out(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, world.idp.settings.code_lifetime = FakeTime(monkeypatch), 600
    world.browser.person = Person(before_callback=lambda address: clock.pass_(60))
    assert world.whoami()["subject"] == "ada"


def test_a_slow_person_does_not_time_a_run_out(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, world.idp.settings.code_lifetime = FakeTime(monkeypatch), 600
    with world.create() as agent:
        world.idp.revoke_grants()
        world.browser.person = Person(before_callback=lambda address: clock.pass_(60))
        assert agent.run("plain", timeout_ms=5000) == "plain: ok"
    assert world.sign_ins() == 2


def test_the_store_is_the_callers(world: World) -> None:
    """Two stores are two persons: nothing goes from one to the other."""
    world.whoami()
    world.idp.settings.subject = "grace"
    world.store = MemoryTokenStore()
    assert world.whoami()["subject"] == "grace"
    assert world.sign_ins() == 2
