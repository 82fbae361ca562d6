"""What waits for an answer, in pages: bounded in number and in bytes, whatever callers ask."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from .errors import ElicitationNotFound, SealError
from .model import StoredElicitation
from .rows import may_be_id, told

if TYPE_CHECKING:
    from .backend import Row, Tx
    from .sealing import Sealer

__all__ = ["PAGE_BYTES", "Page", "next_rows", "opened"]

PAGE_BYTES = 8 * 1024 * 1024  # of sealed questions: four of the longest, or 32,000 of 256 bytes
_log = logging.getLogger("gopher_mcp_python.store")


class Page(list[StoredElicitation]):
    """Some of what is pending, oldest first.

    Attributes:
        next: the `after` of the page behind this one, which may be empty; None: there is nothing behind it.
    """

    def __init__(self, found: Iterable[StoredElicitation] = (), next: str | None = None) -> None:
        super().__init__(found)
        self.next = next


def next_rows(tx: Tx, limit: int, after: str | None) -> tuple[list[Row], str | None]:
    """The rows of a page, and the `after` of the next one. Raises ElicitationNotFound for `after`."""
    mark = None
    if after is not None:
        last = tx.get(after) if may_be_id(after) else None
        if last is None:
            raise ElicitationNotFound
        mark = (last.created_at, last.id)
    rows = list(tx.pending(limit + 1, mark, PAGE_BYTES))
    is_cut = len(rows) > limit or sum(len(row.question or b"") for row in rows) >= PAGE_BYTES
    page = rows[:limit]
    return page, page[-1].id if is_cut else None


def opened(sealer: Sealer, rows: Iterable[Row]) -> Iterable[StoredElicitation]:
    """One that can't be unsealed is left out, and logged."""
    for row in rows:
        try:
            yield told(sealer, row)
        except SealError as error:
            _log.error("left out of a list: %s", error)
