"""Keys: where they come from, rotation, and what is sealed with them."""

from __future__ import annotations

import base64
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gopher_mcp_python.store import FileKeys, KeyRing, SealError, StoreError, keys_from_environment, keys_from_keyring
from gopher_mcp_python.store.keys import KEYS_VARIABLE
from gopher_mcp_python.store.payload import plain_json
from gopher_mcp_python.store.sealing import Sealer
from tests.support.canary import secret
from tests.support.limited_keyring import LimitedKeyring

_RING = KeyRing.generate()


def test_a_ring_is_made_of_keys_and_tells_none() -> None:
    ring = KeyRing.generate()
    (key,) = ring
    text = ring.to_text()
    assert KeyRing.from_text(text).current() == ring.current()
    assert base64.b64decode(text) == key and text not in repr(ring) and key.hex() not in repr(ring)
    rotated = ring.rotated()
    assert len(rotated) == 2 and rotated.current() != ring.current() and rotated.find(ring.current()[0]) == key
    urlsafe = base64.urlsafe_b64encode(key).decode().rstrip("=")
    assert list(KeyRing.from_text(f" {urlsafe},\n{rotated.to_text()} ")) == [key, *list(rotated)[:1]]


@pytest.mark.parametrize("text", ["", ",", "abc", "x" * 43 + "!", "é" * 44, base64.b64encode(b"x" * 31).decode()])
def test_what_is_no_ring_is_refused_without_its_text(text: str) -> None:
    with pytest.raises(ValueError, match=r"32 bytes|at least one") as caught:
        KeyRing.from_text(text)
    assert len(text) < 4 or text not in str(caught.value)
    with pytest.raises(ValueError, match="32 bytes"):
        KeyRing([b"short"])


def test_keys_from_the_environment() -> None:
    assert keys_from_environment({}) is None and keys_from_environment({KEYS_VARIABLE: " "}) is None
    ring = KeyRing.generate()
    found = keys_from_environment({KEYS_VARIABLE: ring.to_text()})
    assert found is not None and found.current() == ring.current()
    with pytest.raises(ValueError, match=KEYS_VARIABLE) as caught:
        keys_from_environment({KEYS_VARIABLE: secret("key")})
    assert "openssl rand" in str(caught.value)


def test_a_key_file_is_made_once_and_for_this_user(tmp_path: Path) -> None:
    path = tmp_path / "new" / "keys"
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: FileKeys(path).current(), range(8)))
    assert len(found) == 1
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert repr(str(path)) in repr(FileKeys(path))


def test_a_rotation_is_seen_by_who_has_the_file_open(tmp_path: Path) -> None:
    first, second = FileKeys(tmp_path / "keys"), FileKeys(tmp_path / "keys")
    old = first.current()
    blob = Sealer(first).seal("el_1", "question", {"a": 1})
    second.rotate()
    assert first.current() == second.current() != old
    assert first.find(old[0]) == old[1]
    assert Sealer(second).open("el_1", "question", blob) == {"a": 1}
    fresh = Sealer(second).seal("el_1", "question", 2)
    assert Sealer(first).open("el_1", "question", fresh) == 2
    os.unlink(tmp_path / "keys")
    assert first.current() == second.current(), "a running store goes on"


def test_key_files_that_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text("no keys at all")
    path.chmod(0o600)
    with pytest.raises(StoreError, match="holds no keys") as caught:
        FileKeys(path)
    path.chmod(0o644)
    with pytest.raises(StoreError, match="chmod 600"):
        FileKeys(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(StoreError, match="another place for the store's keys"):
        FileKeys(path)
    assert "token" not in str(caught.value)


def test_keys_from_the_keyring(limited_keyring: LimitedKeyring) -> None:
    ring = keys_from_keyring()
    assert keys_from_keyring().current() == ring.current()


def test_no_keyring_is_said_with_the_remedy(token_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import keyring
    from keyring.backends import fail

    before = keyring.get_keyring()
    keyring.set_keyring(fail.Keyring())  # type: ignore[no-untyped-call]
    try:
        with pytest.raises(StoreError, match=r"keyring.*another place for the store's keys") as caught:
            keys_from_keyring()
    finally:
        keyring.set_keyring(before)
    assert "token" not in str(caught.value)


# ---- Sealing --------------------------------------------------------------------------------------------------------


def test_the_same_answer_never_looks_the_same_and_short_ones_have_one_length() -> None:
    sealer = Sealer(KeyRing.generate())
    blobs = [sealer.seal("el_1", "response", {"choice": choice}) for choice in ("a", "a", "a much longer choice")]
    assert len(set(blobs)) == 3 and len(set(map(len, blobs))) == 1
    assert len({sealer.mac(["response", id, {"confirmed": True}]) for id in ("el_1", "el_2")}) == 2
    assert sealer.mac([1]).partition(":")[2] != Sealer(KeyRing.generate()).mac([1]).partition(":")[2]


def test_equal_numbers_of_another_kind_are_another_value() -> None:
    sealer = Sealer(KeyRing.generate())
    values: list[Any] = [1, 1.0, True, "1", None, [1], {"1": 1}, {"1": 1.0}, -0.0, 0, 0.0, 10**30, 1e30]
    values += ["\ud800", "\\ud800", "\u00e9", "e\u0301"]
    macs = {sealer.mac([value]) for value in values}
    assert len(macs) == len(values)
    assert sealer.mac_is_of(sealer.mac([{"a": 1, "b": 2}]), [{"b": 2, "a": 1}])


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(st.text(max_size=5), inside, max_size=4),
    max_leaves=12,
)  # fmt: skip


def exactly(value: Any) -> str:
    """Equal for values that are the same in JSON: names in any order, numbers of the same kind."""
    if isinstance(value, dict):
        return f"names {sorted((name, exactly(inner)) for name, inner in value.items())}"
    return f"list {[exactly(inner) for inner in value]}" if isinstance(value, list) else repr(value)


@settings(max_examples=50, deadline=None, database=None)
@given(_JSON, _JSON)
def test_any_json_comes_back_and_has_a_hash_of_its_own(one: Any, other: Any) -> None:
    sealer = Sealer(_RING)
    assert exactly(sealer.open("el_1", "question", sealer.seal("el_1", "question", one))) == exactly(one)
    assert exactly(plain_json(one, "it", 100_000)) == exactly(one)
    assert sealer.mac_is_of(sealer.mac([one]), [plain_json(one, "it", 100_000)])
    assert (sealer.mac([one]) == sealer.mac([other])) is (exactly(one) == exactly(other))


@pytest.mark.parametrize("mac", [None, "", ":", "x", "x:", ":y", "nokey:00", "\ud800:é"])
def test_what_is_no_mac_is_of_nothing(mac: str | None) -> None:
    assert not Sealer(KeyRing.generate()).mac_is_of(mac, [1])


def test_every_byte_of_a_blob_counts() -> None:
    sealer = Sealer(KeyRing.generate())
    blob = sealer.seal("el_1", "question", {"a": 1})
    for at in range(len(blob)):
        for damaged in (blob[:at] + bytes([blob[at] ^ 0x41]) + blob[at + 1 :], blob[:at]):
            with pytest.raises(SealError, match="question of elicitation el_1"):
                sealer.open("el_1", "question", damaged)
    for other in ("text", 7, 10**12, None, 1.5):
        with pytest.raises(SealError, match="question of elicitation el_1"):
            sealer.open("el_1", "question", other)  # type: ignore[arg-type]


class KeyService:
    """A key service of a program's own."""

    def __init__(self, key_id: Any = "kms/key-1", key: Any = b"k" * 32, failure: Exception | None = None) -> None:
        self.key_id, self.key, self.failure = key_id, key, failure
        self.asked = 0

    def current(self) -> tuple[str, bytes]:
        if self.failure:
            raise self.failure
        return self.key_id, self.key

    def find(self, key_id: str) -> bytes | None:
        self.asked += 1
        if self.failure:
            raise self.failure
        return self.key if key_id == self.key_id else None


def test_a_key_service_is_asked_once_for_each_key() -> None:
    service = KeyService()
    blob = Sealer(service).seal("el_1", "question", 1)
    sealer = Sealer(service)
    assert [sealer.open("el_1", "question", blob) for _ in range(3)] == [1, 1, 1] and service.asked == 1


def test_a_key_service_that_fails_is_a_store_error_without_its_text() -> None:
    blob = Sealer(KeyService()).seal("el_1", "question", 1)
    sealer = Sealer(KeyService(failure=RuntimeError(secret("service"))))
    for call in (lambda: sealer.seal("el_1", "q", 1), lambda: sealer.mac([1]), lambda: sealer.open("el_1", "q", blob)):
        with pytest.raises(StoreError, match="key provider failed"):
            call()
    for bad in (KeyService(key_id=""), KeyService(key_id="a:b"), KeyService(key_id="é"), KeyService(key=b"short")):
        with pytest.raises(StoreError, match="key provider gave"):
            Sealer(bad).seal("el_1", "question", 1)
