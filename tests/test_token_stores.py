"""What the token stores have in common: whole records, every thread and loop, no secret shown; which one is meant.

The file's own rules are in test_token_store_file.py, the keyring's in test_token_store_keyring.py.
"""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading
from pathlib import Path
from typing import Any

import pytest

import gopher_mcp_python as gopher
from gopher_mcp_python import (
    FileTokenStore,
    GopherAgentCreateOptions,
    GopherAgentOAuthOptions,
    GopherAgentTokenRecord,
    GopherAgentTokenStore,
    KeyringTokenStore,
    MemoryTokenStore,
    TokenStoreError,
)
from gopher_mcp_python.oauth.keys import address_of, canonical_address
from gopher_mcp_python.oauth.stores import (
    KeyringOrFileTokenStore,
    ListingTokenStore,
    resolve_store,
)
from tests.support.canary import Canary
from tests.support.limited_keyring import LimitedKeyring
from tests.support.stores import KEY, record, run

STORES = ("memory", "file", "keyring", "keyring or file")


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, limited_keyring: LimitedKeyring) -> ListingTokenStore:
    made: dict[str, Any] = {"memory": MemoryTokenStore, "file": FileTokenStore, "keyring": KeyringTokenStore}
    found: ListingTokenStore = made.get(request.param, KeyringOrFileTokenStore)()
    return found


# ---- records --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kept",
    [
        record(),
        GopherAgentTokenRecord("a"),
        GopherAgentTokenRecord("a", "Bearer", None, 0.0, ""),
        GopherAgentTokenRecord("é\N{SNOWMAN}\ud800\n\0", "b", "r" * 30_000, -1.5, "s" * 1199),
        GopherAgentTokenRecord("{}", "[]", '{"parts": 1, "side": "a"}', 1e14, "null"),
    ],
    ids=["all", "least", "empty", "odd and long", "like the stores' own"],
)
def test_a_record_survives_whole(store: ListingTokenStore, kept: GopherAgentTokenRecord) -> None:
    run(store.set(KEY, kept))
    found = run(store.get(KEY))
    assert found is not None and vars(found) == vars(kept)


def test_what_is_there_is_replaced_removed_and_listed(store: ListingTokenStore) -> None:
    async def work() -> None:
        assert await store.get(KEY) is None and await store.keys() == [] and await store.clear() == 0
        for number in (2, 1, 3):
            await store.set(f"{KEY}{number}", GopherAgentTokenRecord(f"access {number}"))
        await store.set(f"{KEY}2", GopherAgentTokenRecord("another"))
        found = await store.get(f"{KEY}2")
        assert found is not None and found.access_token == "another"
        await store.delete(f"{KEY}1")
        await store.delete(f"{KEY}1")
        assert await store.get(f"{KEY}1") is None
        assert await store.keys() == [f"{KEY}2", f"{KEY}3"]
        assert await store.clear() == 2
        assert await store.keys() == [] and await store.get(f"{KEY}2") is None

    run(work())


def test_what_happens_to_the_object_later_does_not_reach_the_store(store: ListingTokenStore) -> None:
    kept = GopherAgentTokenRecord("first")
    run(store.set(KEY, kept))
    kept.access_token = "second"
    found = run(store.get(KEY))
    assert found is not None and found.access_token == "first"
    found.access_token = "third"
    again = run(store.get(KEY))
    assert again is not None and again.access_token == "first"


def test_what_is_no_record_is_refused_and_nothing_changes(store: ListingTokenStore, canary: Canary) -> None:
    run(store.set(KEY, record()))
    with pytest.raises(TypeError, match="keeps GopherAgentTokenRecord objects, not str"):
        run(store.set(KEY, canary.secret("token")))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="key of a token must be a string"):
        run(store.set(b"key", record()))  # type: ignore[arg-type]
    broken = record()
    broken.expires_at = float("nan")
    with pytest.raises(ValueError, match="expires_at"):
        run(store.set(KEY, broken))
    found = run(store.get(KEY))
    assert found is not None and vars(found) == vars(record())


# ---- threads and loops ----------------------------------------------------------------------------------------------


def test_two_threads_with_event_loops_of_their_own_use_one_store_at_once(store: ListingTokenStore) -> None:
    start = threading.Barrier(2)
    failures: list[BaseException] = []

    async def work(name: str) -> None:
        start.wait()
        for number in range(8):
            await asyncio.gather(
                store.set(f"{KEY}/{name}{number}", GopherAgentTokenRecord(f"{name}{number}")),
                store.set(f"{KEY}/both", GopherAgentTokenRecord(name * 3000)),
                store.get(f"{KEY}/both"),
            )

    def thread(name: str) -> None:
        try:
            asyncio.run(work(name))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=thread, args=(name,)) for name in "ab"]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not failures
    assert run(store.keys()) == sorted(
        [f"{KEY}/both", *(f"{KEY}/{name}{number}" for name in "ab" for number in range(8))]
    )
    both = run(store.get(f"{KEY}/both"))
    assert both is not None and both.access_token in ("a" * 3000, "b" * 3000)


def test_two_stores_that_are_one_place_say_so(token_home: Path) -> None:
    """So that one refresh token is used once, whichever object leads to it."""
    (token_home / "link").symlink_to(token_home / "tokens")
    file = FileTokenStore(token_home / "tokens")
    assert (
        file.identity
        == FileTokenStore(token_home / "link").identity
        == FileTokenStore(f"{token_home}/./tokens").identity
    )
    assert file.identity != FileTokenStore().identity != KeyringTokenStore().identity
    assert KeyringTokenStore().identity == KeyringTokenStore().identity != KeyringTokenStore("other").identity
    assert KeyringOrFileTokenStore().identity == KeyringOrFileTokenStore().identity


# ---- secrets --------------------------------------------------------------------------------------------------------


def test_no_look_at_a_store_shows_a_secret(store: ListingTokenStore, canary: Canary) -> None:
    run(store.set(KEY, record()))
    shown = f"{store!r} {store}" if isinstance(store, MemoryTokenStore) else f"{store!r} {store} {vars(store)!r}"
    assert "Canary" not in shown
    canary.check("shown", shown)


def test_a_copy_is_the_same_store_and_a_pickle_holds_no_token(store: ListingTokenStore, canary: Canary) -> None:
    run(store.set(KEY, record()))
    assert copy.copy(store) is store
    options = copy.deepcopy(GopherAgentOAuthOptions(token_store=store))
    assert options.token_store is store
    if isinstance(store, MemoryTokenStore):
        with pytest.raises(TypeError, match="can't be pickled"):
            pickle.dumps(store)
        return
    pickled = pickle.dumps(store)
    assert canary.secret("access").encode() not in pickled
    found = run(pickle.loads(pickled).get(KEY))
    assert found is not None and vars(found) == vars(record())


def test_a_key_that_was_given_is_neither_shown_nor_pickled(token_home: Path, canary: Canary) -> None:
    store = FileTokenStore(key=canary.secret("passphrase"))
    run(store.set(KEY, record()))
    canary.check(
        "vars", repr([vars(store), *(vars(value) for value in vars(store).values() if hasattr(value, "__dict__"))])
    )
    with pytest.raises(TypeError, match="can't be pickled"):
        pickle.dumps(store)
    assert copy.deepcopy(store) is store


# ---- which store is meant -------------------------------------------------------------------------------------------


def test_names_mean_the_three_stores(token_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(resolve_store("memory"), MemoryTokenStore)
    assert isinstance(resolve_store("keyring"), KeyringTokenStore)
    file = resolve_store("file")
    assert isinstance(file, FileTokenStore) and file.path == token_home / "data" / "gopher-mcp" / "tokens.sealed"
    for name in ("memory", "keyring", "file"):
        assert resolve_store(name) is resolve_store(name)
    monkeypatch.setenv("GOPHER_MCP_TOKEN_FILE", str(token_home / "elsewhere"))
    elsewhere = resolve_store("file")
    assert isinstance(elsewhere, FileTokenStore) and elsewhere.path == token_home / "elsewhere"


def test_without_a_name_the_variable_decides_and_else_the_memory_of_the_process(
    token_home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert resolve_store(None) is resolve_store("memory")
    monkeypatch.setenv("GOPHER_MCP_TOKEN_STORE", " File ")
    assert resolve_store(None) is resolve_store("file")
    monkeypatch.setenv("GOPHER_MCP_TOKEN_STORE", "disk")
    with pytest.raises(ValueError, match=r"GOPHER_MCP_TOKEN_STORE is 'disk': it takes"):
        resolve_store(None)
    assert isinstance(resolve_store("memory"), MemoryTokenStore)


def test_a_store_of_the_callers_own_stays_as_it_is() -> None:
    class Own:
        async def get(self, key: str) -> GopherAgentTokenRecord | None:
            return None

        async def set(self, key: str, token: GopherAgentTokenRecord) -> None: ...

        async def delete(self, key: str) -> None: ...

    own: GopherAgentTokenStore = Own()
    assert resolve_store(own) is own
    assert GopherAgentOAuthOptions(token_store=own).token_store is own


@pytest.mark.parametrize("name", ["disk", "", "FILE"])
def test_another_name_is_refused_with_the_three(name: str) -> None:
    with pytest.raises(ValueError, match='is none of "memory", "keyring" and "file"'):
        resolve_store(name)
    with pytest.raises(ValueError, match='is none of "memory", "keyring" and "file"'):
        GopherAgentOAuthOptions(token_store=name)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["memory", "keyring", "file"])
def test_options_take_the_names(name: str) -> None:
    options = GopherAgentCreateOptions(oauth={"tokenStore": name})
    assert options.oauth is not None and options.oauth.token_store == name
    with pytest.raises(ValueError, match="methods get, set and delete"):
        GopherAgentOAuthOptions(token_store=7)  # type: ignore[arg-type]


def test_all_of_them_are_public_and_their_error_is_an_agent_error() -> None:
    assert {"MemoryTokenStore", "KeyringTokenStore", "FileTokenStore", "TokenStoreError"} <= set(gopher.__all__)
    assert issubclass(TokenStoreError, gopher.AgentError)
    for kind in (MemoryTokenStore, KeyringTokenStore, KeyringOrFileTokenStore):
        assert isinstance(kind(), GopherAgentTokenStore) and isinstance(kind(), ListingTokenStore)


def test_the_file_stands_in_where_there_is_no_keyring(limited_keyring: LimitedKeyring) -> None:
    import keyring
    from keyring.backends import fail

    assert isinstance(run(KeyringOrFileTokenStore().chosen()), KeyringTokenStore)
    limited_keyring.before = lambda what, name: (_ for _ in ()).throw(OSError("locked"))
    assert isinstance(run(KeyringOrFileTokenStore().chosen()), FileTokenStore)
    keyring.set_keyring(fail.Keyring())
    assert isinstance(run(KeyringOrFileTokenStore().chosen()), FileTokenStore)


# ---- keys and addresses ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://host/mcp", "https://host/mcp"),
        ("HTTPS://Host.Example:443/MCP/", "https://host.example/MCP"),
        ("http://host:80", "http://host"),
        ("http://host:443/", "http://host:443"),
        ("https://user:password@host:8443/mcp?a=1#b", "https://host:8443/mcp"),
        ("https://[2001:DB8::1]:8443/mcp", "https://[2001:db8::1]:8443/mcp"),
        ("https://bücher.example/mcp", "https://xn--bcher-kva.example/mcp"),
        (" https://host/a%2Fb//c/ ", "https://host/a%2Fb//c"),
    ],
)
def test_an_address_has_one_spelling(url: str, address: str) -> None:
    assert canonical_address(url) == address
    assert address_of(f"{address}#0123") == address_of(f"{address}#0123/client") == address


@pytest.mark.parametrize(
    "url", ["", "host/mcp", "ftp://host/", "https://", "https://host:99999/", "https://[::1/", "mailto:a@b"]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"^not an? "):
        canonical_address(url)
    assert address_of(f"{url}#0123") is None


@pytest.mark.parametrize(
    ("key", "url"),
    [
        ("https://host/mcp#1", "https://host"),
        ("https://host/mcp#1", "https://host/mcp2"),
        ("https://host/mcp2#1", "https://host/mcp"),
        ("https://host/mcp#1", "http://host/mcp"),
        ("https://host/mcp#1", "https://host:8443/mcp"),
        ("https://host.evil.example/mcp#1", "https://host/mcp"),
        ("https://host/mcp", "https://host/mcp"),
        ("something else", "https://host/mcp"),
    ],
)
def test_a_key_of_another_server_does_not_belong(key: str, url: str) -> None:
    assert address_of(key) != canonical_address(url)


def test_a_forked_child_does_not_renew_the_parents_tokens() -> None:
    store = MemoryTokenStore()
    run(store.set(KEY, GopherAgentTokenRecord("token", refresh_token="refresh", expires_at=9e9)))
    store.after_fork()
    found = run(store.get(KEY))
    assert (found.access_token, found.refresh_token, found.expires_at) == ("token", None, 9e9)
