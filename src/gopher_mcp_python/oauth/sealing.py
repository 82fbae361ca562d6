"""A mapping sealed into bytes and back: AES-256-GCM under a key that is given, kept in a file or made of a passphrase.

The sealed form is one JSON object. What is not secret in it (format, kind of key, salt, key check) is authenticated
with the rest, so that no part can be exchanged.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
from typing import Any, Literal

__all__ = ["KEY_BYTES", "Damaged", "Envelope", "KeyKind", "TooNew", "WrongKey", "from_passphrase", "new_salt"]

KeyKind = Literal["file", "passphrase", "given"]

KEY_BYTES = 32
_FORMAT, _VERSION = "gopher-mcp sealed tokens", 1
_NONCE_BYTES = 12  # NIST SP 800-38D, 8.2.2: random, 96 bits, good for 2**32 messages under one key
# OWASP Password Storage Cheat Sheet (2025): scrypt with N=2**15, r=8, p=3, which takes 32 MiB of memory.
_SCRYPT = {"n": 2**15, "r": 8, "p": 3, "maxmem": 2**26}


class Damaged(Exception):
    """The bytes are not what was written: cut off, changed, or never such a file."""


class TooNew(Exception):
    """A later version of this package wrote the bytes."""


class WrongKey(Exception):
    """The bytes were sealed with another key."""


def new_salt() -> bytes:
    return os.urandom(16)


def from_passphrase(passphrase: str, salt: bytes) -> bytes:
    """The key that a passphrase and a salt make (scrypt, RFC 7914; a few tenths of a second)."""
    return hashlib.scrypt(passphrase.encode("utf-8", "surrogatepass"), salt=salt, dklen=KEY_BYTES, **_SCRYPT)


class Envelope:
    """What can be known of sealed bytes without the key: the kind of key, and the salt of a passphrase."""

    def __init__(self, kind: KeyKind, salt: bytes, check: bytes = b"", nonce: bytes = b"", sealed: bytes = b"") -> None:
        self.kind = kind
        self.salt = salt
        self._check = check
        self._nonce = nonce
        self._sealed = sealed

    @classmethod
    def read(cls, data: bytes) -> Envelope:
        """Raises Damaged, or TooNew."""
        try:
            told = json.loads(data)
        except ValueError:  # UnicodeDecodeError is one too
            raise Damaged from None
        if not isinstance(told, dict) or told.get("format") != _FORMAT:
            raise Damaged
        if told.get("version") != _VERSION:
            raise TooNew
        kind = told.get("key")
        if kind not in ("file", "passphrase", "given"):
            raise Damaged
        try:
            values = [base64.b64decode(told[name], validate=True) for name in ("salt", "check", "nonce", "sealed")]
        except (KeyError, TypeError, ValueError):
            raise Damaged from None
        return cls(kind, *values)

    def open(self, key: bytes) -> dict[str, Any]:
        """What was sealed. Raises WrongKey, or Damaged."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        if not hmac.compare_digest(self._check, _key_check(key, self.salt)):
            raise WrongKey
        try:
            plain = AESGCM(key).decrypt(self._nonce, self._sealed, self._public(self._check))
        except (InvalidTag, ValueError):  # ValueError: a nonce of an impossible length
            raise Damaged from None
        opened: dict[str, Any] = json.loads(plain)
        return opened

    def seal(self, content: dict[str, Any], key: bytes) -> bytes:
        """The bytes of `content`, under this envelope's kind of key and salt and a new nonce."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        check, nonce = _key_check(key, self.salt), os.urandom(_NONCE_BYTES)
        sealed = AESGCM(key).encrypt(nonce, json.dumps(content).encode("ascii"), self._public(check))
        told = {"format": _FORMAT, "version": _VERSION, "key": self.kind}
        parts = {"salt": self.salt, "check": check, "nonce": nonce, "sealed": sealed}
        texts = {name: base64.b64encode(part).decode("ascii") for name, part in parts.items()}
        return json.dumps(told | texts).encode("ascii")

    def _public(self, check: bytes) -> bytes:
        return json.dumps([_FORMAT, _VERSION, self.kind, self.salt.hex(), check.hex()]).encode("ascii")


def _key_check(key: bytes, salt: bytes) -> bytes:
    """Tells a wrong key from a damaged file. Eight bytes, which say nothing about the key to who doesn't have it."""
    return hmac.new(key, b"gopher-mcp key check" + salt, hashlib.sha256).digest()[:8]
