"""The fields of a form, one below the other. Those that nobody can see yet are made after the window is there."""

from __future__ import annotations

import time

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from ..form import FormModel
from .field_row import FieldRow
from .style import retone

__all__ = ["FormView", "ScrollBody"]

_AT_ONCE = 12  # fields made before the window is shown: more than a screen has
_SECTION = 16  # fields made together; a change has only the layouts of its own section computed anew
_PIECE = 0.025  # seconds of work before events are looked at again
_BETWEEN = 14  # pixels


class ScrollBody(QScrollArea):
    """What scrolls between the header and the buttons."""

    def __init__(self) -> None:
        super().__init__()
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.body = QWidget()
        self.column = QVBoxLayout(self.body)
        self.column.setContentsMargins(2, 6, 8, 6)
        self.column.setSpacing(_BETWEEN)
        self.setWidget(self.body)

    def height_at(self, width: int) -> int:
        """How high it would have to be to show everything."""
        inner = max(100, width - self.verticalScrollBar().sizeHint().width())
        return max(self.column.totalHeightForWidth(inner), self.column.totalMinimumSize().height())

    def minimumSizeHint(self) -> QSize:
        return QSize(200, self.fontMetrics().lineSpacing() * 4)


class FormView(ScrollBody):
    """`changed` is emitted after each change that a person made."""

    changed = Signal()

    def __init__(self, model: FormModel) -> None:
        super().__init__()
        self._model = model
        self._last: QWidget | None = None
        self.rows: list[FieldRow] = []
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._make_some)
        self.column.addStretch(1)
        if len(model.entries) > _AT_ONCE:  # else Qt would lay everything out for both widths, time and again
            self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)
        self._make(_AT_ONCE)

    @property
    def is_complete(self) -> bool:
        return len(self.rows) == len(self._model.entries)

    def row(self, name: str) -> FieldRow:
        """The row of a field, which is made with those before it if it is not there yet."""
        index = next(index for index, entry in enumerate(self._model.entries) if entry.name == name)
        self._make(index + 1)
        return self.rows[index]

    def make_the_rest(self) -> None:
        """Makes the other rows bit by bit, between other events."""
        if not self.is_complete:
            self._timer.start()

    def stop(self) -> None:
        self._timer.stop()

    def begin(self) -> None:
        """Puts the keyboard to the first field."""
        self.rows[0].editor.stops[0].setFocus(Qt.FocusReason.OtherFocusReason)

    def show_row(self, row: FieldRow) -> None:
        """Scrolls to a field and puts the keyboard there."""
        self.column.activate()
        row.editor.stops[0].setFocus(Qt.FocusReason.OtherFocusReason)
        self.ensureWidgetVisible(row, 0, 20)

    def next_stop(self, widget: QWidget | None) -> QWidget | None:
        """The editor of the field after that of `widget`; None after the last one."""
        for index, row in enumerate(self.rows):
            if widget is not None and (row is widget or row.isAncestorOf(widget)):
                if index + 1 == len(self._model.entries):
                    return None
                self._make(index + 2)
                return self.rows[index + 1].editor.stops[0]
        return None

    def _make_some(self) -> None:
        end = time.monotonic() + _PIECE
        while time.monotonic() < end and not self.is_complete:
            self._make(len(self.rows) + _SECTION)
        if self.is_complete:
            self._timer.stop()

    def _make(self, count: int) -> None:
        """Makes rows until there are so many."""
        while len(self.rows) < min(count, len(self._model.entries)):
            first = len(self.rows)
            self._make_section(first, min(first + _SECTION, max(count, first + 1)))

    def _make_section(self, first: int, end: int) -> None:
        holder = QWidget()
        section = QVBoxLayout(holder)
        section.setContentsMargins(0, 0, 0, 0)
        section.setSpacing(_BETWEEN)
        rows = [FieldRow(entry, self.changed.emit) for entry in self._model.entries[first:end]]
        for row in rows:
            section.addWidget(row)
        self.rows += rows
        self.column.insertWidget(self.column.count() - 1, holder)
        retone(holder)
        if self.isVisible():
            holder.show()  # not only with the next event, so that the keyboard can go there
        for stop in [stop for row in rows for stop in row.stops()]:
            if self._last is not None:
                QWidget.setTabOrder(self._last, stop)
            self._last = stop
