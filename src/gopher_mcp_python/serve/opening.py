"""A store from what a command line says: `memory`, `sqlite:PATH`, `postgresql://...`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..store.anchors import Anchor
    from ..store.backend import Backend
    from ..store.core import Store
    from ..store.keys import KeyProvider

__all__ = ["default_folder", "open_anchor", "open_backend", "open_over", "open_store", "path_of"]


def open_store(spec: str, keys: str | Path | KeyProvider | None = None, *, anchor: Anchor | None = None) -> Store:
    """The store that `spec` names, with its keys: those given or of the file `keys`, else of the environment, else of a
    file in this user's data folder that is made on first use. The end of its audit is given to `anchor` at once.

    Raises ValueError for another spec; StoreError when it can't be opened, or the anchor can't be used or is another
    audit's.
    """
    return open_over(open_backend(spec), keys, anchor=anchor)


def open_over(backend: Backend, keys: str | Path | KeyProvider | None, *, anchor: Anchor | None) -> Store:
    """As `open_store`, over this backend, which is closed with the store, or when that can't be opened."""
    from ..store import chores
    from ..store.core import Store

    try:
        if anchor is not None:
            chores.write_anchor(backend, anchor)
        return Store(backend, _keys(keys, backend), anchor=anchor)
    except BaseException:
        backend.close()
        raise


def open_anchor(place: str, *, make: bool = False) -> Anchor:
    """The anchor at a URL or in a file; with `make` a file is made where there is none, and is tried.

    Raises ValueError for a URL that is none, StoreError for a file that can't be written.
    """
    from ..store.anchors import FileAnchor, UrlAnchor
    from ..store.errors import StoreError

    if "://" in place:
        return UrlAnchor(place)
    path = path_of(place)
    try:
        if make:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    except OSError as error:
        told = error.strerror or type(error).__name__
        raise StoreError(f"The audit's anchor {path} can't be written ({told}): see to it") from None
    return FileAnchor(path)


def default_folder() -> Path:
    """This user's folder for tokens, keys and files that people answer with. Raises ValueError without a home."""
    from ..oauth.filestore import folder_of
    from ..oauth.stores import TokenStoreError

    try:
        return folder_of("data")
    except TokenStoreError:
        raise ValueError("there is no home folder: set HOME, or name files and folders by their options") from None


def open_backend(spec: str) -> Backend:
    """Where the rows are, by `spec`. Raises as `open_store`."""
    if spec == "memory":
        from ..store.memory import MemoryBackend

        return MemoryBackend()
    kind, colon, rest = spec.partition(":")
    if kind == "sqlite" and rest:
        from ..store.sqlite import SqliteBackend

        return SqliteBackend(path_of(rest.removeprefix("//")))
    if kind in ("postgresql", "postgres") and colon:
        from ..store.postgres import PostgresBackend

        return PostgresBackend(spec)
    raise ValueError("the store must be memory, sqlite:PATH or postgresql://USER@HOST/DATABASE")  # may hold a password


def path_of(text: str | Path) -> Path:
    """The path, with `~` put for a home folder. Raises ValueError where there is no such folder."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise ValueError(f"there is no home folder of {Path(text).parts[0]!r}: write the path in full") from None


def _keys(given: str | Path | KeyProvider | None, backend: Backend) -> KeyProvider:
    from ..store.keys import FileKeys, KeyRing, keys_from_environment
    from ..store.memory import MemoryBackend

    if isinstance(given, (str, Path)):
        return FileKeys(path_of(given))
    if given is not None:
        return given
    found = keys_from_environment()
    if found is not None:
        return found
    return KeyRing.generate() if isinstance(backend, MemoryBackend) else FileKeys(default_folder() / "store-keys")
