"""A field as it stands in the form: what it asks for, its editor, what holds now, what is wrong."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QHBoxLayout, QLabel, QMenu, QToolButton, QVBoxLayout, QWidget

from ...display import safe_line, safe_text
from ...forms import MISSING
from ..form import Entry
from ..form_texts import secret_warning
from .editors import ComboEditor, Editor, LineEditor, TextEditor, YesNoEditor
from .lists import BoxesEditor, ListEditor
from .style import ToneLabel, is_right_to_left, retone, tooltip

__all__ = ["FieldRow", "editor_for"]

_LONG_TEXT = 160  # characters: what may be as long gets several lines
_FEW = 8  # options with boxes to tick
_MANY = 40  # options that get a line to search them
_MOST_OF_A_DESCRIPTION = 600  # characters; the tooltip has more
_STATES = {"value": "Answered", "default": "Default", "empty": "Empty"}
_SPACES = str.maketrans(dict.fromkeys("\t\u00a0\u2007\u202f\u3000", " "))


def editor_for(entry: Entry, edited: Callable[[], None]) -> Editor:
    """The editor that a field's kind calls for."""
    field = entry.field
    if field.kind == "boolean":
        return YesNoEditor(entry, edited)
    if field.kind == "choice":
        return (ListEditor if len(entry.options) > _MANY else ComboEditor)(entry, edited)
    if field.kind == "choices" and entry.options:
        few = len(entry.options) <= _FEW and all(len(option.title) <= 60 for option in entry.options)
        return (BoxesEditor if few else ListEditor)(entry, edited)
    return (TextEditor if _is_long(entry) else LineEditor)(entry, edited)


def _is_long(entry: Entry) -> bool:
    """Whether a text gets several lines. Nothing could be masked there."""
    if entry.field.kind != "string" or entry.is_secret_named or entry.field.format:
        return False
    default = entry.default if isinstance(entry.default, str) else ""
    return "\n" in default or len(default) > _LONG_TEXT or (entry.field.max_length or 0) >= _LONG_TEXT


class FieldRow(QWidget):
    """One field. `changed` is called after each change that a person made."""

    def __init__(self, entry: Entry, changed: Callable[[], None]) -> None:
        super().__init__()
        self.entry = entry
        self._changed = changed
        self._is_judged = False  # whether to tell what is wrong: not before somebody has answered, or tried to send
        self.error: ToneLabel | None = None
        self.note: ToneLabel | None = None
        self.state: QToolButton | None = None
        self.editor = editor_for(entry, self._edited)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(3)
        self._right = is_right_to_left(entry.label)
        if self._right:
            self.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
        self._build()
        self.editor.load()
        self.refresh()

    # ---- how it is made --------------------------------------------------------------------------------------------

    def _build(self) -> None:
        self._column.addLayout(self._top())
        if self.entry.description:
            text = self.entry.description
            label = ToneLabel(safe_text(text, limit=_MOST_OF_A_DESCRIPTION), "muted")
            if len(text) > _MOST_OF_A_DESCRIPTION:
                label.setToolTip(tooltip(text))
            self._column.addWidget(label)
        if self.entry.is_secret_named:
            self._column.addWidget(ToneLabel(f"WARNING: {self._warning()}", "warning", bold=True, right=self._right))
        self._column.addWidget(self.editor.widget)
        if self.entry.hint and not isinstance(self.editor, (YesNoEditor, ComboEditor)):
            self._column.addWidget(ToneLabel(self.entry.hint, "muted", right=self._right))

    def _warning(self) -> str:
        return f"{secret_warning(self.entry.field)} What you type here is not shown."

    def _top(self) -> QHBoxLayout:
        top = QHBoxLayout()
        top.setSpacing(6)
        top.addWidget(ToneLabel(self.entry.label, bold=True), 1)
        if self.entry.required:
            top.addWidget(_Mark("required"))
        if self._ways():
            self.state = QToolButton()
            self.state.setAutoRaise(True)
            self.state.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            self.state.clicked.connect(self.show_ways)
            top.addWidget(self.state)
        return top

    def _ways(self) -> list[tuple[str, bool, Callable[[], object]]]:
        """What can be done with the field besides answering it: words, whether it is so now, how."""
        entry, ways = self.entry, list[tuple[str, bool, Callable[[], object]]]()
        if not entry.required and not isinstance(self.editor, (YesNoEditor, ComboEditor)):
            ways.append(("&Leave out", entry.state == "omitted", entry.omit))
        if entry.can_be_empty:
            what = "text" if entry.field.kind == "string" else "list"
            ways.append((f"&Empty {what}", entry.state == "empty", self._empty))
        if entry.default is not MISSING:
            ways.append(("&Default of the server", entry.state == "default", entry.reset))
        return ways

    def _empty(self) -> None:
        self.entry.set_value("" if self.entry.field.kind == "string" else [])

    def stops(self) -> list[QWidget]:
        """What takes the keyboard, in order."""
        return [*self.editor.stops, *([] if self.state is None else [self.state])]

    # ---- what a person does ----------------------------------------------------------------------------------------

    def show_ways(self) -> None:
        """Shows the menu with what can be done with the field; nothing waits for it."""
        menu = QMenu(self)
        menu.aboutToHide.connect(menu.deleteLater)
        for words, holds, way in self._ways():
            action = QAction(words, menu, checkable=True, checked=holds)
            action.setData(way)
            menu.addAction(action)
        menu.triggered.connect(self._chose)
        if isinstance(self.editor, LineEditor) and self.entry.is_secret_named:
            self._add_showing(menu, self.editor)
        if self.state is not None:
            menu.popup(self.state.mapToGlobal(QPoint(0, self.state.height())))

    @staticmethod
    def _add_showing(menu: QMenu, editor: LineEditor) -> None:
        shown = editor.line.echoMode() == editor.line.EchoMode.Normal
        action = QAction("&Show what is typed", menu, checkable=True, checked=shown)
        action.toggled.connect(editor.show_typed)
        menu.addAction(action)

    def _chose(self, action: QAction) -> None:
        if callable(action.data()):
            self.take(action.data())

    def take(self, way: Callable[[], object]) -> None:
        """Does one of the other things with the field."""
        way()
        self.editor.load()
        self._edited()

    def _edited(self) -> None:
        self._is_judged = True
        self.refresh()
        self._changed()

    # ---- what it shows ---------------------------------------------------------------------------------------------

    def judge(self) -> None:
        """Tells from now on what is wrong."""
        self._is_judged = True
        self.refresh()

    def refresh(self, problem: str | None = None) -> None:
        """Shows what holds now. `problem`: what is wrong, where the form knows better than the field."""
        problem = problem or (self.entry.check() if self._is_judged else None)
        if problem is not None or self.error is not None:
            self.error = self._shown(self.error, "error", "" if problem is None else f"{self.entry.label} {problem}.")
        hidden = self._hidden_characters()
        if hidden or self.note is not None:
            self.note = self._shown(self.note, "warning", hidden)
        if self.state is not None:
            words = _STATES.get(self.entry.state) or ("Not answered" if self.entry.required else "Left out")
            words = "Not taken" if self.entry.problem else words
            self.state.setText(f"{words} \u25be")
            self.state.setAccessibleName(f"{self.entry.label}: {words}. Other ways to answer")
        self._describe(problem)

    def _shown(self, label: ToneLabel | None, tone: str, text: str) -> ToneLabel:
        if label is None:
            label = ToneLabel("", "error" if tone == "error" else "warning", right=self._right)
            self._column.addWidget(label)
            retone(self)
        label.say(text)
        label.setVisible(bool(text))
        return label

    def _hidden_characters(self) -> str:
        """What an editor would not show, or show in another order."""
        value = self.entry.value
        if not isinstance(value, str) or self.entry.is_secret_named or (value.isascii() and value.isprintable()):
            return ""
        limited = value[:4000].replace("\r\n", "\n").translate(_SPACES)
        escaped = safe_text(limited)
        return "" if escaped == limited else f"This text has invisible characters: {safe_line(escaped, limit=300)}"

    def _describe(self, problem: str | None) -> None:
        entry = self.entry
        name = f"{entry.label}, required" if entry.required else entry.label
        parts = [entry.description[:300], entry.hint, self._warning() if entry.is_secret_named else ""]
        parts += [] if problem is None else [f"Error: {entry.label} {problem}."]
        self.editor.describe(name, safe_line(". ".join(part for part in parts if part), limit=1000))


class _Mark(QLabel):
    """A word of ours that never wraps."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.setTextFormat(Qt.TextFormat.PlainText)
