"""Where a new window goes, so that it does not cover those that are open."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPoint, QRect, QSize
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

__all__ = ["STEP", "place", "spot"]

STEP = 36  # pixels; about a title bar, so that every window can be seen and taken hold of
_FRAME = QSize(16, 40)  # pixels that a window manager may add to a window that is not on the screen yet


def place(window: QWidget, others: Sequence[QWidget]) -> None:
    """Moves a window that is about to be shown beside the corners of the others. Where programs have no say
    in it (Wayland) the compositor places it."""
    parent = window.parentWidget()
    screen = (parent.screen() if parent is not None else None) or QGuiApplication.primaryScreen()
    if screen is None:
        return
    around = parent.window().frameGeometry() if parent is not None and parent.isVisible() else None
    window.ensurePolished()
    taken = [other.pos() for other in others]
    window.move(spot(window.size() + _FRAME, screen.availableGeometry(), around, taken))


def spot(size: QSize, screen: QRect, around: QRect | None, taken: Sequence[QPoint]) -> QPoint:
    """The upper left corner for a window of that size: in the middle of `around` or the screen, a step further from
    where another one is, and as far on the screen as it goes."""
    middle = (around or screen).center()
    first = QPoint(
        _within(middle.x() - size.width() // 2, screen.left(), screen.right() - size.width()),
        _within(middle.y() - size.height() // 2, screen.top(), screen.bottom() - size.height()),
    )
    place, tries = first, len(taken) + 1
    for number in range(1, tries + 1):
        if not any(_near(place, other) for other in taken):
            break
        place = QPoint(
            _wrapped(first.x() + number * STEP, screen.left(), screen.right() - size.width()),
            _wrapped(first.y() + number * STEP, screen.top(), screen.bottom() - size.height()),
        )
    return place


def _within(value: int, least: int, most: int) -> int:
    return max(least, min(value, most))


def _wrapped(value: int, least: int, most: int) -> int:
    """Steps beyond the edge go on at the other side; where there is hardly any room, they go beyond the edge."""
    room = most - least
    return value if value <= most or room < STEP else least + (value - least) % room


def _near(one: QPoint, other: QPoint) -> bool:
    return abs(one.x() - other.x()) < STEP // 2 and abs(one.y() - other.y()) < STEP // 2
