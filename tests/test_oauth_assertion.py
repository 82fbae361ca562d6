"""The grant with an assertion of a company's identity provider. That it works is shown by the conformance suite
(auth/cross-app-access-complete-flow), whose servers check every claim; here are its failures."""

from __future__ import annotations

from typing import Any

import pytest

from gopher_mcp_python import GopherAgent
from gopher_mcp_python.oauth.errors import SignInError
from tests.support import canary
from tests.support.idp import IdentityProvider
from tests.support.protected import ProtectedServer


def sign_in(url: str, assertion: Any, **more: Any) -> None:
    oauth = {"grant": "jwt_bearer", "client_id": "program", "client_secret": canary.secret("client-secret"),
             "assertion": assertion, "token_store": "memory", **more}  # fmt: skip
    GopherAgent.create_with_url("DirectProvider", "none", url, {"engine": "embedded", "oauth": oauth}).dispose()


@pytest.mark.parametrize("is_async", [False, True])
def test_the_function_gets_issuer_and_server_and_its_failure_is_told_without_its_text(is_async: bool) -> None:
    asked: list[tuple[str, str]] = []

    def fail(audience: str, resource: str) -> str:
        asked.append((audience, resource))
        raise OSError(canary.secret("assertion"))

    async def fail_async(audience: str, resource: str) -> str:
        return fail(audience, resource)

    with IdentityProvider() as idp, ProtectedServer(idp) as server:
        with pytest.raises(SignInError, match=r"assertion gave no assertion \(OSError\)"):
            sign_in(server.url, fail_async if is_async else fail)
        assert asked[0] == (idp.issuer, server.url)
        assert "POST /token" not in idp.paths()


def test_no_assertion_is_asked_for_another_authorization_server_than_the_one_named() -> None:
    asked: list[tuple[str, ...]] = []
    with IdentityProvider() as idp, ProtectedServer(idp) as server:
        with pytest.raises(SignInError, match="another authorization server than the oauth option issuer names"):
            sign_in(server.url, lambda *where: asked.append(where), issuer="https://login.example")
    assert not asked


def test_what_is_no_text_is_no_assertion() -> None:
    with IdentityProvider() as idp, ProtectedServer(idp) as server:
        with pytest.raises(SignInError, match="must return the assertion as a text"):
            sign_in(server.url, lambda audience, resource: None)
        assert "POST /token" not in idp.paths()


def test_a_refusal_of_the_authorization_server_is_told() -> None:
    assertion = canary.secret("assertion")
    with IdentityProvider() as idp, ProtectedServer(idp) as server:
        with pytest.raises(SignInError, match="refused the request for a token"):
            sign_in(server.url, lambda audience, resource: assertion)
        assert "POST /token" in idp.paths()
