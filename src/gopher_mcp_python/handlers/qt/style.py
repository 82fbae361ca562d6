"""Colours and texts of the windows: readable on every palette, and never more than plain text.

Qt takes text for markup where it looks like it, and "&" for a key: a server's text goes through here before it is
shown.
"""

from __future__ import annotations

import html
import re
from functools import lru_cache
from typing import Literal
from unicodedata import bidirectional

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from ...display import safe_text

__all__ = ["ToneLabel", "breakable", "contrast", "is_right_to_left", "key_safe", "retone", "tone_color", "tooltip"]

Tone = Literal["plain", "muted", "warning", "error"]
# What is told by a colour is told by words, too.
_TONES = {"muted": QColor(0x70, 0x70, 0x70), "warning": QColor(0xB2, 0x6A, 0x00), "error": QColor(0xD3, 0x2F, 0x2F)}
_LEAST = 4.5  # WCAG 2.2, 1.4.3 Contrast (Minimum), level AA
_RUN = re.compile(r"(\S{24})(?=\S)")
_MOST_OF_A_TIP = 2000  # characters


def contrast(one: QColor, other: QColor) -> float:
    """The contrast ratio of two colours, 1 to 21, as WCAG 2.2 defines it."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(color: QColor) -> float:
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (color.redF(), color.greenF(), color.blueF())
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def tone_color(tone: Tone, palette: QPalette) -> QColor:
    """The colour of a tone: as much of its hue as can be read on the palette's windows and fields."""
    roles = (QPalette.ColorRole.WindowText, QPalette.ColorRole.Window, QPalette.ColorRole.Base)
    text, window, base = (palette.color(role).rgb() for role in roles)
    return QColor(_readable(tone, text, (window, base)))


@lru_cache(maxsize=64)
def _readable(tone: Tone, text: int, grounds: tuple[int, ...]) -> int:
    if tone != "plain":
        for part in range(11):
            color = _mixed(_TONES[tone], QColor(text), part / 10)
            if all(contrast(color, QColor(ground)) >= _LEAST for ground in grounds):
                return color.rgb()
    return text


def _mixed(one: QColor, other: QColor, part: float) -> QColor:
    pairs = zip((one.red(), one.green(), one.blue()), (other.red(), other.green(), other.blue()), strict=True)
    return QColor(*(round(a + (b - a) * part) for a, b in pairs))


class ToneLabel(QLabel):
    """Text in one of the tones; plain, wrapped, on the side on which its language begins; with `right` on the right one
    whatever it says."""

    def __init__(self, text: str = "", tone: Tone = "plain", *, bold: bool = False, right: bool = False) -> None:
        super().__init__()
        self.tone: Tone = tone
        self._right = right
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setWordWrap(True)
        self.setSizePolicy(_wide())
        if bold:
            font = self.font()
            font.setBold(True)
            self.setFont(font)
        if text:
            self.say(text)

    def say(self, text: str) -> None:
        """Shows a text, escaped and with places to break long words at."""
        shown = breakable(text)
        if shown == self.text():
            return
        right = self._right or is_right_to_left(text)
        side = Qt.AlignmentFlag.AlignRight if right else Qt.AlignmentFlag.AlignLeft
        self.setAlignment(side | Qt.AlignmentFlag.AlignAbsolute | Qt.AlignmentFlag.AlignVCenter)
        self.setText(shown)


def _wide() -> QSizePolicy:
    policy = QSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
    policy.setHeightForWidth(True)
    return policy


def retone(top: QWidget) -> None:
    """Gives all labels below `top` the colours of its palette."""
    palette = QPalette(top.palette())
    colors = {tone: tone_color(tone, palette) for tone in _TONES}  # type: ignore[arg-type]
    labels: list[ToneLabel] = top.findChildren(ToneLabel)
    for label in labels:
        color = colors.get(label.tone)
        if color is not None and label.palette().color(QPalette.ColorRole.WindowText) != color:
            own = QPalette()
            own.setColor(QPalette.ColorRole.WindowText, color)
            label.setPalette(own)


def breakable(text: str, *, limit: int = 4000) -> str:
    """`text` escaped for show, with invisible places to break at in words that are longer than a window is wide."""
    return _RUN.sub("\\1\u200b", safe_text(text, limit=limit))


def tooltip(text: str) -> str:
    """A text for a tooltip, which Qt would take for markup where it looks like it: escaped, and wrapped."""
    shown = html.escape(safe_text(text, limit=_MOST_OF_A_TIP))
    return f'<p style="white-space: pre-wrap">{shown}</p>'


def key_safe(text: str) -> str:
    """A text for a button or a menu, where "&" would make a key of the letter after it."""
    return text.replace("&", "&&")


def is_right_to_left(text: str) -> bool:
    """Whether a text begins in a script that is written from right to left."""
    strong = next((kind for kind in map(bidirectional, text) if kind in ("L", "R", "AL")), "L")
    return strong != "L"
