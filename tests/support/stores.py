"""Homes for token stores, so that no test touches the real one."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from tests.support.canary import secret

if TYPE_CHECKING:
    from gopher_mcp_python import GopherAgentTokenRecord
    from tests.support.limited_keyring import LimitedKeyring

_Result = TypeVar("_Result")
KEY = "https://mcp.example.test/mcp#0123abcd"


def run(awaitable: Coroutine[Any, Any, _Result]) -> _Result:
    return asyncio.run(awaitable)


def record(access: str = "access") -> GopherAgentTokenRecord:
    """A record in which everything is set."""
    from gopher_mcp_python import GopherAgentTokenRecord

    return GopherAgentTokenRecord(secret(access), "DPoP", secret("refresh"), 1_790_000_000.25, "mail.read mail.send")


def variables(home: Path) -> dict[str, str]:
    """The environment of a person whose home is there; for child processes too."""
    return {
        "HOME": str(home),
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "GOPHER_MCP_TOKEN_FILE": "",
        "GOPHER_MCP_TOKEN_KEY": "",
        "GOPHER_MCP_TOKEN_STORE": "",
    }


@pytest.fixture
def token_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home."""
    for name, value in variables(tmp_path).items():
        monkeypatch.setenv(name, value)
    return tmp_path


@pytest.fixture
def limited_keyring(token_home: Path) -> Iterator[LimitedKeyring]:
    """An empty keyring that is the one in use."""
    import keyring

    from tests.support.limited_keyring import LimitedKeyring

    before = keyring.get_keyring()
    backend = LimitedKeyring(token_home / "keyring.json")
    keyring.set_keyring(backend)
    yield backend
    keyring.set_keyring(before)
