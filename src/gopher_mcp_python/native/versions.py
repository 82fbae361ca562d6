"""The published versions of the vendor's Linux package, as scripts/native_versions.py extracted them."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cache
from typing import Any

from .names import version_key

TABLE = os.path.join(os.path.dirname(__file__), "versions.json")


@dataclass(frozen=True, slots=True)
class Published:
    """What one published wheel holds."""

    package_version: str
    file_version: str  # of the library file; differs from the package's for 0.1.2.1 and 0.1.14
    build_id: str
    size: int  # of the library, bytes
    wheel_size: int  # bytes
    soname: str
    symbols: frozenset[str]  # exported gopher_orch_*
    needed: tuple[str, ...]  # of the library
    from_host: tuple[str, ...]  # shared libraries that the package's files need and the package does not ship
    ships: tuple[str, ...]  # shared libraries of others that it ships under their system names
    elicitation_text: bool  # the library's own elicitation messages are in the file


@cache
def table() -> dict[str, Published]:
    """Package version -> contents, oldest first."""
    with open(TABLE, encoding="utf-8") as file:
        data = json.load(file)
    result: dict[str, Published] = {}
    symbols: set[str] = set()
    for version in sorted(data["versions"], key=version_key):
        row: dict[str, Any] = dict(data["versions"][version])
        symbols = (symbols | set(row.pop("symbols_added"))) - set(row.pop("symbols_dropped"))
        row.update({key: tuple(value) for key, value in row.items() if isinstance(value, list)})
        result[version] = Published(package_version=version, symbols=frozenset(symbols), **row)
    return result


def newest() -> str:
    return max(table(), key=version_key)


def version_of_build(build_id: str | None) -> str | None:
    """The version of a published library, told by its build id; None for a build that was never published."""
    return next((entry.file_version for entry in table().values() if build_id and entry.build_id == build_id), None)


def first_version_with(symbol: str) -> str | None:
    """The first published version that exports `symbol`; None when none does."""
    return next((version for version, entry in table().items() if symbol in entry.symbols), None)
