"""Token stores: what they share, the one in memory, and the choice by name.

A store keeps `GopherAgentTokenRecord`s under text keys. Keys begin with the server's address, so that a person can sign
out of a server: "https://host:8443/mcp#<hash>" (see `keys`).
"""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ..awaiting import on_a_thread
from ..errors import AgentError
from ..oauth_options import TOKEN_STORE_NAMES, GopherAgentTokenRecord, GopherAgentTokenStore

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Self

    from .filestore import FileTokenStore
    from .keyring_store import KeyringTokenStore

__all__ = [
    "KeyringOrFileTokenStore",
    "ListingTokenStore",
    "MemoryTokenStore",
    "TokenStoreError",
    "default_name",
    "record_fields",
    "record_from",
    "resolve_store",
    "stored_outside",
]

STORE_VARIABLE = "GOPHER_MCP_TOKEN_STORE"
_RENEWAL_SECONDS = 70.0  # that another process may take for a renewal, which has a limit of its own (60 s)


class TokenStoreError(AgentError):
    """A token store can't be read or written. The text names the store and the remedy, never what is in it."""


@runtime_checkable
class ListingTokenStore(GopherAgentTokenStore, Protocol):
    """A token store that can say what it holds, as the three of this package do."""

    async def keys(self) -> list[str]: ...

    async def clear(self) -> int: ...


class SharedByCopies:
    """A store is one place: a copy of its object, or of the options that hold it, means the same place."""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


class MemoryTokenStore(SharedByCopies):
    """Tokens in this process's memory, gone at its end. Every method may be called from any thread and event loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._records: dict[str, dict[str, Any]] = {}

    async def get(self, key: str) -> GopherAgentTokenRecord | None:
        """The record under `key`, a copy; None when there is none."""
        with self._lock:
            fields = self._records.get(key)
        return None if fields is None else record_from(fields)

    async def set(self, key: str, token: GopherAgentTokenRecord) -> None:
        """Keeps a copy of the record. Raises TypeError when it is none, ValueError when its values can't be kept."""
        fields = record_fields(key, token)
        with self._lock:
            self._records[key] = fields

    async def delete(self, key: str) -> None:
        """Forgets the record under `key`, if there is one."""
        with self._lock:
            self._records.pop(key, None)

    async def keys(self) -> list[str]:
        """The keys of all records, sorted."""
        with self._lock:
            return sorted(self._records)

    async def clear(self) -> int:
        """Forgets everything; returns how many records there were."""
        with self._lock:
            count = len(self._records)
            self._records.clear()
        return count

    def after_fork(self) -> None:
        """In a child: its tokens stay good, but renewing them is the parent's, as one refresh token can't serve two."""
        self._lock = threading.Lock()
        for fields in self._records.values():
            fields["refresh_token"] = None

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError("a MemoryTokenStore can't be pickled: its tokens would be written in the clear")

    def __repr__(self) -> str:
        return f"<MemoryTokenStore, {len(self._records)} record(s)>"


class KeyringOrFileTokenStore(SharedByCopies):
    """The system's keyring where it can be used, else the encrypted file; found out when the store is first used."""

    def __init__(self) -> None:
        self._chosen: ListingTokenStore | None = None

    @property
    def identity(self) -> tuple[str, ...]:
        """Equal for two stores that are one place."""
        return ("keyring or file",)

    async def get(self, key: str) -> GopherAgentTokenRecord | None:
        return await (await self.chosen()).get(key)

    async def set(self, key: str, token: GopherAgentTokenRecord) -> None:
        await (await self.chosen()).set(key, token)

    async def delete(self, key: str) -> None:
        await (await self.chosen()).delete(key)

    async def keys(self) -> list[str]:
        return await (await self.chosen()).keys()

    async def clear(self) -> int:
        return await (await self.chosen()).clear()

    async def chosen(self) -> ListingTokenStore:
        """The store behind this one. Two first users at once both find the same."""
        if self._chosen is None:
            usable = await on_a_thread(_keyring_store().is_usable)
            self._chosen = _keyring_store() if usable else _file_store()
        return self._chosen

    def __repr__(self) -> str:
        return f"<KeyringOrFileTokenStore, {self._chosen or 'not used yet'}>"


@asynccontextmanager
async def one_process(store: GopherAgentTokenStore) -> AsyncIterator[None]:
    """While open, no other process of this user renews a token of the same store: a provider that sees one refresh
    token twice takes it for stolen. For stores of this package that outlive a process."""
    place = await _lock_of(store)
    if place is None:
        yield
        return
    from .privatefile import locked

    lock = locked(place, _RENEWAL_SECONDS)
    try:
        await on_a_thread(lock.__enter__, discard=lambda _: lock.__exit__(None, None, None))
    except TokenStoreError:  # a disk that is read-only, a process that hangs: better a refresh without it than none
        yield
        return
    try:
        yield
    finally:
        lock.__exit__(None, None, None)


async def _lock_of(store: GopherAgentTokenStore) -> Path | None:
    if isinstance(store, KeyringOrFileTokenStore):
        store = await store.chosen()
    place: Path | None = getattr(store, "refresh_lock", None)
    return place


_file_stores: dict[str, FileTokenStore] = {}
_keyring_stores: dict[str, KeyringTokenStore] = {}
_memory = MemoryTokenStore()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_memory.after_fork)


def resolve_store(value: GopherAgentTokenStore | str | None = None) -> GopherAgentTokenStore:
    """The store that an option means: a store as it is, one of the three by its name.

    None is the environment variable GOPHER_MCP_TOKEN_STORE, else the memory that the whole process shares. A name
    gives the same object each time, as long as the variables that say where its file is stay the same.

    Raises: ValueError for another name; TokenStoreError when there is no place for the file.
    """
    if value is not None and not isinstance(value, str):
        return value
    name = default_name() or "memory" if value is None else value
    if name not in TOKEN_STORE_NAMES:
        raise ValueError(f'token store {name!r:.40} is none of "memory", "keyring" and "file"')
    if name == "memory":
        return _memory
    return _keyring_store() if name == "keyring" else _file_store()


def default_name() -> str | None:
    """The store that GOPHER_MCP_TOKEN_STORE names, if any. Raises ValueError when there is none of that name."""
    name = os.environ.get(STORE_VARIABLE, "").strip().lower()
    if name and name not in TOKEN_STORE_NAMES:
        raise ValueError(
            f'the environment variable {STORE_VARIABLE} is {name!r:.40}: it takes "memory", "keyring" or "file"'
        )
    return name or None


def stored_outside() -> list[ListingTokenStore]:
    """The stores that outlive a process: the keyring, if there is one here (it may be locked), and the file."""
    keyring = _keyring_store()
    return [*([keyring] if keyring.is_there() else []), _file_store()]


def _keyring_store() -> KeyringTokenStore:
    from .keyring_store import KeyringTokenStore

    return _keyring_stores.setdefault("", KeyringTokenStore())  # atomic: one for all threads


def _file_store() -> FileTokenStore:
    """The same object again: it keeps the key that was made of a passphrase, which takes time."""
    from .filestore import FileTokenStore

    path = FileTokenStore().path
    return _file_stores.setdefault(str(path), FileTokenStore(path))  # atomic: one for all threads


def record_fields(key: object, token: object) -> dict[str, Any]:
    """What is kept of a record: all of it. Raises TypeError and ValueError like the stores' `set`."""
    if not isinstance(key, str):
        raise TypeError("the key of a token must be a string")
    if not isinstance(token, GopherAgentTokenRecord):
        raise TypeError(f"a token store keeps GopherAgentTokenRecord objects, not {type(token).__name__}")
    fields = {
        "access_token": token.access_token,
        "token_type": token.token_type,
        "refresh_token": token.refresh_token,
        "expires_at": token.expires_at,
        "scope": token.scope,
    }
    record_from(fields)  # attributes can be set to anything after the record was made; none of it gets further
    return fields


def record_from(fields: Any) -> GopherAgentTokenRecord:
    """The record of such fields; names that a later version may add are passed over. Raises ValueError, KeyError."""
    if not isinstance(fields, dict):
        raise ValueError("not the fields of a token record")
    return GopherAgentTokenRecord(
        fields["access_token"], fields["token_type"], fields["refresh_token"], fields["expires_at"], fields["scope"]
    )
