"""The windows of all prompts, on the GUI thread; any other thread hands its requests in here.

Every prompt has a window of its own, so that whoever sits there answers in the order they like. Only so many are open
at a time; what comes beyond them waits in line, so that no server can fill the screen.
"""

from __future__ import annotations

import atexit
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Literal

from PySide6.QtCore import QCoreApplication, QEvent, QObject, Qt, QThread, Signal, Slot
from PySide6.QtGui import QWindow
from PySide6.QtWidgets import QApplication
from shiboken6 import Shiboken

from ..prompts import CANCELLED
from .case import Case
from .places import place

if TYPE_CHECKING:
    from .dialog import McpElicitationDialog

__all__ = ["MAX_WINDOWS", "Desk", "desk_of"]

MAX_WINDOWS = 6  # as many as stay apart on a small screen

Why = Literal["withdrawn", "timeout", "finished"]


class Desk(QObject):
    """Lives on the GUI thread. `take`, `put_back` and `tell_time` may be called on any thread.

    Attributes:
        gui_thread: the thread of the application, as Python knows it.
        is_ending: the event loop of the application has ended, so that nothing is served any more.
        is_closed: the interpreter ends.
    """

    _posted = Signal()

    def __init__(self, app: QApplication) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._work: deque[Callable[[], None]] = deque()
        self._cases: set[Case] = set()  # not settled yet, as far as is known here
        self._waiting: deque[Case] = deque()
        self._windows: dict[Case, McpElicitationDialog] = {}
        self._unexposed: dict[QWindow, Case] = {}
        self._leaving: set[McpElicitationDialog] = set()
        self.is_closed = self.is_ending = False
        here = is_gui_thread(app)
        # Elsewhere it is learnt when something is served; Qt wants its application on the main thread.
        self.gui_thread = threading.current_thread() if here else threading.main_thread()
        self._posted.connect(self._serve, Qt.ConnectionType.QueuedConnection)
        app.aboutToQuit.connect(self._application_ends)
        if not here:
            self.moveToThread(app.thread())

    # ---- any thread ------------------------------------------------------------------------------------------------

    def take(self, case: Case) -> None:
        """Has it shown. Where nothing is shown any more it is cancelled."""
        with self._lock:
            self._cases.add(case)
        if not self._post(partial(self._show, case)):
            self._forget(case)
            case.settle()

    def put_back(self, case: Case, why: Why) -> None:
        """Takes a case that is settled off the screen, and says why."""
        self._forget(case)
        self._post(partial(self._withdraw, case, why))

    def tell_time(self, case: Case, seconds: float | None) -> None:
        self._post(partial(self._tell_time, case, seconds))

    @property
    def is_gone(self) -> bool:
        """Whether no window of it can come or be answered any more."""
        return self.is_closed or not self.gui_thread.is_alive() or not Shiboken.isValid(self)

    def has_loop(self) -> bool:
        """Whether an event loop runs on the GUI thread; True also where it is busy. A look from outside."""
        try:
            return self.thread().loopLevel() > 0
        except RuntimeError:  # deleted
            return False

    def _post(self, work: Callable[[], None]) -> bool:
        with self._lock:  # nobody deletes it meanwhile
            if self.is_gone:
                return False
            self._work.append(work)
            try:
                self._posted.emit()
            except RuntimeError:  # deleted
                return False
        return True

    def _forget(self, case: Case) -> None:
        with self._lock:
            self._cases.discard(case)

    # ---- the GUI thread --------------------------------------------------------------------------------------------

    @Slot()
    def _serve(self) -> None:
        self.gui_thread = threading.current_thread()
        self.is_ending = False  # a loop runs (again)
        with suppress(IndexError):
            self._work.popleft()()

    def _show(self, case: Case) -> None:
        if case.is_settled:
            return
        case.served()
        if len(self._windows) >= MAX_WINDOWS:
            self._waiting.append(case)
            return
        try:
            self._open(case)
        except Exception as error:
            failure = error
            self._settle(case, lambda: case.settle(error=failure))

    def _open(self, case: Case) -> None:
        from .dialog import McpElicitationDialog

        request = case.request
        parent = case.parent if case.parent is not None and Shiboken.isValid(case.parent) else None
        dialog = McpElicitationDialog(
            request.server or "", request, parent, tool=request.tool, lasting=case.lasting
        )
        others = list(self._windows.values())
        self._windows[case] = dialog
        dialog.answered.connect(lambda action: self._answered(case))
        dialog.destroyed.connect(lambda *_: self._destroyed(case, dialog))
        # Whether the program ends with its last window is about its own windows, not about ours.
        dialog.setAttribute(Qt.WidgetAttribute.WA_QuitOnClose, False)
        # Somebody may be typing into another prompt: what they type is not for this one.
        dialog.setAttribute(Qt.WidgetAttribute.WA_ShowWithoutActivating, bool(others))
        place(dialog, others)
        dialog.show()
        active = next((other for other in others if other.isActiveWindow()), None)
        if active is not None:
            active.raise_()
        elif not others:
            dialog.raise_()
            dialog.activateWindow()
        self._notice_exposure(case, dialog.windowHandle())

    def _notice_exposure(self, case: Case, window: QWindow) -> None:
        if window.isExposed():
            case.shown()
            return
        self._unexposed[window] = case
        window.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Notices when a window is on the screen for the first time."""
        if event.type() == QEvent.Type.Expose and isinstance(watched, QWindow) and watched.isExposed():
            watched.removeEventFilter(self)
            case = self._unexposed.pop(watched, None)
            if case is not None:
                case.shown()
        return False

    def _answered(self, case: Case) -> None:
        dialog = self._windows.get(case)
        if dialog is not None:
            self._settle(case, lambda: case.settle(dialog.answer))

    def _withdraw(self, case: Case, why: Why) -> None:
        dialog = self._windows.get(case)
        if dialog is None:
            with suppress(ValueError):
                self._waiting.remove(case)
            return
        try:
            dialog.withdraw(why)
        finally:
            self._close(case)

    def _tell_time(self, case: Case, seconds: float | None) -> None:
        dialog = self._windows.get(case)
        if dialog is not None and not case.is_settled:
            dialog.set_time_left(seconds)

    def _destroyed(self, case: Case, dialog: McpElicitationDialog) -> None:
        """With its parent, or after it was closed."""
        self._leaving.discard(dialog)
        if self._windows.get(case) is dialog:
            self._settle(case, case.settle)

    def _settle(self, case: Case, settle: Callable[[], object]) -> None:
        try:
            settle()
        finally:
            self._forget(case)
            self._close(case)

    def _close(self, case: Case) -> None:
        """Takes its window away and lets the next one in."""
        dialog = self._windows.pop(case, None)
        self._unexposed = {window: other for window, other in self._unexposed.items() if other is not case}
        if dialog is not None and Shiboken.isValid(dialog):
            self._leaving.add(dialog)  # until Qt has deleted it: its own code may be on the stack
            dialog.hide()
            dialog.deleteLater()
            for other in self._windows.values():  # one of them is below the pointer now, or gets the keyboard
                other.hold_input()
        while self._waiting and len(self._windows) < MAX_WINDOWS and not self.is_ending:
            self._show(self._waiting.popleft())

    # ---- the end ---------------------------------------------------------------------------------------------------

    @Slot()
    def _application_ends(self) -> None:
        """Nobody can answer any more, unless the program runs its event loop again, which serves what comes here."""
        self.is_ending = True
        self._cancel_all()
        self._post(lambda: None)

    def _cancel_all(self) -> None:
        with self._lock:
            cases, self._cases = self._cases, set()
        for case in cases:
            case.settle(CANCELLED)
        self._waiting.clear()
        for case in list(self._windows):
            with suppress(RuntimeError):
                self._withdraw(case, "withdrawn")

    def end(self) -> None:
        """The interpreter ends, and PySide6 deletes the application next: before, all of this goes, in order."""
        with self._lock:
            self.is_closed = True
        if threading.current_thread() is not self.gui_thread or not Shiboken.isValid(self):
            for case in list(self._cases):
                case.settle(CANCELLED)
            return
        self._cancel_all()
        for dialog in list(self._leaving):
            if Shiboken.isValid(dialog):
                Shiboken.delete(dialog)
        self._leaving.clear()
        Shiboken.delete(self)


_desk: Desk | None = None
_desk_lock = threading.Lock()


def desk_of(app: QApplication) -> Desk:
    """The desk of the application, made on first use, and anew where that application was deleted. Any thread."""
    global _desk
    with _desk_lock:
        if _desk is None or not (_desk.is_closed or Shiboken.isValid(_desk)):
            _desk = Desk(app)
        return _desk


def is_gui_thread(app: QCoreApplication) -> bool:
    """Whether this is the thread on which the application lives."""
    return QThread.currentThread() == app.thread()


@atexit.register
def _at_exit() -> None:
    if _desk is not None:
        _desk.end()
