"""What can go wrong with a store. No text holds a question, an answer, arguments or a key."""

from __future__ import annotations

from ..errors import AgentError

__all__ = ["ElicitationNotFound", "NoAnswer", "RateLimited", "SealError", "StoreError"]


class StoreError(AgentError):
    """The store can't be used: it is closed, unreachable or damaged. Whoever needs it must treat that as a no."""


class SealError(StoreError):
    """A sealed part of a row can't be opened: another key, or the bytes are not those that were written for this row.
    The text names the row and the part."""


class ElicitationNotFound(AgentError):
    """There is no such elicitation, or it is another caller's: the two can't be told apart."""

    def __init__(self, message: str = "There is no such elicitation") -> None:
        super().__init__(message)


class NoAnswer(AgentError):
    """The elicitation has no answer: nobody gave one, or it was removed when its time was up (prune)."""


class RateLimited(AgentError):
    """A caller creates elicitations faster than the store allows.

    Attributes:
        retry_after_s: after how many seconds the next one is allowed; at least 1.
    """

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(f"Too many elicitations were created for this caller: try again in {retry_after_s} s")
        self.retry_after_s = retry_after_s
