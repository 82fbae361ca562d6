"""Elicitations in PostgreSQL (15 or newer), shared by any number of processes. Needs the extra `postgres`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazily import names_of

if TYPE_CHECKING:
    from .backend import PostgresBackend
    from .connecting import Limits
    from .migrating import APP_ROLE, SCHEMA, migrate

__all__ = ["APP_ROLE", "SCHEMA", "Limits", "PostgresBackend", "migrate"]

__getattr__, __dir__ = names_of(
    __name__,
    {
        "backend": ("PostgresBackend",),
        "connecting": ("Limits",),
        "migrating": ("APP_ROLE", "SCHEMA", "migrate"),
    },
)
