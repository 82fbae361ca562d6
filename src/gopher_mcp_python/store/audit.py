"""What happened, never what was asked or answered: records for the log and for a chain that shows what was changed.

Each record goes, as one line of JSON, to the logger "gopher_mcp_python.audit" once it is committed, and into the
backend's chain (backend.chain_hash): whoever changes, removes or adds a record in the middle breaks it, and that its
tail was cut off is shown by an anchor (anchors.py), a place elsewhere that remembers how far the chain had come.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .anchors import Head
from .backend import GENESIS, AuditRow, Row, chain_hash

__all__ = ["EVENTS", "Fault", "Verification", "audit_text", "log_records", "verify_chain"]

EVENTS = (
    "requested", "responded", "cancelled", "validation_failed", "timeout", "consumed", "completed", "pruned",
)  # fmt: skip
_log = logging.getLogger("gopher_mcp_python.audit")
_MOST_FAULTS = 100


def audit_text(event: str, at: datetime, row: Row | None, **more: Any) -> str:
    """One record. `row` as it is afterwards; None for what concerns many."""
    told: dict[str, Any] = {"event": event, "at": at.isoformat(timespec="microseconds")}
    if row is not None:
        told |= {
            "elicitation": row.id, "caller": row.caller, "mode": row.mode, "type": row.type, "server": row.server,
            "tool": row.tool, "status": row.status, "retries": row.retries,
        }  # fmt: skip
    told |= more
    return json.dumps({name: value for name, value in told.items() if value is not None}, sort_keys=True)


def log_records(texts: Iterable[str]) -> None:
    """Hands committed records to the log; `record.audit` is the record as a dict. A handler of the program's that
    fails changes nothing."""
    if not _log.isEnabledFor(logging.INFO):
        return
    for text in texts:
        with suppress(Exception):
            _log.info("%s", text, extra={"audit": json.loads(text)})


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with the chain.

    Attributes:
        seq: the record's number; where records are missing, the first missing one's.
        what: in words.
    """

    seq: int
    what: str

    def __str__(self) -> str:
        return f"record {self.seq}: {self.what}"


@dataclass(frozen=True)
class Verification:
    """What a look at the whole chain found.

    Attributes:
        records: how many there are.
        anchored: up to which record an anchor vouches; 0 without an anchor.
        head: the last record's number and hash; None in an empty chain.
        faults: at most 100; none: the chain is whole.
    """

    records: int
    anchored: int
    head: Head | None
    faults: tuple[Fault, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults


def verify_chain(rows: Iterable[AuditRow], anchors: Iterable[Head]) -> Verification:
    """Looks at every record once, in order."""
    marks: dict[int, set[str]] = {}
    for mark in anchors:
        marks.setdefault(mark.seq, set()).add(mark.hash)
    faults: list[Fault] = []
    records, seq, previous = 0, 0, GENESIS
    for row in rows:
        records += 1
        if len(faults) < _MOST_FAULTS:
            faults += _faults(row, seq, previous, marks)
        seq, previous = row.seq, row.hash
    anchored = max(marks, default=0)
    if anchored > seq:
        faults.append(Fault(seq + 1, f"the anchor knows records up to {anchored}, and they are gone"))
    head = Head(seq, previous) if records else None
    return Verification(records, anchored, head, tuple(faults[:_MOST_FAULTS]))


def _faults(row: AuditRow, seq: int, previous: str, marks: dict[int, set[str]]) -> list[Fault]:
    found = []
    if row.seq != seq + 1:
        found.append(Fault(seq + 1, "is missing" if row.seq == seq + 2 else f"is missing, and all before {row.seq}"))
    elif row.previous != previous:
        found.append(Fault(row.seq, "does not follow the one before it"))
    if row.hash != chain_hash(row.seq, row.previous, row.text):
        found.append(Fault(row.seq, "was changed"))
    if any(mark != row.hash for mark in marks.get(row.seq, ())):
        found.append(Fault(row.seq, "is not the one that the anchor knows: the chain was written anew"))
    return found
