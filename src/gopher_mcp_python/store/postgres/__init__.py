"""Elicitations in PostgreSQL (15 or newer), shared by any number of processes. Needs the extra `postgres`."""

from __future__ import annotations

from .backend import PostgresBackend
from .connecting import Limits
from .migrating import APP_ROLE, SCHEMA, migrate

__all__ = ["APP_ROLE", "SCHEMA", "Limits", "PostgresBackend", "migrate"]
