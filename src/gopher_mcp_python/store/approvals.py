"""Approvals: a yes to one call, bound to who asks, the server, the tool and the exact arguments, and used once.

The yes that counts is the sealed answer to the sealed question, not the columns beside them: who can write to the
database and has no key can't have a call made that nobody said yes to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from .model import ElicitationType, NewElicitation
from .outcome import ConfirmationState, ConsumeState
from .payload import ARGUMENTS_BYTES, plain_json
from .rows import asked_of

if TYPE_CHECKING:
    from .acting import Act
    from .backend import Row
    from .sealing import Sealer

__all__ = ["MOST_BOUND", "RECOGNISED", "binding_of", "consume", "facts_of", "newest_of", "state_of", "waiting"]

# How long a call is recognised by its confirmation, and among how many.
RECOGNISED = timedelta(days=2)
MOST_BOUND = 1000
# How far the clock may be set back after an answer. Beyond it nobody knows how old an approval is, so it is none.
_SET_BACK = timedelta(seconds=5)
_ENDED: dict[str, ConfirmationState] = {
    "pending": "pending",
    "expired": "expired",
    "cancelled": "cancelled",
    "validation_failed": "failed",
}


def facts_of(caller: str, server: str | None, tool: str, arguments: Mapping[str, Any]) -> list[Any]:
    """What a call is, for the keyed hash. Raises ValueError for arguments that are no JSON object of at most 1 MB."""
    told = plain_json(arguments, "the arguments", ARGUMENTS_BYTES)
    if not isinstance(told, dict):
        raise ValueError("the arguments are no JSON object: pass a mapping of names to values")
    return _facts(caller, server, tool, told)


def _facts(caller: str, server: str | None, tool: str, arguments: dict[str, Any]) -> list[Any]:
    return ["call", caller, server, tool, arguments]


def binding_of(sealer: Sealer, caller: str, new: NewElicitation) -> str | None:
    """The keyed hash of the call that a confirmation is for; None where it is for none."""
    if new.type is not ElicitationType.CONFIRMATION or new.tool is None:
        return None
    return sealer.mac(_facts(caller, new.server, new.tool, new.params["arguments"]))  # checked when it was made


def newest_of(sealer: Sealer, bound: Sequence[tuple[str, str]], facts: list[Any]) -> str | None:
    """The first id whose hash is that of this call."""
    matches = sealer.matcher(facts)
    return next((id for id, mac in bound if matches(mac)), None)


def waiting(act: Act, sealer: Sealer, caller: str, new: NewElicitation) -> Row | None:
    """The newest confirmation of the same call, if it waits for its answer."""
    if new.tool is None:
        return None
    facts = _facts(caller, new.server, new.tool, new.params["arguments"])
    id = newest_of(sealer, act.tx.bound(new.tool, act.now - RECOGNISED, MOST_BOUND), facts)
    row = act.tx.lock(id) if id is not None else None
    return row if row is not None and row.status == "pending" and row.expires_at > act.now else None


def state_of(sealer: Sealer, row: Row | None, now: datetime, lasts: timedelta) -> ConfirmationState:
    """Where a confirmation stands; what is overdue was expired before. Raises SealError when a yes can't be opened, or
    was to something else."""
    if row is None or row.type != "confirmation":
        return "absent"
    if row.status != "responded":
        return _ENDED[row.status]
    if not row.confirmed:
        return "declined"
    if row.consumed_at is not None:
        return "used"
    if not _fresh(row, now, lasts):
        return "expired"
    return "approved" if _is_yes(sealer, row) else "declined"


def consume(act: Act, sealer: Sealer, row: Row | None, facts: list[Any], lasts: timedelta) -> ConsumeState:
    """See Store.consume. Raises SealError as `state_of`."""
    if row is None:
        return "absent"
    if row.type != "confirmation" or not sealer.mac_is_of(row.binding_mac, facts):
        return "mismatch"
    state = state_of(sealer, row, act.now, lasts)
    if state == "used":
        return "used" if row.completed_at is not None else "unknown"
    if state != "approved":
        return cast("ConsumeState", state)
    act.change(row, "consumed", consumed_at=act.now)
    return "consumed"


def _is_yes(sealer: Sealer, row: Row) -> bool:
    if row.question is None or row.response is None:
        return False
    asked_of(sealer, row)  # the columns, the hash of the call among them, are those of the question that was answered
    return bool(sealer.open(row.id, "response", row.response) == {"confirmed": True})


def _fresh(row: Row, now: datetime, lasts: timedelta) -> bool:
    return row.ended_at is not None and -_SET_BACK <= now - row.ended_at <= lasts
