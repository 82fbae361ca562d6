"""What a field is answered with: one line, several lines, yes or no, one of a few. Long lists are in `lists`.

An editor shows what its entry holds and hands on what a person does; what an answer means and whether it is one, the
entry says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QButtonGroup, QComboBox, QHBoxLayout, QLineEdit, QPlainTextEdit, QRadioButton, QWidget

from ...display import safe_line
from ...forms import MISSING, limits, numbers
from ..form import Entry
from .style import tooltip

__all__ = ["CHOOSE_ONE", "LEAVE_OUT", "ComboEditor", "Editor", "LineEditor", "TextEditor", "YesNoEditor"]

LEAVE_OUT = "Leave out"
CHOOSE_ONE = "Choose one"
_MOST_OF_A_TITLE = 120  # characters of an option's title in a list; the tooltip has the whole
_NEW_LINES = {0x2028: "\n", 0x2029: "\n", 0xFDD0: "\n", 0xFDD1: "\n"}


class Editor:
    """What all editors have in common.

    Attributes:
        widget: what stands in the field's row.
        stops: the widgets in it that take the keyboard, in their order.
    """

    widget: QWidget
    stops: list[QWidget]

    def __init__(self, entry: Entry, edited: Callable[[], None]) -> None:
        """`edited` is called after the entry has been told what a person did."""
        self.entry = entry
        self.edited = edited

    def load(self) -> None:
        """Shows what the entry holds."""
        raise NotImplementedError

    def describe(self, name: str, description: str) -> None:
        """Tells who can't see it what it is."""
        for stop in self.stops:
            stop.setAccessibleName(name)
            stop.setAccessibleDescription(description)

    def _placeholder(self) -> str:
        if self.entry.state == "empty":
            return "(empty)"
        return "" if self.entry.required else "(left out)"


class LineEditor(Editor):
    """A text, a number, a date ... on one line; masked where it looks like a secret."""

    def __init__(self, entry: Entry, edited: Callable[[], None]) -> None:
        super().__init__(entry, edited)
        self.line = QLineEdit()
        self.line.setMaxLength(limits.MAX_TEXT + 1)  # what is longer is told, not cut
        if entry.is_secret_named:
            self.line.setEchoMode(QLineEdit.EchoMode.Password)
        self.line.textEdited.connect(self._take)
        self.widget, self.stops = self.line, [self.line]

    def load(self) -> None:
        self.line.setText(self.entry.typed)
        self.line.setCursorPosition(0)
        self.line.setPlaceholderText(self._placeholder())

    def show_typed(self, shown: bool) -> None:
        self.line.setEchoMode(QLineEdit.EchoMode.Normal if shown else QLineEdit.EchoMode.Password)

    def _take(self, text: str) -> None:
        self.entry.set_text(text)
        self.line.setPlaceholderText(self._placeholder())
        self.edited()


class TextEditor(Editor):
    """A text of several lines. The Tab key goes on, Enter begins a line."""

    def __init__(self, entry: Entry, edited: Callable[[], None]) -> None:
        super().__init__(entry, edited)
        self.box = QPlainTextEdit()
        self.box.setTabChangesFocus(True)
        self.box.setFixedHeight(self.box.fontMetrics().lineSpacing() * 4 + 12)
        self.box.textChanged.connect(self._take)
        self.widget, self.stops = self.box, [self.box]

    def load(self) -> None:
        with QSignalBlocker(self.box):
            self.box.setPlainText(self.entry.typed)
        self.box.setPlaceholderText(self._placeholder())

    def _take(self) -> None:
        # toPlainText() would make plain spaces of no-break ones.
        self.entry.set_text(self.box.document().toRawText().translate(_NEW_LINES))
        self.box.setPlaceholderText(self._placeholder())
        self.edited()


class YesNoEditor(Editor):
    """A boolean: yes, no, and left out where it may be."""

    def __init__(self, entry: Entry, edited: Callable[[], None]) -> None:
        super().__init__(entry, edited)
        self.widget = QWidget()
        row = QHBoxLayout(self.widget)
        row.setContentsMargins(0, 0, 0, 0)
        self._group = QButtonGroup(self.widget)
        self.values: list[Any] = [option.value for option in entry.options] or [True, False]
        self.values += [] if entry.required else [MISSING]
        self.buttons = [QRadioButton(_word(value)) for value in self.values]
        for number, button in enumerate(self.buttons):
            self._group.addButton(button, number)
            row.addWidget(button)
        row.addStretch(1)
        self._group.idClicked.connect(self._take)
        self.stops = list(self.buttons)

    def load(self) -> None:
        chosen = [index for index, value in enumerate(self.values) if value is self.entry.value]
        self._group.setExclusive(False)
        for number, button in enumerate(self.buttons):
            button.setChecked(number in chosen)
        self._group.setExclusive(True)

    def describe(self, name: str, description: str) -> None:
        for button, value in zip(self.buttons, self.values, strict=True):
            button.setAccessibleName(f"{name}: {_word(value)}")
            button.setAccessibleDescription(description)

    def _take(self, number: int) -> None:
        self.entry.set_value(self.values[number])
        self.edited()


def _word(value: Any) -> str:
    return LEAVE_OUT if value is MISSING else "Yes" if value else "No"


class _QuietCombo(QComboBox):
    """A list that does not change when somebody scrolls the form with the wheel over it."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


class ComboEditor(Editor):
    """One of a few options, and none where it may be left out."""

    def __init__(self, entry: Entry, edited: Callable[[], None]) -> None:
        super().__init__(entry, edited)
        self.box = _QuietCombo()
        self.box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.box.setMinimumContentsLength(12)
        self.box.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.box.setPlaceholderText(CHOOSE_ONE)
        self._first = 0 if entry.required else 1
        self.box.addItems([*([] if entry.required else [f"({LEAVE_OUT.lower()})"]), *map(title_of, entry.options)])
        for number, option in enumerate(entry.options, self._first):
            if len(option.title) > 40:
                self.box.setItemData(number, tooltip(option.title), Qt.ItemDataRole.ToolTipRole)
        self.box.currentIndexChanged.connect(self._take)
        self.widget, self.stops = self.box, [self.box]

    def load(self) -> None:
        with QSignalBlocker(self.box):
            if self.entry.value is MISSING:
                self.box.setCurrentIndex(self._first - 1)
            else:
                self.box.setCurrentIndex(self._first + index_of(self.entry, self.entry.value))

    def _take(self, index: int) -> None:
        number = index - self._first
        self.entry.set_value(MISSING if number < 0 else self.entry.options[number].value)
        self.edited()


def title_of(option: Any) -> str:
    """An option's title on one line."""
    return safe_line(option.title, limit=_MOST_OF_A_TITLE)


def index_of(entry: Entry, value: Any) -> int:
    """Which option a value is."""
    return [numbers.key(option.value) for option in entry.options].index(numbers.key(value))
