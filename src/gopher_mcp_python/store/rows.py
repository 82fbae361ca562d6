"""Rows made of questions, and questions of rows; what callers and ids may be.

What stands in clear beside a question is sealed with it once more: who can write to the database and has no key can't
have somebody say yes to one call and use it for another.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from ..redaction import redact_url
from .backend import Row
from .errors import SealError
from .model import MAX_RETRIES, ElicitationStatus, ElicitationType, NewElicitation, StoredElicitation
from .outcome import Outcome
from .payload import CALLER_CHARACTERS, RESPONSE_BYTES, clear_text, json_text

if TYPE_CHECKING:
    from .acting import Act
    from .sealing import Sealer

__all__ = [
    "answer_facts",
    "asked_of",
    "check_caller",
    "clear_facts",
    "may_be_id",
    "new_row",
    "refused",
    "sealed_question",
    "shown",
    "told",
]

_FACTS = ("caller", "mode", "type", "server", "tool", "binding_mac")
_ID_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


def clear_facts(caller: str, new: NewElicitation, binding: str | None) -> dict[str, str | None]:
    """The columns beside a question that say whose and for what it is. Of a server that is a URL, the values of
    parameters are left out."""
    kind = None if new.type is None else new.type.value
    server = redact_url(new.server) if new.server and "://" in new.server else new.server
    return dict(zip(_FACTS, (caller, new.mode, kind, server, new.tool, binding), strict=True))


def sealed_question(sealer: Sealer, id: str, new: NewElicitation, facts: dict[str, str | None]) -> bytes:
    """The facts are sealed too: a yes is to what was shown, whatever is written into the columns afterwards."""
    return sealer.seal(id, "question", {"message": new.message, "params": new.params, "facts": facts})


def new_row(id: str, facts: dict[str, Any], question: bytes, now: datetime, lasts: timedelta) -> Row:
    """The row of a new question."""
    return Row(id=id, status="pending", question=question, created_at=now, expires_at=now + lasts, **facts)


def asked_of(sealer: Sealer, row: Row) -> tuple[str, dict[str, Any]]:
    """Message and parameters; empty after a prune. Raises SealError when they can't be opened, or the columns beside
    them are not those that they were asked with."""
    if row.question is None:
        return "", {}
    opened = sealer.open(row.id, "question", row.question)
    if opened.get("facts") != {name: getattr(row, name) for name in _FACTS}:
        raise SealError(f"What stands beside the question of elicitation {row.id} (caller, server, tool) was changed")
    return opened["message"], opened["params"]


def told(sealer: Sealer, row: Row) -> StoredElicitation:
    """A row with its question in clear. Raises SealError as `asked_of`, and for a yes or no that nobody gave."""
    message, params = asked_of(sealer, row)
    if row.confirmed is not None and (row.question is not None or row.response is not None):  # else it was pruned
        _check_confirmed(sealer, row)
    return shown(row, message, params)


def _check_confirmed(sealer: Sealer, row: Row) -> None:
    """Raises SealError when the yes or no in clear is not the one that was given."""
    given = None if row.response is None else sealer.open(row.id, "response", row.response)
    if given != {"confirmed": row.confirmed}:
        raise SealError(f"The outcome beside the response of elicitation {row.id} is not the one that was given")


def shown(row: Row, message: str, params: dict[str, Any]) -> StoredElicitation:
    """A row and what it asks."""
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
