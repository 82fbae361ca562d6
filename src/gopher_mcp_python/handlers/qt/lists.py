"""Editors of lists: several options as boxes to tick, and long lists with a line to search them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QVBoxLayout,
    QWidget,
)

from ...forms import MISSING, numbers
from ..form import Entry
from .editors import Editor, title_of
from .style import ToneLabel, key_safe, tooltip

__all__ = ["BoxesEditor", "ListEditor"]

_ROWS = 7  # of a long list, at once


class BoxesEditor(Editor):
    """Several of a few options, each with a box to tick."""

    def __init__(self, entry: Entry, edited: Callable[[], None]) -> None:
        super().__init__(entry, edited)
        self.widget = QWidget()
        column = QVBoxLayout(self.widget)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        self.boxes = [QCheckBox(key_safe(title_of(option))) for option in entry.options]
        for box in self.boxes:
            column.addWidget(box)
            box.clicked.connect(self._take)
        self.stops = list(self.boxes)

    def load(self) -> None:
        chosen = _chosen(self.entry)
        for box, option in zip(self.boxes, self.entry.options, strict=True):
            box.setChecked(numbers.key(option.value) in chosen)

    def describe(self, name: str, description: str) -> None:
        for box, option in zip(self.boxes, self.entry.options, strict=True):
            box.setAccessibleName(f"{name}: {title_of(option)}")
            box.setAccessibleDescription(description)

    def _take(self) -> None:
        pairs = zip(self.boxes, self.entry.options, strict=True)
        _give(self.entry, [option.value for box, option in pairs if box.isChecked()])
        self.edited()


class _TickList(QListWidget):
    """A list in which a click beside a box ticks it, too."""

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._pressed = self.itemAt(event.position().toPoint())
        super().mousePressEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        item = self.itemAt(event.position().toPoint())
        before = None if item is None else item.checkState()
        super().mouseReleaseEvent(event)
        if item is None or event.button() != Qt.MouseButton.LeftButton or item is not self._pressed:
            return
        self.setCurrentItem(item)
        if item.checkState() == before:
            item.setCheckState(_tick(before != Qt.CheckState.Checked))

    _pressed: QListWidgetItem | None = None


class ListEditor(Editor):
    """One or several of many options, with a line that narrows the list down. What is chosen stays so when the list is
    narrowed down."""

    def __init__(self, entry: Entry, edited: Callable[[], None]) -> None:
        super().__init__(entry, edited)
        self._several = entry.field.kind == "choices"
        self.search = QLineEdit()
        self.search.setPlaceholderText("Search the list")
        self.search.setClearButtonEnabled(True)
        self.list = _TickList() if self._several else QListWidget()
        self.count = ToneLabel("", "muted")
        self.widget = QWidget()
        column = QVBoxLayout(self.widget)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        for part in (self.search, self.list, self.count):
            column.addWidget(part)
        self._fill()
        self.search.textChanged.connect(self._narrow)
        if self._several:
            self.list.itemChanged.connect(self._take)
        else:
            self.list.itemSelectionChanged.connect(self._take)  # the current one changes with the keyboard's focus
        self.stops = [self.search, self.list]

    def _fill(self) -> None:
        self.list.setUniformItemSizes(True)
        self.list.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.list.setTabKeyNavigation(False)
        for option in self.entry.options:
            item = QListWidgetItem(title_of(option))
            if len(option.title) > 40:
                item.setToolTip(tooltip(option.title))
            if self._several:
                item.setCheckState(Qt.CheckState.Unchecked)
            self.list.addItem(item)
        rows = min(_ROWS, self.list.count())
        self.list.setFixedHeight(self.list.sizeHintForRow(0) * rows + 2 * self.list.frameWidth())

    def load(self) -> None:
        chosen = _chosen(self.entry)
        with QSignalBlocker(self.list):
            current = -1
            for number, option in enumerate(self.entry.options):
                is_chosen = numbers.key(option.value) in chosen
                current = number if is_chosen and current < 0 else current
                if self._several and self.list.item(number).checkState() != _tick(is_chosen):
                    self.list.item(number).setCheckState(_tick(is_chosen))
            if not self._several:
                self.list.setCurrentRow(current)
                if current < 0:
                    self.list.clearSelection()
            if current >= 0:
                self.list.scrollToItem(self.list.item(current))
        self._tell()

    def _take(self) -> None:
        if self._several:
            _give(self.entry, self._values())
        else:
            rows = [self.list.row(item) for item in self.list.selectedItems()]
            self.entry.set_value(self.entry.options[rows[0]].value if rows else MISSING)
        self._tell()
        self.edited()

    def _values(self) -> list[Any]:
        on = Qt.CheckState.Checked
        return [one.value for n, one in enumerate(self.entry.options) if self.list.item(n).checkState() == on]

    def _narrow(self, text: str) -> None:
        words = text.casefold().split()
        for number, option in enumerate(self.entry.options):
            title = option.title.casefold()
            self.list.item(number).setHidden(not all(word in title for word in words))
        self._tell()

    def _tell(self) -> None:
        total = self.list.count()
        hidden = sum(self.list.item(number).isHidden() for number in range(total)) if self.search.text() else 0
        parts = [f"{len(self._values())} of {total} chosen"] if self._several else [f"{total} options"]
        parts += [f"{total - hidden} shown"] if hidden else []
        self.count.say(", ".join(parts))


def _tick(on: bool) -> Qt.CheckState:
    return Qt.CheckState.Checked if on else Qt.CheckState.Unchecked


def _chosen(entry: Entry) -> set[Any]:
    if entry.value is MISSING:
        return set()
    values = entry.value if isinstance(entry.value, (list, tuple)) else [entry.value]
    return {numbers.key(value) for value in values}


def _give(entry: Entry, values: list[Any]) -> None:
    """Nothing chosen is what an empty line means: left out where that may be."""
    if values:
        entry.set_value(values)
    else:
        entry.set_text("")
