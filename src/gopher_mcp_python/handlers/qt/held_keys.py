"""Keys that were meant for another window: they must not answer a request that nobody has read.

Somebody types into a prompt, or into anything else, when the next one gets the keyboard: the Ctrl+Enter that was on its
way would send it. So the shortcuts of a window do nothing for half a second.
"""

from __future__ import annotations

from PySide6.QtCore import QTimer
from PySide6.QtGui import QShortcut
from PySide6.QtWidgets import QDialog

__all__ = ["HELD_FOR", "hold_keys"]

HELD_FOR = 500  # milliseconds; as browsers hold their permission prompts
_NAME = "gopher-held-keys"


def hold_keys(dialog: QDialog) -> None:
    """From now on, for a while; once more from now on where they are held already."""
    timer: QTimer | None = dialog.findChild(QTimer, _NAME)
    if timer is None:
        timer = QTimer(dialog)
        timer.setObjectName(_NAME)
        timer.setSingleShot(True)
        timer.setInterval(HELD_FOR)
        timer.timeout.connect(lambda: _hold(dialog, False))
    _hold(dialog, True)
    timer.start()


def _hold(dialog: QDialog, held: bool) -> None:
    shortcuts: list[QShortcut] = dialog.findChildren(QShortcut)
    for shortcut in shortcuts:
        shortcut.blockSignals(held)
