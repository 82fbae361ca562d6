"""Which Host and Origin headers are let in where the gateway is reached by others (DNS rebinding)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from gopher_mcp_python.gateway import Gateway, read_upstream
from gopher_mcp_python.gateway.http import create_app
from gopher_mcp_python.serve.tokens import TokenFile
from tests.support.gateways import memory_store
from tests.support.hosting import Hosted

INITIALIZE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}  # fmt: skip
PUBLIC = "gateway.example:8443"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address of a gateway that was told it is reached as PUBLIC, and a token."""
    tokens = TokenFile(Path(tmp_path_factory.mktemp("tokens")) / "tokens.json")
    token = tokens.add("ada", ["call"])
    gateway = Gateway([read_upstream("x=http://127.0.0.1:9/mcp")], memory_store())
    app = create_app(
        gateway, [tokens], host="192.0.2.1", port=8443, allowed_hosts=[PUBLIC], allowed_origins=["https://app.example"]
    )
    front = Hosted(app, "gateway")
    yield f"{front.base}/mcp", token
    front.close()


def status(place: tuple[str, str], *, host: str = PUBLIC, twice: bool = False, **headers: str) -> int:
    url, token = place
    given = [("accept", "application/json, text/event-stream"), ("host", host), ("authorization", f"Bearer {token}")]
    given += [("authorization", f"Bearer {token}")] if twice else []
    with httpx2.Client(timeout=60) as client:
        return client.post(url, json=INITIALIZE, headers=[*given, *headers.items()]).status_code


@pytest.mark.parametrize("host", [PUBLIC, "192.0.2.1:8443"])
def test_the_names_that_were_given(place: tuple[str, str], host: str) -> None:
    assert status(place, host=host) == 200


@pytest.mark.parametrize(
    "host", ["evil.example:8443", "gateway.example", "gateway.example:80", "evil.gateway.example:8443",
             "127.0.0.1:8443", "localhost:8443", "gateway.example:8443.evil.example"],
)  # fmt: skip
def test_other_names(place: tuple[str, str], host: str) -> None:
    assert status(place, host=host) == 421
    assert status(place, host=host, **{"mcp-protocol-version": "2026-07-28"}) == 421


def test_pages_of_others(place: tuple[str, str]) -> None:
    assert status(place, origin="https://app.example") == 200
    for origin in ("https://evil.example", "null", "http://app.example", f"https://{PUBLIC}"):
        assert status(place, origin=origin) == 403, origin


def test_two_tokens_are_none(place: tuple[str, str]) -> None:
    assert status(place, twice=True) == 401
