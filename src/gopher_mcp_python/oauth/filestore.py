"""Tokens in one encrypted file, for machines without a keyring.

The key is the caller's, or made of a passphrase (GOPHER_MCP_TOKEN_KEY), or lies in a file of its own in another folder.
Reading takes no lock, since the file is only ever replaced as a whole; changing takes one against other processes.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

from ..awaiting import on_a_thread
from ..oauth_options import GopherAgentTokenRecord
from .privatefile import FILE_VARIABLE, locked, make_folder, read_private, write_private
from .sealing import KEY_BYTES, Damaged, Envelope, KeyKind, TooNew, WrongKey, from_passphrase, new_salt
from .stores import SharedByCopies, TokenStoreError, record_fields, record_from

__all__ = ["FileTokenStore", "folder_of"]

KEY_VARIABLE = "GOPHER_MCP_TOKEN_KEY"
_Result = TypeVar("_Result")


class FileTokenStore(SharedByCopies):
    """Tokens in an encrypted file (AES-256-GCM) that only this user can read.

    Every method may be called from any thread and event loop, and any number of processes may use one file.

    Args:
        path: The file. Default: the environment variable GOPHER_MCP_TOKEN_FILE, else `tokens.sealed` in the user's
            data folder.
        key: 32 random bytes, or a passphrase. Default: the passphrase in the environment variable
            GOPHER_MCP_TOKEN_KEY, else a random key in the file `token-key` in the user's configuration folder, which is
            made when the first token is stored.

    Raises: TypeError or ValueError when the key is none; TokenStoreError when no path is named and there is no home
        folder. The methods raise TokenStoreError with file and remedy; a file that can't be opened is left as it is.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, key: bytes | str | None = None) -> None:
        self._key = _Key(key)
        named = path if path is not None else os.environ.get(FILE_VARIABLE)
        place = os.path.expanduser(named) if named else folder_of("data") / "tokens.sealed"
        self._path = Path(os.path.abspath(place))

    @property
    def path(self) -> Path:
        """Where the tokens are."""
        return self._path

    @property
    def identity(self) -> tuple[str, ...]:
        """Equal for two stores that are one place."""
        return "file", str(self._real())

    @property
    def refresh_lock(self) -> Path:
        """What a process locks while it renews a token; not the lock of the file, which is written meanwhile."""
        real = self._real()
        return real.with_name(real.name + ".refresh")

    async def get(self, key: str) -> GopherAgentTokenRecord | None:
        """The record under `key`; None when there is none."""
        records = await on_a_thread(self._read)
        return record_from(records[key]) if key in records else None

    async def set(self, key: str, token: GopherAgentTokenRecord) -> None:
        """Stores the record; it is on the disk afterwards. Raises also TypeError when it is none, ValueError when its
        values can't be kept."""
        fields = record_fields(key, token)
        await on_a_thread(partial(self._change, lambda records: records.update({key: fields})))

    async def delete(self, key: str) -> None:
        """Removes the record under `key`, if there is one."""
        await on_a_thread(partial(self._change, lambda records: records.pop(key, None)))

    async def keys(self) -> list[str]:
        """The keys of all records, sorted."""
        return sorted(await on_a_thread(self._read))

    async def clear(self) -> int:
        """Removes everything; returns how many records there were."""

        def empty(records: dict[str, Any]) -> int:
            count = len(records)
            records.clear()
            return count

        return await on_a_thread(partial(self._change, empty))

    def __reduce__(self) -> str | tuple[Any, ...]:
        if self._key.is_given:
            raise TypeError("a FileTokenStore with a key= can't be pickled: make it where it is needed")
        return FileTokenStore, (str(self._path),)

    def __repr__(self) -> str:
        return f"FileTokenStore({str(self._path)!r})"

    def _read(self) -> dict[str, Any]:
        return self._load(self._real())[1]

    def _change(self, change: Callable[[dict[str, Any]], _Result]) -> _Result:
        path = self._real()
        if read_private(path) is None:
            nothing: dict[str, Any] = {}
            result = change(nothing)
            if not nothing:  # nothing to remove anything from: no folder and no key is made for that
                return result
        make_folder(path.parent)
        with locked(path):
            envelope, records = self._load(path)
            before = dict(records)
            result = change(records)
            if records != before:
                new = envelope or Envelope(self._key.kind, new_salt())
                write_private(path, new.seal(records, self._key.bytes_for(new, path, may_make=envelope is None)))
        return result

    def _real(self) -> Path:
        """The file itself where the path is a link, which is to stay one."""
        return Path(os.path.realpath(self._path))

    def _load(self, path: Path) -> tuple[Envelope | None, dict[str, Any]]:
        data = read_private(path)
        if not data:
            return None, {}  # an empty file holds nothing that could be lost
        try:
            envelope = Envelope.read(data)
            return envelope, envelope.open(self._key.bytes_for(envelope, path))
        except Damaged:
            why = "is damaged: put a copy of it back, or delete it and sign in again"
        except TooNew:
            why = "was written by a newer version of this package: update it (pip install -U gopher-mcp-python)"
        except WrongKey:
            why = f"was sealed with another key than {self._key}; give that one, or delete the file and sign in again"
        raise TokenStoreError(f"the token file {path} {why}")


class _Key:
    """Where the key comes from. What is secret is kept in a closure, so that no look at attributes shows it."""

    def __init__(self, given: bytes | str | None) -> None:
        if given is not None and not isinstance(given, (bytes, str)):
            raise TypeError("key must be bytes or a passphrase (a string)")
        if isinstance(given, bytes) and len(given) != KEY_BYTES:
            raise ValueError(f"a key must have {KEY_BYTES} bytes (os.urandom({KEY_BYTES})); a passphrase is a string")
        if given == "":
            raise ValueError("the passphrase is empty")
        self.is_given = given is not None
        self._secret: Callable[[], bytes | str | None] = lambda: given or os.environ.get(KEY_VARIABLE) or None
        self._derived: Callable[[], tuple[str, bytes, bytes] | None] = lambda: None

    @property
    def kind(self) -> KeyKind:
        secret = self._secret()
        return "file" if secret is None else "given" if isinstance(secret, bytes) else "passphrase"

    def bytes_for(self, envelope: Envelope, path: Path, *, may_make: bool = False) -> bytes:
        """The key for this envelope. `may_make`: a random one may be made, since nothing is sealed yet."""
        secret = self._secret()
        if envelope.kind != self.kind:
            raise TokenStoreError(f"the token file {path} was sealed with {_SOURCES[envelope.kind]}")
        if isinstance(secret, bytes):
            return secret
        if secret is not None:
            return self._from_passphrase(secret, envelope.salt)
        return _key_from_file(path, may_make=may_make)

    def _from_passphrase(self, passphrase: str, salt: bytes) -> bytes:
        known = self._derived()
        if known is not None and known[:2] == (passphrase, salt):
            return known[2]
        made = (passphrase, salt, from_passphrase(passphrase, salt))
        self._derived = lambda: made
        return made[2]

    def __str__(self) -> str:
        if self.is_given:
            return "the key= that was given"
        return f"the passphrase in {KEY_VARIABLE}" if self.kind == "passphrase" else f"the one in {_key_file()}"


_SOURCES: dict[KeyKind, str] = {
    "file": f"a key file: unset {KEY_VARIABLE} and give no key=, or delete the file and sign in again",
    "passphrase": f"a passphrase; set {KEY_VARIABLE} to it, or delete the file and sign in again",
    "given": "a key of 32 bytes: give it as key=, or delete the file and sign in again",
}


def folder_of(kind: Literal["data", "config"]) -> Path:
    """This user's folder for our data or configuration. Raises TokenStoreError when there is no home folder."""
    import platformdirs

    find = platformdirs.user_data_path if kind == "data" else platformdirs.user_config_path
    try:
        folder = find("gopher-mcp", appauthor=False)
    except RuntimeError:  # versions of 2026 say it themselves, older ones give "~/..." back
        folder = Path()
    if folder.is_absolute():
        return folder
    remedy = FILE_VARIABLE if kind == "data" else f"{KEY_VARIABLE} (a passphrase)"
    raise TokenStoreError(f"there is no home folder to keep tokens in: set HOME, or {remedy}")


def _key_file() -> Path:
    return folder_of("config") / "token-key"


def _key_from_file(sealed: Path, *, may_make: bool) -> bytes:
    path = Path(os.path.realpath(_key_file()))
    text = read_private(path)
    if text is None and may_make:
        text = _make_key(path)
    if text is None:
        raise TokenStoreError(
            f"{path} with the key of {sealed} is not there: put it back, or delete {sealed} and sign in again"
        )
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise TokenStoreError(f"the key file {path} is damaged: put a copy of it back, or delete it and {sealed}")
    return key


def _make_key(path: Path) -> bytes:
    """Makes the key file, unless another process was faster."""
    make_folder(path.parent)
    with locked(path):
        text = read_private(path)
        if text is None:
            text = base64.b64encode(os.urandom(KEY_BYTES)) + b"\n"
            write_private(path, text)
    return text
