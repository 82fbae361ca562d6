"""A fault-injecting proxy between the program and the provider, at each step of a sign-in and of a refresh.

Whatever breaks: a clear error within the time limit, nothing half stored, and the next attempt is free to succeed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from gopher_mcp_python import AgentError
from gopher_mcp_python.oauth import http, signin
from gopher_mcp_python.oauth.errors import SignInError
from tests.support import fault_proxy as faults
from tests.support.browsing import Browser, World
from tests.support.fault_proxy import Fault, FaultProxy
from tests.support.hosting import closed_port
from tests.support.idp import IdentityProvider
from tests.support.protected import ProtectedServer

# Where each step of a sign-in goes: through the proxy of the server, or of the provider.
STEPS = {
    "resource": ("server", "/.well-known/oauth-protected-resource/mcp"),
    "metadata": ("provider", "/.well-known/oauth-authorization-server"),
    "register": ("provider", "/register"),
    "token": ("provider", "/token"),
}
FAULTS: dict[str, Fault] = {
    "500": faults.status(500),
    "503": faults.status(503, b"", "text/plain", "Retry-After: 1"),
    "429": faults.status(429),
    "dropped": faults.dropped,
    "reset": faults.reset,
    "garbage": faults.garbage,
    "redirect loop": faults.redirect_loop,
    "empty": faults.empty,
    "html": faults.html,
    "list": faults.reply([]),
    "no fields": faults.reply({}),
    "wrong kinds": faults.reply({"access_token": 5, "client_id": [], "issuer": 1, "resource": {}}),
    "huge": faults.huge,
    # These let the request through, so that the server believes that it was answered.
    "cut head": faults.cut_head,
    "cut body": faults.cut_body,
    "half json": faults.half_json,
}
LET_THROUGH = ("cut head", "cut body", "half json")


@dataclass
class Between:
    """A world with a proxy before the provider and one before the server."""

    world: World
    provider: FaultProxy
    server: FaultProxy

    @property
    def url(self) -> str:
        return f"{self.server.base}/mcp"

    def proxy_of(self, step: str) -> tuple[FaultProxy, str]:
        which, path = STEPS[step]
        return (self.server if which == "server" else self.provider), path

    def heal(self) -> None:
        self.provider.clear()
        self.server.clear()

    def error(self) -> SignInError:
        """That of a sign-in which must fail, leaving no token."""
        with pytest.raises(SignInError) as caught:
            self.world.create(self.url)
        self.world.nothing_is_kept()
        return caught.value


@pytest.fixture(scope="module")
def _proxies(
    identity_provider: IdentityProvider, protected_server: ProtectedServer
) -> Iterator[tuple[FaultProxy, FaultProxy]]:
    with FaultProxy(identity_provider.base) as provider, FaultProxy(protected_server.base) as server:
        yield provider, server


@pytest.fixture
def between(
    identity_provider: IdentityProvider,
    protected_server: ProtectedServer,
    _proxies: tuple[FaultProxy, FaultProxy],
    browser: Browser,
    canary: Any,
) -> Iterator[Between]:
    provider, server = _proxies
    canary.allow_shown(f"{provider.base}/authorize", exact=False)
    world = World(identity_provider.reset(), protected_server.reset(authorization_servers=(provider.base,)), browser)
    made = Between(world, provider, server)
    made.heal()
    yield made
    made.heal()


def test_nothing_broken(between: Between) -> None:
    assert between.world.whoami(between.url)["issuer"] == between.provider.base


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("step", STEPS)
def test_a_step_of_the_sign_in_breaks(between: Between, step: str, fault: str) -> None:
    proxy, path = between.proxy_of(step)
    proxy.fault(path, FAULTS[fault])
    error = between.error()
    assert "127.0.0.1" in str(error) and len(str(error)) < 500
    if fault in ("500", "503", "429", "dropped", "reset") and step != "resource":
        assert error.reason == "unavailable"
    if step == "token":
        (visit,) = between.world.browser.finished()
        assert "you are signed in" not in visit.page.words.lower()
    else:
        assert between.world.sign_ins() == 0, "a person was bothered for nothing"
    between.heal()
    assert between.world.whoami(between.url)["subject"] == "ada"


@pytest.mark.parametrize("step", STEPS)
def test_the_right_document_under_a_wrong_type_is_taken(between: Between, step: str) -> None:
    proxy, path = between.proxy_of(step)
    proxy.fault(path, faults.wrong_type)
    assert between.world.whoami(between.url)["subject"] == "ada"


@pytest.mark.parametrize("step", STEPS)
def test_no_request_follows_a_redirect_to_another_host(between: Between, step: str) -> None:
    proxy, path = between.proxy_of(step)
    with FaultProxy(between.world.idp.base) as elsewhere:
        proxy.fault(path, faults.redirect(elsewhere.base + path))
        between.error()
        assert elsewhere.seen == []


@pytest.mark.parametrize("step", ["metadata", "register", "token"])
def test_nobody_listens_there(between: Between, step: str) -> None:
    dead = f"http://127.0.0.1:{closed_port()}"
    if step == "metadata":
        between.world.server.settings.authorization_servers = (dead,)
    else:
        name = "registration_endpoint" if step == "register" else "token_endpoint"
        between.world.idp.settings.members = {name: f"{dead}/{step}"}
    error = between.error()
    assert error.reason == "unavailable" and "127.0.0.1" in str(error)


@pytest.mark.parametrize("fault", ["500", "dropped", "html", "redirect loop"])
def test_the_providers_page_breaks(between: Between, fault: str) -> None:
    """Only the person sees that; whoever waits for them gives up at the limit, and the next attempt is a new one."""
    between.provider.fault("/authorize", FAULTS[fault])
    with pytest.raises(SignInError) as caught:
        between.world.create(between.url, timeout_ms=400)
    assert caught.value.reason == "timeout"
    between.world.nothing_is_kept()
    between.heal()
    assert between.world.whoami(between.url)["subject"] == "ada"


@pytest.mark.parametrize("step", STEPS)
def test_an_answer_that_never_comes(between: Between, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "REQUEST_SECONDS", 0.3)
    proxy, path = between.proxy_of(step)
    hold = proxy.hold(path)
    error = between.error()
    assert error.reason == "unavailable" and hold.count
    between.heal()
    assert between.world.whoami(between.url)["subject"] == "ada"


@pytest.mark.parametrize("step", STEPS)
def test_an_answer_that_never_ends(between: Between, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signin, "FLOW_SECONDS", 0.5)
    proxy, path = between.proxy_of(step)
    proxy.fault(path, faults.drip)
    assert between.error().reason == "unavailable"


@pytest.mark.parametrize("fault", FAULTS)
def test_a_refresh_breaks(between: Between, fault: str) -> None:
    """A refresh token that was not refused is kept: nobody is sent to the browser because a server was unwell."""
    world = between.world
    with world.create(between.url) as agent:
        world.idp.expire_access_tokens()
        between.provider.fault("/token", FAULTS[fault])
        with pytest.raises(AgentError) as caught:
            agent.run("plain")
        assert len(str(caught.value)) < 500
        between.heal()
        assert agent.run("plain") == "plain: ok", "the same agent goes on"
    if fault in LET_THROUGH:
        assert world.sign_ins() == 2, "the provider has rotated the token that never came: only a person can help"
    else:
        assert world.sign_ins() == 1 and world.idp.count("refresh") == 1


def test_a_refresh_whose_answer_never_comes(between: Between, monkeypatch: pytest.MonkeyPatch) -> None:
    world = between.world
    with world.create(between.url) as agent:
        world.idp.expire_access_tokens()
        monkeypatch.setattr(http, "REQUEST_SECONDS", 0.3)
        hold = between.provider.hold("/token", faults.dropped)
        with pytest.raises(AgentError):
            agent.run("plain")
        assert hold.count
        between.heal()
        assert agent.run("plain") == "plain: ok"
    assert world.sign_ins() == 1 and world.idp.count("refresh") == 1


def test_the_provider_is_away_and_comes_back(between: Between) -> None:
    world = between.world
    with world.create(between.url) as agent:
        world.idp.expire_access_tokens()
        between.provider.refuse()
        try:
            with pytest.raises(AgentError) as caught:
                agent.run("plain")
            assert "127.0.0.1" in str(caught.value)
        finally:
            between.provider.accept()
        assert agent.run("plain") == "plain: ok"
    assert world.sign_ins() == 1


def test_a_good_token_needs_no_provider(between: Between) -> None:
    between.world.whoami(between.url)
    between.provider.refuse()
    try:
        assert between.world.whoami(between.url)["subject"] == "ada"
    finally:
        between.provider.accept()


@pytest.mark.parametrize("fault", ["500", "reset", "list", "cut body"])
def test_step_up_breaks_and_the_old_token_stays(between: Between, fault: str) -> None:
    world = between.world
    with world.create(between.url) as agent:
        between.provider.fault("/token", FAULTS[fault])
        with pytest.raises(AgentError):
            agent.run("needs_admin")
        assert agent.run("plain") == "plain: ok", "good for what it was good for"
        between.heal()
        assert agent.run("needs_admin") == "admin: mcp admin", "the same agent may try again"
    assert world.idp.count("refresh") == 0
