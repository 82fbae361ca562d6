"""Read-only text that stays whole: it wraps anywhere, and scrolls where it is longer than its place."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QFont, QFontDatabase, QPalette, QTextCharFormat, QTextCursor, QTextLayout, QTextOption
from PySide6.QtWidgets import QPlainTextEdit, QSizePolicy

from ...display import safe_text
from .style import is_right_to_left

__all__ = ["TextBlock"]

_LONGEST = 20_000  # characters of one text
_OF_A_LINE = 1000  # characters that a line has at most, marks on letters included


class TextBlock(QPlainTextEdit):
    """A text that can be read, selected and scrolled, by keyboard too. As high as it needs, up to `most` lines."""

    def __init__(self, text: str = "", *, name: str, most: int = 6, fixed_width: bool = False) -> None:
        super().__init__()
        self._most = most
        self._has_bold = False
        self.setReadOnly(True)
        self.setTabChangesFocus(True)
        self.setUndoRedoEnabled(False)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        reading = Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        self.setTextInteractionFlags(reading)
        self.setAccessibleName(name)
        self.viewport().setBackgroundRole(QPalette.ColorRole.Window)  # nobody takes it for a field to fill in
        if fixed_width:
            self.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        policy = QSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        if text:
            self.say(text)

    def say(self, text: str) -> None:
        """Shows a text, escaped."""
        shown = safe_text(text, limit=_LONGEST)
        if shown == self.toPlainText():
            return
        option = self.document().defaultTextOption()
        right = is_right_to_left(text)
        option.setTextDirection(Qt.LayoutDirection.RightToLeft if right else Qt.LayoutDirection.LeftToRight)
        side = Qt.AlignmentFlag.AlignRight if right else Qt.AlignmentFlag.AlignLeft
        option.setAlignment(side | Qt.AlignmentFlag.AlignAbsolute)
        self.document().setDefaultTextOption(option)
        self.setPlainText(shown)
        self.updateGeometry()

    def stand_out(self, start: int, end: int) -> None:
        """Makes a part of the text bold and larger."""
        cursor = QTextCursor(self.document())
        cursor.setPosition(start)
        cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
        form = QTextCharFormat()
        form.setFontWeight(QFont.Weight.Bold)
        form.setFontUnderline(True)
        cursor.mergeCharFormat(form)
        self._has_bold = True

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return self._height(self._lines_at(max(40, width - self._beside())))

    def sizeHint(self) -> QSize:
        return QSize(self.fontMetrics().averageCharWidth() * 40, self.heightForWidth(max(200, self.width())))

    def minimumSizeHint(self) -> QSize:
        return QSize(self.fontMetrics().averageCharWidth() * 10, self._height(1))

    def _beside(self) -> int:
        """What frame, margins and a scroll bar take of the width."""
        margins = 2 * (self.frameWidth() + round(self.document().documentMargin())) + 2
        return margins + (self.verticalScrollBar().sizeHint().width() if self.verticalScrollBar().isVisible() else 0)

    def _height(self, lines: int) -> int:
        frame = 2 * (self.frameWidth() + round(self.document().documentMargin()))
        return lines * self.fontMetrics().lineSpacing() + frame + 1

    def _lines_at(self, width: int) -> int:
        """How many lines the text takes, as far as they are shown at once."""
        count = 0
        option = QTextOption(self.document().defaultTextOption())
        font = QFont(self.font())
        font.setBold(font.bold() or self._has_bold)
        for paragraph in self.toPlainText().split("\n"):
            layout = QTextLayout(paragraph[: (self._most - count) * _OF_A_LINE], font)
            layout.setTextOption(option)
            layout.beginLayout()
            while count < self._most:
                line = layout.createLine()
                if not line.isValid():
                    break
                line.setLineWidth(width)
                count += 1
            layout.endLayout()
            if not paragraph:
                count += 1
            if count >= self._most:
                return self._most
        return max(1, count)
