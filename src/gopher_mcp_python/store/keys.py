"""The keys under which questions and answers are sealed: a ring of a current one and older ones.

A new key is made current and the old ones stay in the ring as long as there are rows that they sealed. A ring comes
from a file, from the environment, from the system's keyring, or from a key service through `KeyProvider`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from ..oauth import privatefile
from ..oauth.stores import TokenStoreError
from .errors import StoreError

__all__ = ["KEYS_VARIABLE", "FileKeys", "KeyProvider", "KeyRing", "keys_from_environment", "keys_from_keyring"]

KEY_BYTES = 32
KEYS_VARIABLE = "GOPHER_MCP_STORE_KEYS"
_SERVICE, _ENTRY = "gopher-mcp-python store", "keys"
_OTHERWISE = "or name another place for the store's keys"


class KeyProvider(Protocol):
    """Where keys come from. Any thread may ask. For a key service: an id that names a wrapped key, and the unwrapped
    32 bytes, which are asked for once a process and key."""

    def current(self) -> tuple[str, bytes]:
        """The id (ASCII, 1 to 200 characters, no ":") and the 32 bytes of the key that seals from now on."""

    def find(self, key_id: str) -> bytes | None:
        """The key of that id; None when there is none."""


class KeyRing:
    """Keys that are given. The first is the current one; ids are made of the keys, so none can be mistaken."""

    def __init__(self, keys: Iterable[bytes]) -> None:
        """Raises ValueError when there is no key or one is not 32 bytes."""
        told = list(keys)
        if not told or not all(isinstance(key, bytes) and len(key) == KEY_BYTES for key in told):
            raise ValueError(f"a key ring needs keys of {KEY_BYTES} bytes, at least one")
        self._keys = {key_id_of(key): key for key in told}
        self._current = key_id_of(told[0])

    def __repr__(self) -> str:
        return f"KeyRing({len(self._keys)} keys, current {self._current})"

    @classmethod
    def generate(cls) -> KeyRing:
        """A ring with one new key. Whoever loses it loses what it sealed."""
        return cls([os.urandom(KEY_BYTES)])

    @classmethod
    def from_text(cls, text: str) -> KeyRing:
        """Reads keys in base64 between commas or blanks, the current one first. Raises ValueError, without the text."""
        try:
            return cls(base64.b64decode(_padded(word), altchars=b"-_", validate=True) for word in _words(text))
        except ValueError:  # binascii.Error is one too
            raise ValueError(
                f"the keys are not {KEY_BYTES} bytes in base64 each, with commas between them: "
                "make one with openssl rand -base64 32"
            ) from None

    def to_text(self) -> str:
        """The keys as `from_text` reads them. Secret."""
        return ",".join(base64.b64encode(key).decode("ascii") for key in self)

    def rotated(self) -> KeyRing:
        """A ring in which a new key is the current one; all others stay."""
        return KeyRing([os.urandom(KEY_BYTES), *self])

    def current(self) -> tuple[str, bytes]:
        """The id and the 32 bytes of the key that seals."""
        return self._current, self._keys[self._current]

    def find(self, key_id: str) -> bytes | None:
        """The key of that id; None when it is none of the ring's."""
        return self._keys.get(key_id)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[bytes]:
        return iter(list(self._keys.values()))


class FileKeys:
    """A ring in a file that this user alone can read, made with one new key when it isn't there. What another process
    changes in it (a rotation) is seen at once; a file that vanishes from under a running store changes nothing there.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Raises StoreError when the file can't be read or made, other users may read it, or it holds no keys."""
        self._path = Path(path)
        self._lock = threading.Lock()  # what a thread has read must not replace what another read later
        self._seen: tuple[int, ...] | None = None
        self._ring = self._read() or self._make()

    def __repr__(self) -> str:
        return f"FileKeys({str(self._path)!r})"

    def current(self) -> tuple[str, bytes]:
        """The id and the 32 bytes of the key that seals; the file is looked at first. Raises StoreError."""
        self._refresh()
        return self._ring.current()

    def find(self, key_id: str) -> bytes | None:
        """The key of that id, also one that another process has just added; None: there is none. Raises StoreError."""
        found = self._ring.find(key_id)
        if found is None:
            self._refresh()
            found = self._ring.find(key_id)
        return found

    def rotate(self) -> None:
        """Makes a new key the current one, for every process that uses the file. Raises StoreError."""
        with _said_of_keys(), privatefile.locked(self._path), self._lock:
            self._write((self._read() or self._ring).rotated())

    def _refresh(self) -> None:
        with self._lock:
            if self._stamp() not in (None, self._seen):
                self._ring = self._read() or self._ring

    def _stamp(self) -> tuple[int, ...] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return (found.st_mtime_ns, found.st_ino, found.st_size)

    def _read(self) -> KeyRing | None:
        with _said_of_keys():
            self._seen = self._stamp()
            data = privatefile.read_private(self._path)
        if data is None:
            return None
        try:
            return KeyRing.from_text(data.decode("ascii"))
        except ValueError:
            raise StoreError(f"{self._path} holds no keys of a store: restore it, {_OTHERWISE}") from None

    def _make(self) -> KeyRing:
        with _said_of_keys():
            privatefile.make_folder(self._path.parent)
            with privatefile.locked(self._path):
                ring = self._read()  # another process may have been faster
                if ring is None:
                    ring = KeyRing.generate()
                    self._write(ring)
        return ring

    def _write(self, ring: KeyRing) -> None:
        """Nothing is sealed with a key that is not on the disk yet."""
        privatefile.write_private(self._path, ring.to_text().replace(",", "\n").encode("ascii") + b"\n")
        self._ring, self._seen = ring, self._stamp()


def keys_from_environment(environment: Mapping[str, str] | None = None) -> KeyRing | None:
    """The ring in GOPHER_MCP_STORE_KEYS; None when it is not set. Raises ValueError when it holds no keys."""
    text = (os.environ if environment is None else environment).get(KEYS_VARIABLE, "")
    if not text.strip():
        return None
    try:
        return KeyRing.from_text(text)
    except ValueError as error:
        raise ValueError(f"{KEYS_VARIABLE}: {error}") from None


def keys_from_keyring() -> KeyRing:
    """The ring in the system's keyring, made with one new key when there is none. Raises StoreError."""
    from ..oauth.filestore import folder_of
    from ..oauth.keyring_entries import Entries, backend

    with _said_of_keys():
        entries = Entries(backend(), _SERVICE)
        guard = folder_of("data") / "store-keys"
        privatefile.make_folder(guard.parent)
        with privatefile.locked(guard):
            text = entries.read(_ENTRY)
            ring = KeyRing.generate() if text is None else None
            if ring is not None:
                entries.write(_ENTRY, ring.to_text())
                return ring
    try:
        return KeyRing.from_text(text or "")
    except ValueError:
        raise StoreError(f'the keyring\'s entry "{_SERVICE}" is damaged: restore it, {_OTHERWISE}') from None


def key_id_of(key: bytes) -> str:
    """Sixteen hexadecimal digits that name a key and say nothing about it to who doesn't have it."""
    return hmac.new(key, b"gopher-mcp store key id", hashlib.sha256).hexdigest()[:16]


@contextmanager
def _said_of_keys() -> Iterator[None]:
    """Private files and the keyring are shared with the token stores; what they raise speaks of tokens."""
    try:
        yield
    except TokenStoreError as error:
        text = str(error).replace(f"or put the tokens elsewhere ({privatefile.FILE_VARIABLE})", _OTHERWISE)
        text = text.replace('or take another store (token_store="file", --token-store file)', _OTHERWISE)
        raise StoreError(f"The store's keys: {text}") from None


def _words(text: str) -> list[str]:
    return text.replace(",", " ").split()


def _padded(word: str) -> bytes:
    plain = word.replace("+", "-").replace("/", "_").rstrip("=")
    return (plain + "=" * (-len(plain) % 4)).encode("ascii")
