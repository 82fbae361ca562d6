"""What comes to a prompt's window from outside: keys and clicks that were meant for another one, and dialogs of the
program that would lock it.

Somebody types or clicks elsewhere when the window comes up, or when the one before it goes: what was on its way must
not answer a request that nobody has read. So for half a second keys and clicks do nothing. They are stopped at the
native window, before Qt makes shortcuts, clicks or letters of them.
"""

from __future__ import annotations

import time

from PySide6.QtCore import QCoreApplication, QEvent, QObject, QThread
from PySide6.QtGui import QGuiApplication, QWindow
from PySide6.QtWidgets import QApplication, QDialog

__all__ = ["HELD_FOR", "WindowGuard", "check_thread"]

HELD_FOR = 0.5  # seconds; as browsers hold their permission prompts
_KEYS = frozenset((QEvent.Type.ShortcutOverride, QEvent.Type.KeyPress))
_PRESSES = frozenset((QEvent.Type.MouseButtonPress, QEvent.Type.MouseButtonDblClick, QEvent.Type.TouchBegin))


class WindowGuard(QObject):
    """Watches the native window of a dialog, as long as there is one."""

    def __init__(self, dialog: QDialog) -> None:
        super().__init__(dialog)
        self._dialog = dialog
        self._is_exposed = False
        self._keys_until = self._presses_until = 0.0  # on the monotonic clock

    def begin(self) -> None:
        """The window comes up."""
        window = self._dialog.windowHandle()
        if window is not None:
            window.installEventFilter(self)  # once, however often it is told
        self._is_exposed = False
        self.hold()

    def unlock(self) -> None:
        """A modal dialog of the program takes the input of all windows but those that belong to it, and may be waiting
        for this very answer ("Working ..."). So this one belongs to it from now on."""
        window, modal = self._dialog.windowHandle(), QGuiApplication.modalWindow()
        if window is None or modal is None or modal is window:
            return
        if not window.isAncestorOf(modal, QWindow.AncestorMode.IncludeTransients):
            window.setTransientParent(modal)

    @property
    def is_holding(self) -> bool:
        return time.monotonic() < max(self._keys_until, self._presses_until)

    def hold(self, *, keys: bool = True) -> None:
        """From now on, for a while, clicks do nothing, and neither do keys."""
        self._presses_until = time.monotonic() + HELD_FOR
        if keys:
            self._keys_until = self._presses_until

    def release(self) -> None:
        """What comes from now on counts."""
        self._keys_until = self._presses_until = 0.0

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        kind = event.type()
        if kind in _KEYS or kind in _PRESSES:
            if time.monotonic() < (self._keys_until if kind in _KEYS else self._presses_until):
                event.accept()  # an overridden shortcut is a key, which is stopped next
                return True
        elif kind == QEvent.Type.Expose:
            self._notice(watched)
        elif kind == QEvent.Type.WindowBlocked:
            self.unlock()
        return False

    def _notice(self, window: QObject) -> None:
        """It is on the screen only now, perhaps long after it was told to."""
        if not self._is_exposed and isinstance(window, QWindow) and window.isExposed():
            self._is_exposed = True
            self.hold()


def check_thread() -> None:
    """Raises RuntimeError where Qt would end the process."""
    app = QCoreApplication.instance()
    if not isinstance(app, QApplication):
        raise RuntimeError("a dialog needs a QApplication: make one first")
    if QThread.currentThread() != app.thread():
        raise RuntimeError(
            "a dialog is made on the thread of the QApplication: hand the request there with a signal, or use "
            "QtElicitationHandler, which any thread may call"
        )
