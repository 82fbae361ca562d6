"""Rows made of questions, and questions of rows; what callers and ids may be."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from ..redaction import redact_url
from .backend import Row
from .model import MAX_RETRIES, ElicitationStatus, ElicitationType, NewElicitation, StoredElicitation
from .outcome import Outcome
from .payload import CALLER_CHARACTERS, RESPONSE_BYTES, clear_text, json_text

if TYPE_CHECKING:
    from .acting import Act

__all__ = ["answer_facts", "check_caller", "may_be_id", "new_row", "refused", "told"]

_ID_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


def new_row(
    id: str, caller: str, new: NewElicitation, question: bytes, binding: str | None, now: datetime, time: timedelta
) -> Row:
    """The row of a new question. Of a server that is a URL, the values of parameters are left out."""
    kind = None if new.type is None else new.type.value
    server = redact_url(new.server) if new.server and "://" in new.server else new.server
    return Row(id, caller, new.mode, kind, "pending", server, new.tool, question, binding, now, now + time)


def told(row: Row, message: str, params: dict[str, Any]) -> StoredElicitation:
    """A row with its question in clear."""
    kind = None if row.type is None else ElicitationType(row.type)
    return StoredElicitation(
        row.id, row.caller, row.mode, kind, ElicitationStatus(row.status), message, row.server, row.tool, params,
        row.retries, row.created_at, row.expires_at, row.ended_at, row.confirmed,
    )  # fmt: skip


def refused(act: Act, row: Row, by: str | None, errors: dict[str, str]) -> Outcome:
    """Counts an invalid answer; the third ends the elicitation."""
    retries = row.retries + 1
    if retries < MAX_RETRIES:
        act.change(row, "validation_failed", by, retries=retries)
        return Outcome("invalid", ElicitationStatus.PENDING, errors, MAX_RETRIES - retries)
    act.change(row, "validation_failed", by, retries=retries, status="validation_failed", ended_at=act.now)
    return Outcome("validation_failed", ElicitationStatus.VALIDATION_FAILED, errors, 0)


def answer_facts(id: str, response: Any) -> list[Any] | None:
    """What tells an answer from another one; None for what is no answer at all."""
    try:
        json_text(response, "the answer", RESPONSE_BYTES)
    except ValueError:
        return None
    return ["response", id, response]


def check_caller(caller: str) -> None:
    """Raises ValueError for what can't be a caller."""
    if clear_text("caller", caller, CALLER_CHARACTERS) is None:
        raise ValueError("caller must be a text: every elicitation belongs to somebody")


def may_be_id(id: object) -> bool:
    """Whether the database can be asked for it at all."""
    return isinstance(id, str) and 0 < len(id) <= 64 and _ID_CHARACTERS.issuperset(id)
