"""Questions and answers sealed for one place in one row, and keyed hashes of what must be compared but not read.

AES-256-GCM with a random nonce of 96 bits (NIST SP 800-38D, 8.2.2: up to 2**32 messages under one key). Sealing and
hashing keys are derived (HKDF, RFC 5869) from the ring's keys, which are used for nothing themselves.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..toolset.canonical import canonical_json
from .errors import SealError, StoreError
from .keys import KEY_BYTES, KeyProvider

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

__all__ = ["Sealer"]

_VERSION = 1
_NONCE_BYTES = 12
# The length would tell which of a few choices was taken: texts up to 4 KB are padded (with blanks, which JSON allows).
_PADDED_TO, _PADDED_BELOW = 256, 4096


class Sealer:
    """Seals and hashes under a provider's keys. Any thread may use it; each key is asked for once."""

    def __init__(self, provider: KeyProvider) -> None:
        self._provider = provider
        self._lock = threading.Lock()  # while a key is got that is not known yet
        self._derived: dict[str, tuple[AESGCM, bytes]] = {}

    def seal(self, row_id: str, part: str, value: Any) -> bytes:
        """The blob of a JSON value, good for this part of this row only. Raises StoreError when there is no key."""
        key_id, (cipher, _) = self._current()
        nonce = os.urandom(_NONCE_BYTES)
        name = key_id.encode("ascii")
        text = json.dumps(value, separators=(",", ":")).encode("ascii")
        if len(text) < _PADDED_BELOW:
            text = text.ljust(-(-len(text) // _PADDED_TO) * _PADDED_TO)
        sealed = cipher.encrypt(nonce, text, _place(key_id, row_id, part))
        return bytes((_VERSION, len(name))) + name + nonce + sealed

    def open(self, row_id: str, part: str, blob: bytes) -> Any:
        """What was sealed. Raises SealError, which names row and part."""
        from cryptography.exceptions import InvalidTag

        # A column of SQLite's may hold anything, if somebody has put it there.
        key_id, rest = _key_id_in(bytes(blob)) if isinstance(blob, (bytes, bytearray, memoryview)) else (None, b"")
        if key_id is None:
            raise SealError(f"The {part} of elicitation {row_id} is no sealed text of this version")
        keys = self._keys_of(key_id)
        if keys is None:
            raise SealError(
                f"The {part} of elicitation {row_id} was sealed with the key {key_id}, which is not in the ring: "
                "put it back among the older keys"
            )
        try:
            text = keys[0].decrypt(rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], _place(key_id, row_id, part))
        except (InvalidTag, ValueError):  # ValueError: cut off
            raise SealError(f"The {part} of elicitation {row_id} was changed, or is another row's") from None
        return json.loads(text)

    def mac(self, facts: list[Any]) -> str:
        """A keyed hash of JSON values, with its key's id before it. 1, 1.0 and True have different ones."""
        key_id, (_, key) = self._current()
        return f"{key_id}:{_mac(key, facts)}"

    def mac_is_of(self, mac: str | None, facts: list[Any]) -> bool:
        """Whether a hash is that of these values; not so when its key is no more."""
        return self.matcher(facts)(mac)

    def matcher(self, facts: list[Any]) -> Callable[[str | None], bool]:
        """`mac_is_of` for many hashes and the same values, which are hashed once with each key."""
        own: dict[str, bytes | None] = {}

        def matches(mac: str | None) -> bool:
            key_id, _, told = (mac or "").partition(":")
            if not key_id or not told:
                return False
            if key_id not in own:
                keys = self._keys_of(key_id)
                own[key_id] = None if keys is None else _mac(keys[1], facts).encode()
            mine = own[key_id]
            return mine is not None and hmac.compare_digest(mine, told.encode("utf-8", "surrogatepass"))

        return matches

    def _current(self) -> tuple[str, tuple[AESGCM, bytes]]:
        try:
            key_id, key = self._provider.current()
        except StoreError:
            raise
        except Exception as error:
            raise _failed(error) from None
        if not (0 < len(key_id) <= 200 and key_id.isascii() and key_id.isprintable() and ":" not in key_id):
            raise StoreError("The key provider gave an id that is not 1 to 200 ASCII characters without a colon")
        with self._lock:
            return key_id, self._derived.get(key_id) or self._derive(key_id, key)

    def _keys_of(self, key_id: str) -> tuple[AESGCM, bytes] | None:
        with self._lock:
            found = self._derived.get(key_id)
            if found is not None:
                return found
            try:
                key = self._provider.find(key_id)
            except StoreError:
                raise
            except Exception as error:
                raise _failed(error) from None
            return None if key is None else self._derive(key_id, key)

    def _derive(self, key_id: str, key: bytes) -> tuple[AESGCM, bytes]:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        if not isinstance(key, bytes) or len(key) != KEY_BYTES:
            raise StoreError(f"The key provider gave a key that is not {KEY_BYTES} bytes")
        sealing, hashing = (
            HKDF(SHA256(), KEY_BYTES, salt=None, info=b"gopher-mcp store " + use).derive(key)
            for use in (b"seal", b"mac")
        )
        made = self._derived[key_id] = (AESGCM(sealing), hashing)
        return made


def _place(key_id: str, row_id: str, part: str) -> bytes:
    return json.dumps(["gopher-mcp store", _VERSION, key_id, row_id, part]).encode("ascii")


def _key_id_in(blob: bytes) -> tuple[str | None, bytes]:
    if len(blob) < 2 or blob[0] != _VERSION or len(blob) < 2 + blob[1] + _NONCE_BYTES:
        return None, b""
    name = blob[2 : 2 + blob[1]]
    if not name.isascii() or not name.decode("ascii").isprintable():
        return None, b""
    return name.decode("ascii"), blob[2 + blob[1] :]


def _mac(key: bytes, facts: list[Any]) -> str:
    return hmac.new(key, canonical_json(facts).encode(), hashlib.sha256).hexdigest()


def _failed(error: Exception) -> StoreError:
    """Its text may be anything, so only its kind is told."""
    return StoreError(f"The key provider failed ({type(error).__name__}): see to the key service and try again")
