"""What fills the screen between the header and the footer: something to read, and what all views have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from .keys import Key
from .look import Drawing, Line, Look

__all__ = ["Keys", "Pages", "View", "scrolled"]

_FAR = 1 << 20  # lines; more than there are
Keys = tuple[tuple[str, str], ...]  # for the footer: (key, what it does), the most important first


class View(Protocol):
    """A part of the dialogue. It says what was chosen by calling what it was given."""

    told: str  # what the last key could not do; "" when it could

    def keys(self) -> Keys:
        """What the footer says."""
        ...

    def press(self, key: Key) -> bool:
        """Takes a key; False when it means nothing here."""
        ...

    def draw(self, look: Look, rows: int) -> Drawing:
        """At most so many lines."""
        ...


def scrolled(lines: list[Line], first: int, rows: int, look: Look) -> tuple[list[Line], int]:
    """So many of the lines from `first` on, the last with a mark when there are more; and the first that is shown."""
    first = max(0, min(first, len(lines) - rows))
    shown = lines[first : first + rows]
    more = len(lines) - first - len(shown)
    if more > 0 and rows > 1:
        shown[-1] = (("state", f"  {look.sign('↓', 'v')} {more + 1} more lines"),)
    if first and rows > 2:
        shown[0] = (("state", f"  {look.sign('↑', '^')} {first + 1} lines above"),)
    return shown, first


class Pages:
    """A text that is longer than the screen may be. Any view can stand behind it."""

    told = ""

    def __init__(self, title: str, paragraphs: list[tuple[str, str]], back: Callable[[], None]) -> None:
        """`paragraphs`: each of a style and a text that is safe; a style of "quote" marks a server's text."""
        self._title = title
        self._paragraphs = paragraphs
        self._back = back
        self._first = 0
        self._rows = 1

    def keys(self) -> Keys:
        return (("Esc", "back"), ("Up Down", "scroll"))

    def press(self, key: Key) -> bool:
        steps = {
            "up": -1, "down": 1, "pageup": 1 - self._rows, "pagedown": self._rows - 1, "home": -_FAR, "end": _FAR,
        }  # fmt: skip
        if key.name in steps:
            self._first = max(0, self._first + steps[key.name])
        elif key.name in ("escape", "enter", "f1", "f2") or key.text in ("q", "?", " "):
            self._back()
        else:
            return False
        return True

    def draw(self, look: Look, rows: int) -> Drawing:
        lines: list[Line] = [(("strong", look.cut(self._title)),), ()]
        for style, text in self._paragraphs:
            if style == "quote":
                lines += [(("", line),) for line in look.quoted(text, "  ")]
            else:
                lines += [((style, line),) for line in look.wrapped(text)]
        self._rows = rows
        shown, self._first = scrolled(lines, self._first, rows, look)
        return Drawing(shown)
