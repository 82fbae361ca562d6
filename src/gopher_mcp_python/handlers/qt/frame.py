"""What stands above and below a request: who asks for what, and the buttons that answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from PySide6.QtCore import QPoint, Signal
from PySide6.QtGui import QAction, QGuiApplication, QScreen
from PySide6.QtWidgets import QHBoxLayout, QMenu, QPushButton, QVBoxLayout, QWidget

from ...display import safe_line
from ..form_texts import NO_SECRETS
from .blocks import TextBlock
from .style import ToneLabel, key_safe

__all__ = ["Footer", "Header"]

_NO_SECRETS_THERE = "Never give a password, a key or other credentials to a page whose host you do not know."
Lasting = Literal["session", "always"]
_LASTING: dict[Lasting, str] = {"session": "for this session", "always": "always"}


class Header(QWidget):
    """Who asks for what, and the warning that always stands there."""

    def __init__(self, sentence: str, texts: Sequence[str], *, is_url: bool, screen: QScreen | None) -> None:
        super().__init__()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        self.sentence = ToneLabel(sentence, bold=True)
        column.addWidget(self.sentence)
        message = "\n\n".join(text.strip() for text in texts if text.strip())
        self.message: TextBlock | None = None
        if message:
            self.message = TextBlock(message, name="What the server says", most=_lines_for(self, screen))
            column.addWidget(self.message)
        self.warning = ToneLabel(_NO_SECRETS_THERE if is_url else NO_SECRETS, "warning")
        column.addWidget(self.warning)


def _lines_for(widget: QWidget, screen: QScreen | None) -> int:
    """As many lines of a message as leave room for the rest on this screen."""
    screen = screen or QGuiApplication.primaryScreen()
    height = 800 if screen is None else screen.availableGeometry().height()
    return max(2, min(8, int(height * 0.17 / widget.fontMetrics().lineSpacing())))


class Footer(QWidget):
    """Problems, hints, the time, and the buttons. `declined_all` says for how long everything of this server is to be
    declined."""

    declined_all = Signal(str)

    def __init__(self, send: str | None) -> None:
        """`send`: the word on the button that accepts; None where nothing can be accepted."""
        super().__init__()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        self.summary = TextBlock(name="What is still wrong", most=4)
        self.hint = ToneLabel("", "warning", bold=True)
        self.time_left = ToneLabel("", "muted")
        for part in (self.summary, self.hint, self.time_left):
            part.setVisible(False)
            column.addWidget(part)
        self._row = QHBoxLayout()
        self._row.addStretch(1)
        column.addLayout(self._row)
        self.send = None if send is None else self._button(send)
        self.decline = self._button("&Decline")
        self.decline_all: QPushButton | None = None
        self.cancel = self._button("&Cancel")
        self.decline.setToolTip("Says no to the server; its call goes on without an answer.")
        self.cancel.setToolTip("Ends the request without an answer. Closing the window does the same.")
        self._ways: list[tuple[Lasting, str]] = []

    def _button(self, text: str) -> QPushButton:
        button = QPushButton(text)
        button.setAutoDefault(False)
        self._row.addWidget(button)
        return button

    def offer_decline_all(self, server: str, lasting: Sequence[Lasting]) -> None:
        """Adds the button for declining everything of this server."""
        before = f"Decline everything from {safe_line(server, limit=60)}"
        self._ways = [(how_long, key_safe(f"{before} {_LASTING[how_long]}")) for how_long in lasting]
        self.decline_all = self._button("Decline &all ...")
        self.decline_all.setAccessibleName(before)
        self._row.insertWidget(self._row.indexOf(self.cancel), self.decline_all)
        QWidget.setTabOrder(self.decline, self.decline_all)
        self.decline_all.clicked.connect(self._show_ways)

    def _show_ways(self) -> None:
        """The menu; nothing waits for it."""
        menu = QMenu(self)
        for how_long, words in self._ways:
            menu.addAction(words).setData(how_long)
        menu.triggered.connect(self._chose)
        menu.aboutToHide.connect(menu.deleteLater)
        if self.decline_all is not None:
            menu.popup(self.decline_all.mapToGlobal(QPoint(0, self.decline_all.height())))

    def _chose(self, action: QAction) -> None:
        self.declined_all.emit(action.data())

    def show_summary(self, text: str) -> None:
        self.summary.say(text or " ")
        self.summary.setVisible(bool(text))

    def show_hint(self, text: str) -> None:
        self.hint.say(text)
        self.hint.setVisible(bool(text))

    def show_time(self, text: str) -> None:
        self.time_left.say(text)
        self.time_left.setVisible(bool(text))
