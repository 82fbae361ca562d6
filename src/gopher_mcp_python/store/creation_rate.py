"""How many elicitations a caller may create in a time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from math import ceil
from typing import TYPE_CHECKING

from .errors import RateLimited

if TYPE_CHECKING:
    from .acting import Act

__all__ = ["CreationRate"]


class CreationRate:
    """`rate` is (number, seconds); None: any number. Raises ValueError for a rate that is not positive."""

    def __init__(self, rate: tuple[int, float] | None) -> None:
        if rate is not None and not (rate[0] >= 1 and 0 < rate[1] <= 86_400):
            raise ValueError("rate must be (number, seconds), at least 1 in more than 0 and at most 86400 seconds")
        self._most = None if rate is None else rate[0]
        self._window = timedelta(seconds=0 if rate is None else rate[1])

    @property
    def is_bounded(self) -> bool:
        return self._most is not None

    def recent(self, act: Act) -> Sequence[datetime]:
        """When the caller created what counts, newest first. Until the transaction ends, nobody else creates for it."""
        # Rows of a later day are there when the clock was set back; more than a window ahead they don't count.
        return act.tx.creations(act.now - self._window, act.now + self._window, self._most or 1)

    def check(self, recent: Sequence[datetime], now: datetime) -> None:
        """Raises RateLimited when there is no room for another one."""
        if self._most is not None and len(recent) >= self._most:
            raise RateLimited(max(1, ceil((recent[-1] + self._window - now).total_seconds())))
