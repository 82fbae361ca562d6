"""A keyring backend for tests, registered by keyring's own API: entries in a JSON file, with the limits of Windows.

It stands in because no Secret Service, Keychain or Credential Manager runs where the tests do. It is stricter than the
real ones: a text of more than 2560 bytes in UTF-16 is refused as Windows refuses it, so is removing what is not there.
Child processes take it with `environment(file)`; several may use one file.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from keyring.backend import KeyringBackend
from keyring.errors import PasswordDeleteError, PasswordSetError

_VARIABLE = "LIMITED_KEYRING_FILE"


def environment(file: Path) -> dict[str, str]:
    """Variables under which a child process has this keyring."""
    return {"PYTHON_KEYRING_BACKEND": "tests.support.limited_keyring.LimitedKeyring", _VARIABLE: str(file)}


class LimitedKeyring(KeyringBackend):
    """`before` is called with (what, user name) before each operation: a test may raise there, or write meanwhile."""

    priority = 1  # type: ignore[assignment]
    viable = False  # type: ignore[assignment]  # never found by itself, only where a test names it

    def __init__(self, file: Path | None = None) -> None:
        super().__init__()
        self.file = file or Path(os.environ[_VARIABLE])
        self.limit = 2560
        self.before: Callable[[str, str], object] = lambda what, name: None

    def entries(self) -> dict[str, str]:
        """User name to text."""
        with self._changed() as found:
            return dict(found)

    def get_password(self, service: str, username: str) -> str | None:
        self.before("get", username)
        with self._changed() as found:
            return found.get(username)

    def set_password(self, service: str, username: str, password: str) -> None:
        self.before("set", username)
        if len(password.encode("utf-16")) > self.limit:
            raise PasswordSetError("the stub received bad data")  # what Windows says
        with self._changed() as found:
            found[username] = password

    def delete_password(self, service: str, username: str) -> None:
        self.before("delete", username)
        with self._changed() as found:
            if found.pop(username, None) is None:
                raise PasswordDeleteError("no such password")

    @contextmanager
    def _changed(self) -> Iterator[dict[str, str]]:
        with open(self.file, "a+", encoding="ascii") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            before = file.read()
            found = json.loads(before or "{}")
            yield found
            after = json.dumps(found)
            if after != before:
                file.seek(0)
                file.truncate()
                file.write(after)
