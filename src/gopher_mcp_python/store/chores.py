"""What has to be done from time to time, by any number of processes at once: expire, prune, verify, anchor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from .acting import acting
from .anchors import Head
from .audit import Verification, verify_chain
from .errors import StoreError

if TYPE_CHECKING:
    from .anchors import Anchor
    from .backend import AuditRow, Backend

__all__ = ["prune", "sweep", "verify", "write_anchor"]

_BATCH = 100  # rows of one transaction, so that nobody waits long for a lock
_PAGE = 1_000  # audit records that are read at once


def sweep(backend: Backend, limit: int) -> int:
    """See Store.sweep."""
    done = 0
    while done < limit:
        batch = min(_BATCH, limit - done)
        with acting(backend, None) as act:
            rows = act.tx.expired(batch)
            for row in rows:
                act.expire(row)
        done += len(rows)
        if len(rows) < batch:
            break
    return done


def prune(backend: Backend, days: float) -> int:
    """See Store.prune. Raises ValueError for less than 0 days."""
    if not 0 <= days <= 36_500:
        raise ValueError("days must be from 0 to 36500")
    done = 0
    while True:
        with acting(backend, None) as act:
            rows = act.tx.prunable(act.now - timedelta(days=days), _BATCH)
            for row in rows:
                act.tx.update(row.id, question=None, response=None)
            if rows:
                act.note("pruned", count=len(rows))
        done += len(rows)
        if len(rows) < _BATCH:
            return done


def verify(backend: Backend, anchor: Anchor | None, seen: Callable[[int], object] | None = None) -> Verification:
    """See Store.verify. The anchor is read first: the chain only grows meanwhile. `seen` is told how far it is, as the
    number of the last record of each page."""
    marks = anchor.read() if anchor is not None else []
    return verify_chain(_links(backend, seen), marks)


def write_anchor(backend: Backend, anchor: Anchor) -> bool:
    """See Store.write_anchor. A place that keeps one head must not be given another one for a chain that was cut or
    written anew: the old one is what shows it."""
    known = anchor.newest()  # first: the chain only grows meanwhile
    with backend.transaction(None, write=False) as tx:
        last = tx.audit_head()
        links = tx.audit_rows(known.seq - 1, 1) if known is not None else ()
    if known is not None and known not in [Head(link.seq, link.hash) for link in links]:
        raise StoreError(
            f"The audit is not the one that its anchor knows up to record {known.seq}: run gopher-mcp audit"
        )
    if last is None or known == Head(last.seq, last.hash):
        return False
    anchor.write(Head(last.seq, last.hash))
    return True


def _links(backend: Backend, seen: Callable[[int], object] | None = None) -> Iterator[AuditRow]:
    after = 0
    while True:
        with backend.transaction(None, write=False) as tx:
            rows = tx.audit_rows(after, _PAGE)
        yield from rows
        if seen is not None and rows:
            seen(rows[-1].seq)
        if len(rows) < _PAGE:
            return
        after = rows[-1].seq
