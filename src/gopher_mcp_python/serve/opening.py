"""A store from what a command line says: `memory`, `sqlite:PATH`, `postgresql://...`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..store.backend import Backend
    from ..store.core import Store
    from ..store.keys import KeyProvider

__all__ = ["default_folder", "open_backend", "open_store"]


def open_store(spec: str, keys: str | Path | None = None) -> Store:
    """The store that `spec` names, with its keys: of the file `keys`, else of the environment, else of a file in this
    user's data folder that is made on first use.

    Raises ValueError for another spec; StoreError when it can't be opened.
    """
    from ..store.core import Store

    backend = open_backend(spec)
    try:
        return Store(backend, _keys(keys, spec))
    except BaseException:
        backend.close()
        raise


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

        return SqliteBackend(Path(rest.removeprefix("//")).expanduser())
    if kind in ("postgresql", "postgres") and colon:
        from ..store.postgres import PostgresBackend

        return PostgresBackend(spec)
    raise ValueError("the store must be memory, sqlite:PATH or postgresql://USER@HOST/DATABASE")  # may hold a password


def _keys(path: str | Path | None, spec: str) -> KeyProvider:
    from ..store.keys import FileKeys, KeyRing, keys_from_environment

    if path is not None:
        return FileKeys(Path(path).expanduser())
    found = keys_from_environment()
    if found is not None:
        return found
    return KeyRing.generate() if spec == "memory" else FileKeys(default_folder() / "store-keys")
