"""Decisions that outlive the process, in a file for this user only. No URL and no answer is ever in it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..oauth.filestore import folder_of
from ..oauth.privatefile import FILE_VARIABLE, locked, make_folder, read_private, write_private
from ..oauth.stores import TokenStoreError
from .decisions import PolicyStoreError, Remembered

__all__ = ["MAX_STORED", "DecisionFile"]

MAX_STORED = 2000  # decisions; the oldest goes when there are more
_VERSION = 1
_FIELDS = ("decision", "server", "address", "digest", "mode", "host")
_DECISIONS = {"allow": ("url",), "decline": ("url", "form"), "block": (None,)}


class DecisionFile:
    """The file. Reading takes no lock, since it is only ever replaced as a whole.

    Args:
        path: where; True: `elicitation-decisions.json` in the user's data folder.
        patience: how long another process's lock is waited for, in seconds.

    Raises PolicyStoreError when no path is given and there is no home folder; ValueError when it is none.
    """

    def __init__(self, path: Any, *, patience: float = 5.0) -> None:
        if path is True:
            try:
                path = folder_of("data") / "elicitation-decisions.json"
            except TokenStoreError:
                raise PolicyStoreError("there is no home folder to keep decisions in: set HOME, or name one") from None
        if not isinstance(path, (str, os.PathLike)) or not str(path):
            raise ValueError("a policy's store must be the path of a file, True for the usual one, or None for none")
        self.path = Path(os.path.realpath(os.path.expanduser(str(path))))
        self._patience = patience

    def read(self) -> list[Remembered]:
        """What is remembered, the oldest first. Raises PolicyStoreError when it can't be read or is damaged."""
        try:
            data = read_private(self.path)
        except TokenStoreError as error:
            raise _plain(error) from None
        return [] if data is None else self._parsed(data)

    def change(self, change: Callable[[list[Remembered]], list[Remembered]]) -> None:
        """Keeps what `change` makes of what is remembered. Raises PolicyStoreError; then nothing was changed."""
        try:
            make_folder(self.path.parent)
            with locked(self.path, self._patience):
                before = self.read()
                after = change(list(before))[-MAX_STORED:]
                if after != before:
                    write_private(self.path, _written(after))
        except TokenStoreError as error:
            raise _plain(error) from None

    def _parsed(self, data: bytes) -> list[Remembered]:
        try:
            found = json.loads(data)
            version, entries = found["version"], found["decisions"]
            if isinstance(version, int) and version > _VERSION:
                raise PolicyStoreError(
                    f"{self.path} was written by a newer version of this package: update it (pip install -U "
                    "gopher-mcp-python)"
                )
            if version != _VERSION or not isinstance(entries, list):
                raise ValueError
            return [_entry(one) for one in entries]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise PolicyStoreError(
                f"{self.path} with the remembered decisions is damaged: put a copy of it back, or delete it and decide "
                "again"
            ) from None


def _entry(found: Any) -> Remembered:
    """One decision, strictly as it was written. Raises ValueError, KeyError or TypeError for anything else."""
    decision, server, address, digest, mode, host = (found[name] for name in _FIELDS)
    texts = (server, address, digest) if host is None else (server, address, digest, host)
    if len(found) != len(_FIELDS) or not all(isinstance(text, str) for text in texts):
        raise ValueError
    if mode not in _DECISIONS[decision] or (mode == "url") != (host is not None):
        raise ValueError
    return Remembered(decision, server, address, digest, mode, host)


def _written(decisions: list[Remembered]) -> bytes:
    entries = [{name: getattr(one, name) for name in _FIELDS} for one in decisions]
    return json.dumps({"version": _VERSION, "decisions": entries}, indent=1).encode() + b"\n"


def _plain(error: TokenStoreError) -> PolicyStoreError:
    """The same failure in this file's words: those of private files speak of where tokens could go instead."""
    text = str(error).replace(f"put the tokens elsewhere ({FILE_VARIABLE})", "give the policy another file as store=")
    return PolicyStoreError(text.replace("a file of tokens", "a file of decisions"))
