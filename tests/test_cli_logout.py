"""`gopher-mcp logout` deletes what belongs to a server and says so; `run --token-store` says where tokens go."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

import keyring
import pytest
from keyring.backends import fail

from gopher_mcp_python import (
    FileTokenStore,
    GopherAgentTokenRecord,
    KeyringTokenStore,
    MemoryTokenStore,
)
from gopher_mcp_python.cli import main, run
from gopher_mcp_python.oauth.stores import KeyringOrFileTokenStore, ListingTokenStore, resolve_store
from tests.support import children
from tests.support.canary import Canary
from tests.support.limited_keyring import LimitedKeyring
from tests.support.limited_keyring import environment as keyring_environment
from tests.support.stores import record, variables
from tests.support.stores import run as finish

SERVER = "https://mcp.example.test:8443/mcp"
OTHER = "https://other.example.test"


def fill(store: ListingTokenStore) -> ListingTokenStore:
    """Two servers: one with two tokens and a registration, one with a token."""
    for key in (f"{SERVER}#1", f"{SERVER}#2", f"{SERVER}#1/client", f"{OTHER}#1"):
        finish(store.set(key, record()))
    return store


def keys(store: ListingTokenStore) -> list[str]:
    return finish(store.keys())


@pytest.fixture
def logout(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def call(*arguments: str) -> tuple[int, str, str]:
        try:
            code = main(["logout", *arguments])
        except SystemExit as ended:
            code = int(ended.code or 0)
        told = capsys.readouterr()
        return code, told.out, told.err

    return call


Logout = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize("url", [SERVER, "HTTPS://user:pass@MCP.example.test:8443/mcp/?query#fragment"])
def test_the_keys_of_a_server_go_and_no_others(limited_keyring: LimitedKeyring, logout: Logout, url: str) -> None:
    fill(FileTokenStore())
    fill(KeyringTokenStore())
    code, out, err = logout(url)
    assert (code, err) == (0, "")
    line = f"signed out of {SERVER} (2 tokens and client registration deleted from"
    assert out.splitlines() == [f"{line} the keyring)", f"{line} the token file)"]
    assert keys(FileTokenStore()) == keys(KeyringTokenStore()) == [f"{OTHER}#1"]


def test_several_servers_and_a_store_by_name(limited_keyring: LimitedKeyring, logout: Logout) -> None:
    fill(FileTokenStore())
    fill(KeyringTokenStore())
    code, out, _ = logout(SERVER, OTHER, "--token-store", "file")
    assert code == 0 and out.count("signed out of") == 2 and "keyring" not in out
    assert keys(FileTokenStore()) == [] and len(keys(KeyringTokenStore())) == 4


def test_the_variable_names_the_store(
    limited_keyring: LimitedKeyring,
    logout: Logout,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fill(FileTokenStore())
    fill(KeyringTokenStore())
    monkeypatch.setenv("GOPHER_MCP_TOKEN_STORE", "keyring")
    assert logout("--all")[0] == 0
    assert len(keys(FileTokenStore())) == 4 and keys(KeyringTokenStore()) == []
    monkeypatch.setenv("GOPHER_MCP_TOKEN_STORE", "memory")
    assert logout("--all")[0] == 0
    assert keys(FileTokenStore()) == []


def test_all_means_everything_in_every_store(limited_keyring: LimitedKeyring, logout: Logout) -> None:
    finish(fill(FileTokenStore()).set("a program's own key", record()))
    fill(KeyringTokenStore())
    code, out, _ = logout("--all")
    assert code == 0
    assert f"signed out of {SERVER}" in out and f"signed out of {OTHER}" in out
    assert "signed out of what belongs to no server (1 token deleted from the token file)" in out
    assert keys(FileTokenStore()) == [] and limited_keyring.entries() == {}
    assert logout("--all")[:2] == (0, "nothing is stored\n")


def test_what_is_not_there_is_said_with_what_is(limited_keyring: LimitedKeyring, logout: Logout) -> None:
    assert logout("https://nowhere.example.test/")[:2] == (0, "nothing is stored for https://nowhere.example.test\n")
    fill(FileTokenStore())
    code, out, _ = logout("https://mcp.example.test/mcp")
    assert code == 0
    assert out.splitlines() == [
        "nothing is stored for https://mcp.example.test/mcp",
        f"stored: {SERVER}, {OTHER}",
    ]
    assert len(keys(FileTokenStore())) == 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "name the servers' URLs, or say --all"),
        ((SERVER, "--all"), "either URLs or --all"),
        (("mcp.example.test",), "'mcp.example.test' is not an http or https URL"),
        ((SERVER, "--token-store", "memory"), "there is no 'memory'"),
    ],
)
def test_a_command_line_that_makes_no_sense_deletes_nothing(
    limited_keyring: LimitedKeyring,
    logout: Logout,
    arguments: tuple[str, ...],
    words: str,
) -> None:
    fill(FileTokenStore())
    code, out, err = logout(*arguments)
    assert code == 2 and out == "" and words in err
    assert len(keys(FileTokenStore())) == 4


def test_credentials_in_a_wrong_url_are_not_repeated(
    limited_keyring: LimitedKeyring, logout: Logout, canary: Canary
) -> None:
    code, _, err = logout(f"ftp://me:{canary.secret('password')}@host/?token={canary.secret('token')}")
    assert code == 2 and "'host/' is not an http" in err


def test_one_store_that_fails_keeps_nobody_from_the_other(limited_keyring: LimitedKeyring, logout: Logout) -> None:
    store = FileTokenStore()
    fill(store)
    fill(KeyringTokenStore())
    store.path.write_text("garbage")
    code, out, err = logout("--all")
    assert code == 1 and keys(KeyringTokenStore()) == []
    assert f"signed out of {SERVER}" in out
    assert err.startswith(f"gopher-mcp logout: the token file {store.path} is damaged: ") and err.count("\n") == 1


def test_without_a_keyring_the_file_is_all_there_is(limited_keyring: LimitedKeyring, logout: Logout) -> None:
    keyring.set_keyring(fail.Keyring())
    fill(FileTokenStore())
    assert logout(SERVER)[0] == 0 and keys(FileTokenStore()) == [f"{OTHER}#1"]
    code, _, err = logout(SERVER, "--token-store", "keyring")
    assert code == 1 and "no keyring can be used here" in err


def test_the_command_itself(limited_keyring: LimitedKeyring) -> None:
    fill(KeyringTokenStore())
    environment = {**variables(limited_keyring.file.parent), **keyring_environment(limited_keyring.file)}
    ended = children.run([sys.executable, "-m", "gopher_mcp_python", "logout", SERVER], env=environment).check()
    assert ended.out == f"signed out of {SERVER} (2 tokens and client registration deleted from the keyring)\n"
    assert ended.err == "" and keys(KeyringTokenStore()) == [f"{OTHER}#1"]


# ---- run ------------------------------------------------------------------------------------------------------------


def _store_of(*arguments: str) -> object:
    parser = argparse.ArgumentParser()
    run.add_parser(parser.add_subparsers())
    args = parser.parse_args(["run", "https://host/mcp", "query", *arguments])
    oauth = run._create_options(args, lambda event: None).oauth
    assert oauth is not None and oauth.mode is None
    return oauth.token_store


def test_run_keeps_tokens_where_the_option_or_the_variable_says(
    token_home: object,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert isinstance(_store_of(), KeyringOrFileTokenStore), "a command's memory would be gone at once"
    assert _store_of("--token-store", "file") is resolve_store("file")
    assert isinstance(_store_of("--token-store", "keyring"), KeyringTokenStore)
    assert isinstance(_store_of("--token-store", "memory"), MemoryTokenStore)
    monkeypatch.setenv("GOPHER_MCP_TOKEN_STORE", "file")
    assert isinstance(_store_of(), FileTokenStore)
    assert isinstance(_store_of("--token-store", "memory"), MemoryTokenStore)


def test_run_refuses_a_variable_that_names_no_store(
    token_home: object,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("GOPHER_MCP_TOKEN_STORE", "disk")
    assert main(["run", "http://127.0.0.1:9/mcp", "query", "--quiet"]) == 1
    assert "GOPHER_MCP_TOKEN_STORE is 'disk'" in capsys.readouterr().err


def test_what_run_would_store_logout_finds(limited_keyring: LimitedKeyring, logout: Logout) -> None:
    store = _store_of()
    assert isinstance(store, KeyringOrFileTokenStore)
    finish(store.set(f"{SERVER}#1", GopherAgentTokenRecord("a")))
    assert logout(SERVER)[1] == f"signed out of {SERVER} (1 token deleted from the keyring)\n"
