"""One request on its way to a window and back: settled once, by whoever comes first."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from ..prompts import CANCELLED, PersonAnswer

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from ...elicitation import GopherAgentElicitationRequest

__all__ = ["Case"]


class Case:
    """Any thread.

    Attributes:
        is_served: the GUI thread has taken it.
        is_shown: its window is on the screen.
    """

    def __init__(
        self,
        request: GopherAgentElicitationRequest,
        parent: QWidget | None,
        lasting: tuple[Literal["session", "always"], ...],
        news: Callable[[], object],
    ) -> None:
        """`news` is called on any thread when there is something to look at."""
        self.request = request
        self.parent = parent
        self.lasting = lasting
        self.is_served = False
        self.is_shown = False
        self.is_settled = False
        self._answer = CANCELLED
        self._error: Exception | None = None
        self._news = news
        self._lock = threading.Lock()

    def settle(self, answer: PersonAnswer = CANCELLED, error: Exception | None = None) -> bool:
        """Gives it its answer, or its failure. False when it has one already, which stays."""
        with self._lock:
            if self.is_settled:
                return False
            self._answer, self._error, self.is_settled = answer, error, True
        self._news()
        return True

    def served(self) -> None:
        self.is_served = True

    def shown(self) -> None:
        self.is_shown = True
        self._news()

    def answer(self) -> PersonAnswer:
        """Of a settled one. Raises its failure."""
        try:
            if self._error is not None:
                raise self._error
            return self._answer
        finally:
            self._error = None  # its traceback refers to this frame
