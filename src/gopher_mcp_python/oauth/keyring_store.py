"""Tokens in the system's keyring: macOS Keychain, Windows Credential Manager, Secret Service, KWallet.

A keyring holds texts under (service, user name) and can't list them, so one entry more, the index, names the keys.
"""

from __future__ import annotations

import json
import os
import threading
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

from ..awaiting import on_a_thread
from ..oauth_options import GopherAgentTokenRecord
from .filestore import folder_of
from .keyring_entries import Entries, backend, damaged, decoded
from .privatefile import locked, make_folder
from .stores import SharedByCopies, TokenStoreError, record_fields, record_from

__all__ = ["KeyringTokenStore"]

_INDEX = "#index"  # no server's key begins so
_writing = threading.Lock()  # where there is no file to lock


class KeyringTokenStore(SharedByCopies):
    """Tokens in the system's keyring, under one service name.

    Every method may be called from any thread and event loop; the keyring may show its own prompt to be unlocked.
    Needs the extra `keyring`.

    Args:
        service: The name that the entries have in the keyring.

    Raises: ValueError when the name is empty. The methods raise TokenStoreError when the extra is missing, no keyring
        can be used here or it refuses, with the remedy.
    """

    def __init__(self, service: str = "gopher-mcp") -> None:
        if not isinstance(service, str) or not service:
            raise ValueError("the keyring's service must be a non-empty string")
        self._service = service

    @property
    def identity(self) -> tuple[str, ...]:
        """Equal for two stores that are one place."""
        return "keyring", self._service

    @property
    def refresh_lock(self) -> Path | None:
        """What a process locks while it renews a token; None without a folder for it."""
        try:
            path = folder_of("data") / "keyring.refresh"
            make_folder(path.parent)
        except TokenStoreError:
            return None
        return path

    async def get(self, key: str) -> GopherAgentTokenRecord | None:
        """The record under `key`; None when there is none."""
        return await on_a_thread(partial(self._get, key))

    async def set(self, key: str, token: GopherAgentTokenRecord) -> None:
        """Stores the record. Raises also TypeError when it is none, ValueError when its values can't be kept."""
        text = json.dumps(record_fields(key, token))
        await on_a_thread(partial(self._set, key, text))

    async def delete(self, key: str) -> None:
        """Removes the record under `key`, if there is one, even one that can't be read any more."""
        await on_a_thread(partial(self._delete, key))

    async def keys(self) -> list[str]:
        """The keys of all records, sorted."""
        return sorted(await on_a_thread(lambda: self._index(self._entries())))

    async def clear(self) -> int:
        """Removes everything; returns how many records there were."""
        return await on_a_thread(self._clear)

    def is_there(self) -> bool:
        """Whether there is a keyring; it may be locked."""
        try:
            backend()
        except TokenStoreError:
            return False
        return True

    def is_usable(self) -> bool:
        """Whether a keyring is there and answers; may wait for the person who unlocks it, so not for event loops."""
        try:
            self._entries().probe(_INDEX)
        except TokenStoreError:
            return False
        return True

    def __repr__(self) -> str:
        return f"KeyringTokenStore({self._service!r})"

    def _entries(self) -> Entries:
        return Entries(backend(), self._service)

    def _get(self, key: str) -> GopherAgentTokenRecord | None:
        text = self._entries().read(key)
        fields = None if text is None else decoded(text)
        if text is None:
            return None
        try:
            return record_from(fields)
        except (ValueError, KeyError):
            pass
        raise damaged(key)

    def _set(self, key: str, text: str) -> None:
        entries = self._entries()
        with _alone():
            keys = self._index(entries)
            if key not in keys:  # first the index: a token that no list names would never be removed
                entries.write(_INDEX, json.dumps(sorted({*keys, key})))
            entries.write(key, text)

    def _delete(self, key: str) -> None:
        entries = self._entries()
        with _alone():
            self._remove(entries, [key])

    def _clear(self) -> int:
        entries = self._entries()
        with _alone():
            keys = self._index(entries)
            self._remove(entries, keys)
            entries.remove(_INDEX)
        return len(keys)

    def _remove(self, entries: Entries, keys: list[str]) -> None:
        for key in keys:
            entries.remove(key)
        before = self._index(entries)
        left = [key for key in before if key not in keys]
        if left != before:
            entries.write(_INDEX, json.dumps(left))

    @staticmethod
    def _index(entries: Entries) -> list[str]:
        text = entries.read(_INDEX)
        listed = [] if text is None else decoded(text)
        if not isinstance(listed, list):
            raise damaged(_INDEX)
        return [key for key in listed if isinstance(key, str)]


def _alone() -> AbstractContextManager[Any]:
    """One writer at a time, in all processes of this user. Without a folder for the lock, in this process: two that
    store their first tokens at the same moment could then leave one out of the index, and nothing else."""
    try:
        path = folder_of("data") / "keyring"
        make_folder(path.parent)
    except TokenStoreError:
        return _writing
    return locked(path) if os.access(path.parent, os.W_OK) else _writing
