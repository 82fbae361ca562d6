"""Asking in a window, from any thread but the one that has to serve the window."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication

from ..occupied import is_occupied
from ..prompts import PersonAnswer
from .case import Case
from .desk import desk_of, is_gui_thread
from .vigil import OCCUPIED, RECIPE, QtPromptUnavailable, Vigil

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from ...elicitation import GopherAgentElicitationRequest
    from ..watch import Watch

__all__ = ["QtPrompt", "QtPromptUnavailable"]

_LOOK_EVERY = 0.05  # seconds; withdrawal and completion are noticed within this
_LOOK_EVERY_ON_A_LOOP = 0.5  # seconds; there a withdrawal is a cancellation, and this is for the time that is left
_UNSEEN = frozenset(("offscreen", "minimal", "minimalegl"))  # platforms of Qt that show nothing to anybody
_ON_GUI_THREAD = f"this is the GUI thread, which would wait here for its own window: {RECIPE}"


class QtPrompt:
    """Asks the person before this program's windows; a `PersonPrompt`.

    Args:
        parent: the window that prompts belong to, a widget of the GUI thread; None: they stand alone.
        timeout_s: limit for one answer (in seconds), beside that of the watch; None: none.
        any_platform: also where Qt's platform shows nothing to anybody ("offscreen", "minimal").
    """

    name = "qt"

    def __init__(
        self, parent: QWidget | None = None, *, timeout_s: float | None = None, any_platform: bool = False
    ) -> None:
        self._parent = parent
        self._timeout_s = timeout_s
        self._any_platform = any_platform

    def unusable(self) -> str | None:
        """Why nobody can be asked by a window here and now; None when somebody can. Any thread."""
        app = QCoreApplication.instance()
        reason = self._no_window(app)
        return _ON_GUI_THREAD if reason is None and app is not None and is_gui_thread(app) else reason

    def check_thread(self) -> None:
        """For who is about to wait on this thread. Raises QtPromptUnavailable on the GUI thread."""
        app = QCoreApplication.instance()
        if app is not None and is_gui_thread(app):
            raise QtPromptUnavailable(_ON_GUI_THREAD)

    def _no_window(self, app: QCoreApplication | None) -> str | None:
        """Why there can be no window, wherever it is waited for."""
        if app is None or QCoreApplication.closingDown():
            return "the program has no QApplication (any more)"
        if not isinstance(app, QApplication):
            return f"the program's application is a {type(app).__name__}, which has no windows: make a QApplication"
        if not self._any_platform and QGuiApplication.platformName() in _UNSEEN:
            return f"Qt's platform {QGuiApplication.platformName()} has no display"
        desk = desk_of(app)
        if desk.is_ending or desk.is_gone:
            return "the application's event loop has ended"
        if not is_gui_thread(app) and is_occupied(desk.gui_thread.ident or 0):
            return OCCUPIED
        return None

    def ask(self, request: GopherAgentElicitationRequest, watch: Watch) -> PersonAnswer:
        """Shows the request and waits for its answer. Any thread but the GUI thread.

        Raises QtPromptUnavailable, at once where it can be known at once.
        """
        reason = self.unusable()
        if reason is not None:
            raise QtPromptUnavailable(reason)
        news = threading.Event()
        vigil = self._begin(request, watch, news)
        try:
            while (answer := vigil.look()) is None:
                news.wait(vigil.pause(_LOOK_EVERY))
                news.clear()
            return answer
        except BaseException:  # Ctrl-C, or no window came
            vigil.give_up()
            raise

    async def ask_async(self, request: GopherAgentElicitationRequest, watch: Watch) -> PersonAnswer:
        """The same on an event loop of asyncio, in any thread. Cancelling it takes the window away.

        Raises QtPromptUnavailable.
        """
        reason = self._no_window(QCoreApplication.instance())
        if reason is not None:
            raise QtPromptUnavailable(reason)
        news = _LoopEvent()
        vigil = self._begin(request, watch, news)
        try:
            while (answer := vigil.look()) is None:
                await news.wait(vigil.pause(_LOOK_EVERY_ON_A_LOOP))
            return answer
        except BaseException:  # cancelled, or no window came
            vigil.give_up()
            raise

    def _begin(self, request: GopherAgentElicitationRequest, watch: Watch, news: _Event) -> Vigil:
        """Hands the request to the GUI thread."""
        app = QCoreApplication.instance()
        if not isinstance(app, QApplication):
            raise QtPromptUnavailable("the program has no QApplication (any more)")
        if self._timeout_s is not None:
            # In the watch itself, so that whoever gave it knows that it was a limit that ended the request.
            end = time.monotonic() + self._timeout_s
            watch.deadline = end if watch.deadline is None else min(end, watch.deadline)
        return Vigil(desk_of(app), Case(request, self._parent, watch.lasting, news.set), watch)


class _Event(Protocol):
    def set(self) -> None: ...


class _LoopEvent:
    """An event that any thread may set, awaited on the loop that made it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._told: asyncio.Future[None] = self._loop.create_future()

    def set(self) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        if not self._told.done():
            self._told.set_result(None)

    async def wait(self, seconds: float) -> None:
        await asyncio.wait((self._told,), timeout=seconds)
        if self._told.done():
            self._told = self._loop.create_future()
