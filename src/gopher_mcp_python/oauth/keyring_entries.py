"""Texts of any length in the system's keyring, which keeps short ones.

A long text is split. That is safe against who reads meanwhile: the parts are written first, under the name that is not
in use, then the head that names them and their checksum. A reader who finds parts that don't fit reads again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any, TypeVar

from .keys import address_of
from .stores import TokenStoreError

__all__ = ["Entries", "backend", "damaged", "decoded"]

# Windows: CRED_MAX_CREDENTIAL_BLOB_SIZE is 2560 bytes, and two of them are a character there.
LONGEST = 1200
# These take a text of any length, and are spared the calls (each takes 10 ms or more of D-Bus); others may be a way to
# Windows' store.
_ANY_LENGTH = tuple(f"keyring.backends.{name}" for name in ("SecretService", "libsecret", "kwallet", "macOS"))
_OTHER_STORE = 'or take another store (token_store="file", --token-store file)'
_TRIES = 5
_Result = TypeVar("_Result")


class Entries:
    """Texts of any length in a keyring of short ones."""

    def __init__(self, backend: Any, service: str) -> None:
        self._backend = backend
        self._service = service
        self._splits = not type(backend).__module__.startswith(_ANY_LENGTH)

    def probe(self, name: str) -> None:
        """Raises TokenStoreError when the keyring doesn't answer."""
        self._get(name)

    def read(self, name: str) -> str | None:
        """The whole text; None when there is none. Raises TokenStoreError, also for one whose parts don't fit."""
        seen = None
        for _ in range(_TRIES):
            head = self._get(name)
            told = None if head is None else decoded(head)
            if not isinstance(told, dict) or "parts" not in told:
                return head
            text = self._joined(name, told)
            if text is not None:
                return text
            if head == seen:
                break  # nobody is writing; it is damaged
            seen = head
        raise damaged(name)

    def write(self, name: str, text: str) -> None:
        if len(text) <= LONGEST or not self._splits:
            self._commit(name, text, keep="")
            return
        side = "b" if self._side(name) == "a" else "a"
        parts = [text[start : start + LONGEST] for start in range(0, len(text), LONGEST)]
        for number, part in enumerate(parts):
            self._set(_part(name, side, number), part)
        self._commit(name, json.dumps({"parts": len(parts), "side": side, "sha256": _checksum(text)}), keep=side)

    def remove(self, name: str) -> None:
        if self._get(name) is not None:
            self._call("removed", self._backend.delete_password, name)
        self._drop_parts(name, keep="")

    def _commit(self, name: str, head: str, *, keep: str) -> None:
        self._set(name, head)
        self._drop_parts(name, keep=keep)

    def _drop_parts(self, name: str, *, keep: str) -> None:
        """Removes the parts that no head names, the last one first: what is left after a crash has no gap."""
        if not self._splits:
            return
        for side in {"a", "b"} - {keep}:
            count = 0
            while self._get(_part(name, side, count)) is not None:
                count += 1
            for number in reversed(range(count)):
                self._call("removed", self._backend.delete_password, _part(name, side, number))

    def _side(self, name: str) -> str:
        head = self._get(name)
        told = None if head is None else decoded(head)
        return str(told.get("side", "")) if isinstance(told, dict) else ""

    def _joined(self, name: str, told: dict[str, Any]) -> str | None:
        count, side = told.get("parts"), told.get("side")
        if not isinstance(count, int) or not 0 < count < 10_000:
            return None
        parts = [self._get(_part(name, str(side), number)) for number in range(count)]
        text = "".join(part for part in parts if part is not None)
        return text if None not in parts and _checksum(text) == told.get("sha256") else None

    def _get(self, name: str) -> str | None:
        found: str | None = self._call("read", self._backend.get_password, name)
        return found

    def _set(self, name: str, text: str) -> None:
        self._call("written", self._backend.set_password, name, text)

    def _call(self, what: str, method: Callable[..., _Result], name: str, *text: str) -> _Result:
        """Backends raise what they like: the system's own errors, or keyring's. Their texts may quote what was to be
        stored, so a write's are not told."""
        try:
            return method(self._service, name, *text)
        except Exception as error:
            reason = type(error).__name__ + ("" if text or not str(error) else f": {error!s:.200}")
        name = getattr(self._backend, "name", type(self._backend).__name__)
        raise TokenStoreError(
            f"the keyring ({name}) could not be {what} ({reason}): unlock it, {_OTHER_STORE}"
        )


def backend() -> Any:
    """The keyring in use. Raises TokenStoreError when there is none that keeps anything."""
    try:
        import keyring
        from keyring.backends import chainer, fail, null
    except ImportError:
        raise TokenStoreError(
            f'the keyring needs an extra: pip install "gopher-mcp-python[keyring]", {_OTHER_STORE}'
        ) from None
    reason = ""
    try:
        found = keyring.get_keyring()
        if isinstance(found, fail.Keyring):
            reason = "there is none"
        elif isinstance(found, null.Keyring):
            reason = "it is switched off (the null backend is chosen)"
        elif isinstance(found, chainer.ChainerBackend) and not found.backends:
            reason = "the chain of backends is empty"
    except Exception as error:  # a backend that is named by PYTHON_KEYRING_BACKEND and can't be loaded
        reason = f"{type(error).__name__}: {error!s:.200}"
    if reason:
        raise TokenStoreError(
            f"no keyring can be used here ({reason}): start a Secret Service (gnome-keyring, KWallet), see "
            f"`python -m keyring diagnose`, {_OTHER_STORE}"
        )
    return found


def decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None  # the caller says what is damaged; the error would hold the text


def _part(name: str, side: str, number: int) -> str:
    return f"{name} [{side}{number}]"


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def damaged(name: str) -> TokenStoreError:
    server = address_of(name)
    first = f"run gopher-mcp logout {server}" if server else "remove the entries of gopher-mcp in the keyring's program"
    return TokenStoreError(f"an entry of the keyring is damaged: {first} and sign in again")
