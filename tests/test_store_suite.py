"""The suite of every backend (support/store_suite.py), in memory and in a SQLite file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.store_places import MemoryPlace, Place, SqlitePlace, closing
from tests.support.store_suite import StoreSuite


class TestMemory(StoreSuite):
    @pytest.fixture
    def place(self) -> Iterator[Place]:
        yield from closing(MemoryPlace())


class TestSqlite(StoreSuite):
    @pytest.fixture
    def place(self, tmp_path: Path) -> Iterator[Place]:
        yield from closing(SqlitePlace(tmp_path))
