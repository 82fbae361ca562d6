"""Who may call and who may answer: bearer tokens, each for one caller, shown once and hashed at rest.

A token is 32 random bytes, so that its plain SHA-256 can't be guessed back (there is nothing to try from) and no slow
hash is needed. `call` and `answer` are scopes of their own: who calls a tool can't approve it with the same token.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from ..oauth.privatefile import locked, make_folder, read_private, write_private
from ..oauth.stores import TokenStoreError

__all__ = ["SCOPES", "Authenticator", "Principal", "Scope", "TokenFile", "TokenFileError", "bearer_of"]

Scope = Literal["call", "answer"]
SCOPES: tuple[Scope, ...] = ("call", "answer")
MAX_CALLER = 200  # characters of a caller's or a token's name
_PREFIX = "gmt_"  # what secret scanners look for
_BEARER = re.compile(r"Bearer +([A-Za-z0-9._~+/-]{1,4096}=*)\Z", re.IGNORECASE)  # RFC 6750, section 2.1
_LOOK_EVERY = 1.0  # seconds between two looks at the file's date: a revoked token dies within that


class TokenFileError(ValueError):
    """The file of tokens can't be used, or what is asked of it is wrong; the text says what to do."""


@dataclass(frozen=True)
class Principal:
    """Who sends a request.

    Attributes:
        caller: whose elicitations they are.
        name: of the token, for the audit ("laptop"); never the token.
        scopes: what it may do: "call" tools, "answer" elicitations. Who has both can only call.
    """

    caller: str
    name: str
    scopes: frozenset[Scope]


class Authenticator(Protocol):
    """Tells who sends a request."""

    def authenticate(self, authorization: str | None) -> Principal | None:
        """The sender by the value of the Authorization header; None when it is missing, wrong or no longer good.
        Called on any thread; has to be quick."""


@dataclass(frozen=True)
class Entry:
    """A token as the file has it. `id` is what it is listed and revoked by."""

    id: str
    caller: str
    name: str
    scopes: frozenset[Scope]
    created: float
    digest: bytes = field(repr=False)


def bearer_of(authorization: str | None) -> str | None:
    """The token in an Authorization header."""
    found = _BEARER.match(authorization) if authorization else None
    return found[1] if found else None


class TokenFile:
    """Tokens in a file that only this user can read. Threads and processes may share it."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).expanduser()
        self._lock = threading.Lock()
        self._entries: dict[bytes, Entry] = {}
        self._stamp: tuple[int, int, int] | None = None
        self._looked = float("-inf")

    def __repr__(self) -> str:
        return f"TokenFile({str(self.path)!r})"

    def authenticate(self, authorization: str | None) -> Principal | None:
        """See Authenticator. A file that can't be read lets nobody in."""
        token = bearer_of(authorization)
        if token is None:
            return None
        digest = _digest(token)
        with self._lock:
            try:
                self._look()
            except TokenFileError:
                return None
            entry = self._entries.get(digest)
        # The look-up is by a hash of what was sent, so its time tells nothing that helps to find a token.
        if entry is None or not hmac.compare_digest(entry.digest, digest):
            return None
        return Principal(entry.caller, entry.name, entry.scopes)

    def add(self, caller: str, scopes: Iterable[Scope], *, name: str | None = None) -> str:
        """Makes a token for `caller` and returns it: the only time that anybody sees it.

        Raises TokenFileError: an empty or odd caller or name, no scope, an unknown one or both, a file that can't be
        used.
        """
        wanted = frozenset(scopes)
        if len(wanted) != 1 or not wanted <= set(SCOPES):
            raise TokenFileError(f"a token has one scope, {' or '.join(SCOPES)}: who calls may not approve with it")
        _check_name("caller", caller)
        identity = secrets.token_hex(4)
        name = name if name is not None else f"token-{identity}"
        _check_name("name", name)
        token = _PREFIX + secrets.token_urlsafe(32)
        entry = Entry(identity, caller, name, wanted, time.time(), _digest(token))
        with self._changing() as entries:
            entries.append(entry)
        return token

    def revoke(self, identity: str) -> Entry:
        """Ends the token with this id. Raises TokenFileError when there is none."""
        with self._changing() as entries:
            for entry in entries:
                if entry.id == identity:
                    entries.remove(entry)
                    return entry
            raise TokenFileError(f"no token has the id {identity[:40]!r}: gopher-mcp token list shows them")

    def entries(self) -> list[Entry]:
        """All tokens, oldest first. Raises TokenFileError."""
        return sorted(self._read(), key=lambda entry: entry.created)

    def _changing(self) -> _Change:
        return _Change(self)

    def _look(self) -> None:
        """Reads the file anew when it has changed."""
        now = time.monotonic()
        if now - self._looked < _LOOK_EVERY and self._stamp is not None:
            return
        try:
            found = self.path.stat()
            stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
        except OSError:
            self._entries, self._stamp = {}, None
            return
        if stamp != self._stamp:
            self._entries, self._stamp = {}, None  # until it has been read, nobody is known
            self._entries = {entry.digest: entry for entry in self._read()}
            self._stamp = stamp
        self._looked = now

    def _read(self) -> list[Entry]:
        try:
            data = read_private(self.path)
        except TokenStoreError as error:
            raise TokenFileError(_without_variable(error)) from None
        if data is None:
            return []
        try:
            listed = json.loads(data)["tokens"]
            return [_entry(item) for item in listed]
        except (ValueError, KeyError, TypeError, AttributeError):
            raise TokenFileError(f"{self.path} is no file of tokens: move it away and make new tokens") from None

    def _write(self, entries: list[Entry]) -> None:
        listed = [_written(entry) for entry in entries]
        write_private(self.path, json.dumps({"tokens": listed}, indent=1).encode() + b"\n")


class _Change:
    """The entries, read and written under the file's lock."""

    def __init__(self, file: TokenFile) -> None:
        self._file = file
        self._lock: Any = None

    def __enter__(self) -> list[Entry]:
        try:
            make_folder(self._file.path.parent)
            self._lock = locked(self._file.path)
            self._lock.__enter__()
        except TokenStoreError as error:
            raise TokenFileError(_without_variable(error)) from None
        try:
            self._entries = self._file._read()
        except BaseException:
            self._lock.__exit__(None, None, None)
            raise
        return self._entries

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._file._write(self._entries)
        except TokenStoreError as error:
            raise TokenFileError(_without_variable(error)) from None
        finally:
            self._lock.__exit__(None, None, None)
            self._file._looked = float("-inf")


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _entry(item: dict[str, Any]) -> Entry:
    scopes = frozenset(scope for scope in SCOPES if scope in item["scopes"])
    digest = bytes.fromhex(item["sha256"])
    return Entry(str(item["id"]), str(item["caller"]), str(item["name"]), scopes, float(item["created"]), digest)


def _written(entry: Entry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "caller": entry.caller,
        "name": entry.name,
        "scopes": sorted(entry.scopes),
        "created": entry.created,
        "sha256": entry.digest.hex(),
    }


def _check_name(what: str, text: str) -> None:
    if not text.strip() or len(text) > MAX_CALLER or not text.isprintable():
        raise TokenFileError(f"the {what} must be 1 to {MAX_CALLER} printable characters")


def _without_variable(error: TokenStoreError) -> str:
    """The reason without the remedy for sign-in tokens, which are another file's."""
    return re.sub(r",? or put the tokens elsewhere \(.*\)", "", error.message)
