"""Fixtures of the sign-in tests: one provider and one protected server for a module, put back before each test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.browsing import Browser, World, plant_client_secrets

if TYPE_CHECKING:  # imported on first use: every run of the suite loads this module, few need a web server
    from tests.support.idp import IdentityProvider
    from tests.support.protected import ProtectedServer


@pytest.fixture(scope="module")
def identity_provider() -> Iterator[IdentityProvider]:
    from tests.support.idp import IdentityProvider

    with IdentityProvider() as idp:
        yield idp


@pytest.fixture(scope="module")
def protected_server(identity_provider: IdentityProvider) -> Iterator[ProtectedServer]:
    from tests.support.protected import ProtectedServer

    with ProtectedServer(identity_provider) as server:
        yield server


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch) -> Iterator[Browser]:
    plant_client_secrets(monkeypatch)
    browser = Browser(monkeypatch)
    yield browser
    browser.close()


@pytest.fixture
def world(
    identity_provider: IdentityProvider, protected_server: ProtectedServer, browser: Browser, canary: Any
) -> World:
    for path in ("/authorize", "/tenant1/authorize"):
        canary.allow_shown(identity_provider.base + path, exact=False)
    return World(identity_provider.reset(), protected_server.reset(), browser)
