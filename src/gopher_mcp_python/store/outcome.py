"""What became of an answer or a cancellation, and what listeners are told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from .model import ElicitationStatus

__all__ = ["Change", "ConfirmationState", "ConsumeState", "Outcome"]

ConfirmationState = Literal["pending", "approved", "declined", "expired", "cancelled", "failed", "used", "absent"]
ConsumeState = Literal[
    "consumed", "pending", "declined", "expired", "cancelled", "failed", "used", "absent", "mismatch", "unknown"
]


@dataclass(frozen=True)
class Outcome:
    """What became of an answer.

    Attributes:
        kind: "recorded"; "invalid": it may be tried again; "validation_failed": it was the third invalid one, and the
            last; "already_recorded": the same answer again, nothing changed; "conflict": the elicitation had ended
            otherwise, `status` says how.
        status: where the elicitation stands now.
        errors: of an invalid answer, by field ("": the answer as a whole), in words without its values.
        retries_left: how many invalid answers are still allowed before it ends.
    """

    kind: Literal["recorded", "invalid", "validation_failed", "already_recorded", "conflict"]
    status: ElicitationStatus
    errors: Mapping[str, str] = field(default_factory=dict, repr=False)  # names may be a stranger's text
    retries_left: int = 0


@dataclass(frozen=True)
class Change:
    """An elicitation came, was answered or ended. All None: changes may have been missed; look at everything again."""

    id: str | None
    caller: str | None
    status: ElicitationStatus | None
