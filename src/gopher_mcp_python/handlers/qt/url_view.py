"""A page that a server wants a person to open: where it leads, what is odd about it, and how to get there.

Nothing is opened without a click, nothing is fetched, and what is opened is the URL as this package wrote it anew.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from PySide6.QtCore import QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QPushButton

from ...oauth_browser import open_authorization_url
from ...weburl import WebUrl
from ..dialogue import opening
from .blocks import TextBlock
from .form_view import ScrollBody
from .style import ToneLabel

__all__ = ["Opener", "UrlView"]

#: Opens a page, on the thread of the windows; returns whether it worked.
Opener = Callable[[str], object]
_LOOK_EVERY = 50  # milliseconds
_AGAIN_AFTER = 1.0  # seconds; the second half of a double click does not open it twice


class UrlView(ScrollBody):
    """One page. Without an opener it is opened like the sign-in pages of this package, which is the one place that
    knows of BROWSER, of SSH and WSL, and that tells why nothing was opened; it may take most of a second, so that it
    runs on a thread of its own."""

    def __init__(self, page: WebUrl, opener: Opener | None = None) -> None:
        super().__init__()
        self._page = page
        self._opener = opener
        self.url = TextBlock(page.href, name="URL", most=5, fixed_width=True)
        self.host = TextBlock(f"Host: {page.host}", name="Host", most=4)
        self.told = ToneLabel()
        self.told.setVisible(False)
        self.agreed: QCheckBox | None = None
        self.open_button = QPushButton("&Open in the browser")
        self.copy_button = QPushButton("Cop&y the URL")
        self._opening: Future[dict[str, Any]] | None = None
        self._opened_at = float("-inf")  # on the monotonic clock
        self._timer = QTimer(self)
        self._timer.setInterval(_LOOK_EVERY)
        self._timer.timeout.connect(self._look)
        self.column.setSpacing(8)
        self._build()

    def _build(self) -> None:
        page = self._page
        self._show_host()
        for warning in page.warnings:
            self.column.addWidget(ToneLabel(f"WARNING: {warning}", "warning", bold=True))
        self.column.addWidget(ToneLabel("Open this URL to continue:"))
        self.column.addWidget(self.url)
        if page.is_misleading:
            self.agreed = QCheckBox("I have &looked at the host and want to go there")
            self.agreed.toggled.connect(self.open_button.setEnabled)
            self.open_button.setEnabled(False)
            self.column.addWidget(self.agreed)
        buttons = QHBoxLayout()
        for button in (self.open_button, self.copy_button):
            button.setAutoDefault(False)
            buttons.addWidget(button)
        buttons.addStretch(1)
        self.column.addLayout(buttons)
        self.column.addWidget(self.told)
        self.column.addStretch(1)
        self.open_button.clicked.connect(self.open)
        self.copy_button.clicked.connect(self.copy)

    def _show_host(self) -> None:
        page, before = self._page, len("Host: ")
        font = self.host.font()
        font.setPointSizeF(font.pointSizeF() * 1.25)
        self.host.setFont(font)
        end = before + len(page.host.rstrip("."))
        self.host.stand_out(end - len(page.site), end)
        self.column.addWidget(self.host)
        if page.site != page.host:
            self.column.addWidget(ToneLabel(f"This host belongs to: {page.site}"))

    def begin(self) -> None:
        """Puts the keyboard where no key does anything but read."""
        self.host.setFocus()

    def stop(self) -> None:
        """Tells no more of what becomes of opening the page."""
        self._timer.stop()

    def copy(self) -> None:
        QGuiApplication.clipboard().setText(self._page.href)
        self._tell("The URL was copied.")

    def open(self) -> None:
        """Opens the page; only ever called by a click or a key on the button."""
        now = time.monotonic()
        if self._opening is not None or not self.open_button.isEnabled() or now - self._opened_at < _AGAIN_AFTER:
            return
        self._opened_at = now
        if self._opener is not None:
            self._opened(open_authorization_url(self._page.href, None, self._opener))
            return
        self.open_button.setEnabled(False)
        self._opening = Future()
        arguments = (self._page.href, self._opening)
        threading.Thread(target=_open, args=arguments, name="gopher-mcp-browser", daemon=True).start()
        self._timer.start()

    def _look(self) -> None:
        if self._opening is not None and self._opening.done():
            self._timer.stop()
            result, self._opening = self._opening.result(), None
            self.open_button.setEnabled(True)
            self._opened(result)

    def _opened(self, result: dict[str, Any]) -> None:
        self._tell(opening(None if result.get("opened") else str(result.get("reason") or "")).strip())

    def _tell(self, text: str) -> None:
        self.told.say(text)
        self.told.setVisible(True)
        self.told.setAccessibleName(text)


def _open(href: str, opening: Future[dict[str, Any]]) -> None:
    try:
        opening.set_result(open_authorization_url(href))
    except Exception as error:
        opening.set_result({"opened": False, "reason": f"the browser could not be started ({type(error).__name__})"})
