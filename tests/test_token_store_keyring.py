"""The keyring store: Windows' size limit, readers during a write, crashes, refusing backends, a missing extra."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import keyring
import pytest
from keyring.backends import fail, null
from keyring.errors import KeyringLocked

from gopher_mcp_python import GopherAgentTokenRecord, KeyringTokenStore, TokenStoreError
from gopher_mcp_python.oauth import keyring_store
from tests.support import children
from tests.support.canary import Canary
from tests.support.limited_keyring import LimitedKeyring
from tests.support.limited_keyring import environment as keyring_environment
from tests.support.stores import KEY, record, run, variables

LONG = "l" * 20_000


def access(store: KeyringTokenStore, key: str = KEY) -> str | None:
    found = run(store.get(key))
    return None if found is None else found.access_token


# ---- long values ----------------------------------------------------------------------------------------------------


def test_a_short_record_is_one_entry_beside_the_index(limited_keyring: LimitedKeyring) -> None:
    run(KeyringTokenStore().set(KEY, record()))
    assert sorted(limited_keyring.entries()) == ["#index", KEY]


def test_a_long_record_goes_where_windows_takes_2560_bytes(limited_keyring: LimitedKeyring) -> None:
    store = KeyringTokenStore()
    run(store.set(KEY, GopherAgentTokenRecord(LONG)))
    assert access(store) == LONG
    assert max(len(text) for text in limited_keyring.entries().values()) <= 1279


def test_a_keyring_that_takes_any_length_gets_one_entry(
    limited_keyring: LimitedKeyring,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(LimitedKeyring, "__module__", "keyring.backends.SecretService")
    limited_keyring.limit = 1 << 20
    store = KeyringTokenStore()
    run(store.set(KEY, GopherAgentTokenRecord(LONG)))
    assert access(store) == LONG and sorted(limited_keyring.entries()) == ["#index", KEY]
    monkeypatch.undo()
    assert access(store) == LONG
    assert run(store.clear()) == 1 and limited_keyring.entries() == {}


def test_what_is_replaced_or_removed_leaves_no_parts_behind(limited_keyring: LimitedKeyring) -> None:
    store = KeyringTokenStore()
    for text in ("short", LONG, LONG[:5000], LONG, "short"):
        run(store.set(KEY, GopherAgentTokenRecord(text)))
        assert access(store) == text
    assert sorted(limited_keyring.entries()) == ["#index", KEY]
    run(store.set(KEY, GopherAgentTokenRecord(LONG)))
    run(store.delete(KEY))
    assert limited_keyring.entries() == {"#index": "[]"}
    run(store.set(KEY, GopherAgentTokenRecord(LONG)))
    assert run(store.clear()) == 1
    assert limited_keyring.entries() == {}


def test_an_index_of_many_keys_is_split_too(limited_keyring: LimitedKeyring) -> None:
    store = KeyringTokenStore()
    keys = [f"{KEY}{number:03}{'k' * 200}" for number in range(12)]
    for key in keys:
        run(store.set(key, GopherAgentTokenRecord("a")))
    assert run(store.keys()) == keys
    assert run(store.clear()) == 12
    assert limited_keyring.entries() == {}


# ---- somebody writes meanwhile --------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", range(1, 6))
@pytest.mark.parametrize("writes", [1, 2])
def test_who_reads_during_a_write_gets_the_old_or_the_new_record_whole(
    limited_keyring: LimitedKeyring,
    when: int,
    writes: int,
) -> None:
    store = KeyringTokenStore()
    run(store.set(KEY, GopherAgentTokenRecord("1" * 4000)))
    reads: list[str] = []

    def write_meanwhile(what: str, name: str) -> None:
        reads.append(name)
        if len(reads) == when:
            limited_keyring.before = lambda what, name: None
            for number in range(2, 2 + writes):
                store._set(
                    KEY,
                    f'{{"access_token": "{str(number) * 4000}", "token_type": "Bearer", "refresh_token": null, '
                    '"expires_at": null, "scope": null}',
                )

    limited_keyring.before = write_meanwhile
    found = access(store)
    assert len(reads) == when, "the write came in between"
    assert found is not None and len(found) == 4000
    assert found[0] in ("1", str(1 + writes)) and len(set(found)) == 1


@pytest.mark.parametrize("at", range(1, 8))
def test_a_writer_that_dies_halfway_loses_nothing(limited_keyring: LimitedKeyring, at: int) -> None:
    store = KeyringTokenStore()
    run(store.set(KEY, GopherAgentTokenRecord("1" * 4000)))
    changes: list[str] = []

    def die(what: str, name: str) -> None:
        if what != "get":
            changes.append(name)
            if len(changes) == at:
                raise OSError("gone")

    limited_keyring.before = die
    with pytest.raises(TokenStoreError):
        run(store.set(KEY, GopherAgentTokenRecord("2" * 4000)))
    limited_keyring.before = lambda what, name: None
    assert access(store) in ("1" * 4000, "2" * 4000)
    assert run(store.keys()) == [KEY]
    run(store.set(KEY, GopherAgentTokenRecord("3" * 4000)))
    assert access(store) == "3" * 4000
    assert run(store.clear()) == 1
    assert limited_keyring.entries() == {}, "what the dead one left is removed too"


WRITER = """
import asyncio, sys
from gopher_mcp_python import GopherAgentTokenRecord, KeyringTokenStore

async def work():
    for number in range(10):
        await store.set(f"{sys.argv[1]}{number}", GopherAgentTokenRecord("a" * 3000))
        await store.set("shared", GopherAgentTokenRecord(sys.argv[1] * 3000))
        assert len(set((await store.get("shared")).access_token)) == 1

store = KeyringTokenStore()
asyncio.run(store.keys())
print("ready", flush=True)
sys.stdin.readline()
asyncio.run(work())
"""


def test_processes_that_store_at_the_same_time_are_all_in_the_index(limited_keyring: LimitedKeyring) -> None:
    environment = {**variables(limited_keyring.file.parent), **keyring_environment(limited_keyring.file)}
    children.at_the_same_time(WRITER, "ab", environment)
    assert run(KeyringTokenStore().keys()) == sorted(["shared", *(f"{name}{n}" for name in "ab" for n in range(10))])


# ---- damage ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "damage",
    [
        lambda found: found.update({KEY: "half of a rec"}),
        lambda found: found.update({KEY: "[]"}),
        lambda found: found.update({KEY: '{"parts": 3, "side": "a", "sha256": ""}'}),
        lambda found: found.update({KEY: '{"parts": -1}'}),
        lambda found: found.pop(f"{KEY} [a1]"),
        lambda found: found.update({f"{KEY} [a1]": "x" * 1200}),
    ],
)
def test_a_damaged_entry_is_told_and_can_be_removed(
    limited_keyring: LimitedKeyring,
    damage: Callable[[dict[str, str]], object],
) -> None:
    store = KeyringTokenStore()
    run(store.set(KEY, GopherAgentTokenRecord("1" * 4000)))
    with limited_keyring._changed() as found:
        damage(found)
    with pytest.raises(
        TokenStoreError, match=r"damaged: run gopher-mcp logout https://mcp\.example\.test/mcp and sign"
    ):
        run(store.get(KEY))
    run(store.delete(KEY))
    assert access(store) is None and run(store.keys()) == []


def test_a_damaged_index_is_told(limited_keyring: LimitedKeyring) -> None:
    store = KeyringTokenStore()
    run(store.set(KEY, record()))
    limited_keyring.set_password("gopher-mcp", "#index", "[")
    with pytest.raises(TokenStoreError, match="remove the entries of gopher-mcp"):
        run(store.clear())
    assert store.is_usable(), "nothing that the file should stand in for: the tokens are there"
    assert access(store) is not None


# ---- keyrings that don't serve --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "why"), [(fail.Keyring, "there is none"), (null.Keyring, "it is switched off")])
def test_no_keyring_is_an_error_that_names_the_way_out(
    limited_keyring: LimitedKeyring,
    kind: type[keyring.backend.KeyringBackend],
    why: str,
) -> None:
    keyring.set_keyring(kind())
    store = KeyringTokenStore()
    assert not store.is_usable() and not store.is_there()
    for use in (store.keys, lambda: store.get(KEY), lambda: store.set(KEY, record()), lambda: store.delete(KEY)):
        with pytest.raises(TokenStoreError) as caught:
            run(use())
        for word in (why, "gnome-keyring", 'token_store="file"', "--token-store file"):
            assert word in caught.value.message


def test_a_backend_that_raises_is_told_without_what_was_to_be_stored(
    limited_keyring: LimitedKeyring,
    canary: Canary,
) -> None:
    store = KeyringTokenStore()

    def locked(what: str, name: str) -> NoReturn:
        raise KeyringLocked("the collection is locked")

    limited_keyring.before = locked
    with pytest.raises(
        TokenStoreError, match=r"LimitedKeyring.*read \(KeyringLocked: the collection is locked\): unlock"
    ):
        run(store.get(KEY))
    assert not store.is_usable() and store.is_there()

    def quoting(what: str, name: str) -> None:
        if what == "set" and name == KEY:
            raise ValueError(f"can't store {canary.secret('access')}")

    limited_keyring.before = quoting
    with pytest.raises(TokenStoreError, match=r"could not be written \(ValueError\)") as caught:
        run(store.set(KEY, record()))
    assert caught.value.__cause__ is None and caught.value.__context__ is None


def test_two_services_are_two_places(limited_keyring: LimitedKeyring) -> None:
    asked: list[str] = []
    original = limited_keyring.get_password
    limited_keyring.get_password = lambda service, name: asked.append(service) or original(service, name)  # type: ignore
    run(KeyringTokenStore("my program").get(KEY))
    run(KeyringTokenStore().get(KEY))
    assert asked == ["my program", "gopher-mcp"]
    with pytest.raises(ValueError, match="non-empty"):
        KeyringTokenStore("")


def test_a_missing_extra_is_named() -> None:
    code = """
import asyncio, sys
sys.modules["keyring"] = None
from gopher_mcp_python import KeyringTokenStore, TokenStoreError
assert not KeyringTokenStore().is_usable()
try:
    asyncio.run(KeyringTokenStore().get("key"))
except TokenStoreError as error:
    print(error)
"""
    assert 'pip install "gopher-mcp-python[keyring]"' in children.python(code).check().out


def test_a_backend_that_cannot_be_loaded_is_told() -> None:
    code = """
import asyncio
from gopher_mcp_python import KeyringTokenStore, TokenStoreError
try:
    asyncio.run(KeyringTokenStore().get("key"))
except TokenStoreError as error:
    print(error)
"""
    ended = children.python(code, env={"PYTHON_KEYRING_BACKEND": "no_such_module.Keyring"}).check()
    assert "no keyring can be used here (ModuleNotFoundError: No module named 'no_such_module')" in ended.out


def test_without_a_writable_folder_the_keyring_works_all_the_same(
    limited_keyring: LimitedKeyring,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nowhere(kind: str) -> NoReturn:
        raise TokenStoreError("there is no home folder")

    monkeypatch.setattr(keyring_store, "folder_of", nowhere)
    store = KeyringTokenStore()
    run(store.set(KEY, record()))
    assert access(store) == record().access_token
