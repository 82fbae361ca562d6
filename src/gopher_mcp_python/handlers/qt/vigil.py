"""One request that waits for its answer: what is looked at meanwhile, and when waiting is in vain."""

from __future__ import annotations

import time
from math import ceil
from typing import TYPE_CHECKING

from ..console import ended
from ..occupied import is_occupied
from ..prompts import CANCELLED, PersonAnswer, PromptUnavailable

if TYPE_CHECKING:
    from ..watch import Watch
    from .case import Case
    from .desk import Desk

__all__ = ["OCCUPIED", "RECIPE", "QtPromptUnavailable", "Vigil"]

NO_LOOP_AFTER = 5.0  # seconds in which a running event loop takes what is posted to it
BUSY_AFTER = 30.0  # seconds after which a GUI thread that does something else is taken to wait for this very answer
RECIPE = (
    "await agent.run_async(...) on an event loop that Qt drives (qasync, PySide6.QtAsyncio), or call agent.run(...) on "
    "a worker thread (threading.Thread, QThreadPool) and hand its result back with a signal"
)
OCCUPIED = f"the GUI thread is inside agent.run() or a create_...() call and can't show a window: {RECIPE}"
_NO_LOOP = (
    "no Qt event loop is running, so that no window can come: start it with QApplication.exec(), and run agents beside "
    f"it ({RECIPE})"
)
_BUSY = f"the GUI thread has not served its events for {BUSY_AFTER:.0f} s, so that no window can come: {RECIPE}"


class QtPromptUnavailable(PromptUnavailable):
    """No window can be shown: there is no application or display, or its GUI thread can't serve one. The text says
    which, and what to do. Nothing was shown."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"Nobody can be asked by a window: {reason}")


class Vigil:
    """On whatever thread or loop: looked at now and then, and when there are news."""

    def __init__(self, desk: Desk, case: Case, watch: Watch) -> None:
        self._desk = desk
        self._case = case
        self._watch = watch
        self._since = time.monotonic()
        self._told_shown = False
        self._told_left: int | None = None
        desk.take(case)

    def look(self) -> PersonAnswer | None:
        """The answer; None while there is none. Raises QtPromptUnavailable, and what making the dialog raised."""
        case = self._case
        if case.is_shown and not self._told_shown:
            self._told_shown = True
            self._watch.on_shown()
        if case.is_settled:
            return case.answer()
        end = ended(self._watch)
        if end is not None:
            return self.give_up(end.why)
        if self._desk.is_gone:
            return self.give_up()
        if not case.is_served:
            self._check_loop()
        self._tell_time()
        return None

    def give_up(self, why: str = "withdrawn") -> PersonAnswer:
        """Takes it off the screen; its answer, which is one that came before, if one did. Idempotent."""
        case = self._case
        finished = why == "finished" and case.request.mode == "url"
        if case.settle(PersonAnswer("accept") if finished else CANCELLED):
            self._desk.put_back(case, why)  # type: ignore[arg-type]  # console.ended says nothing else
        return case.answer()

    def pause(self, most: float) -> float:
        """How long until the next look, in seconds; at most `most`, and never past the time limit."""
        remaining = self._watch.remaining()
        return most if remaining is None else min(most, remaining)

    def _check_loop(self) -> None:
        """Nobody has taken it yet: whether anybody ever will. Raises QtPromptUnavailable."""
        if is_occupied(self._desk.gui_thread.ident or 0):
            raise QtPromptUnavailable(OCCUPIED)
        waited = time.monotonic() - self._since
        if waited > NO_LOOP_AFTER and not self._desk.has_loop():
            raise QtPromptUnavailable(_NO_LOOP)
        if waited > BUSY_AFTER:
            raise QtPromptUnavailable(_BUSY)

    def _tell_time(self) -> None:
        """Once a second, and only where there is a limit."""
        remaining = self._watch.remaining()
        left = None if remaining is None else ceil(remaining)
        if left != self._told_left:
            self._told_left = left
            self._desk.tell_time(self._case, left)
