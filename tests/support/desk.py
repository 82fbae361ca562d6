"""The person before the windows: finds the prompts that are open, types into them, presses their buttons.

All of it on the GUI thread; `Asking` is the thread on which a handler waits.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QLineEdit, QPlainTextEdit

from gopher_mcp_python import GopherAgentElicitationRequest
from gopher_mcp_python.handlers.qt import McpElicitationDialog

LONG = 30.0  # seconds in which anything has happened
FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name"],
}


def form(message: str = "Who is it?", schema: Any = None, **more: Any) -> GopherAgentElicitationRequest:
    more = {"server": "files.test", "tool": "move", **more}
    return GopherAgentElicitationRequest(
        "form", None, message, None, "1", "{}", "{}", requested_schema=schema or FORM, **more
    )


def page(url: str = "https://provider.test/authorize", message: str = "Sign in.") -> GopherAgentElicitationRequest:
    return GopherAgentElicitationRequest("url", "e-1", message, url, "1", "{}", "{}", server="files.test", tool="move")


# ---- looking ---------------------------------------------------------------------------------------------------------


def prompts() -> list[McpElicitationDialog]:
    """The open ones."""
    tops = QApplication.topLevelWidgets()
    return [top for top in tops if isinstance(top, McpElicitationDialog) and top.isVisible()]


def message_of(dialog: McpElicitationDialog) -> str:
    texts = [text.toPlainText() for text in dialog.findChildren(QPlainTextEdit)
             if text.accessibleName() == "What the server says"]  # fmt: skip
    return texts[0] if texts else ""


def labels_of(dialog: McpElicitationDialog) -> list[str]:
    return [label.text().replace("\u200b", "") for label in dialog.findChildren(QLabel) if label.isVisible()]


def wait_until(true: Callable[[], Any], seconds: float = LONG) -> Any:
    """Serves the application's events until something is so, and returns it."""
    end = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < end, f"not within {seconds} s; open: {[message_of(one) for one in prompts()]}"
        QTest.qWait(5)
    return found


def wait_for(count: int = 1) -> list[McpElicitationDialog]:
    """That many open prompts."""
    wait_until(lambda: len(prompts()) == count)
    return prompts()


def wait_for_one(message: str) -> McpElicitationDialog:
    """The open prompt that says so."""
    found = wait_until(lambda: [one for one in prompts() if message_of(one) == message])
    return found[0]  # type: ignore[no-any-return]


def nothing_left() -> bool:
    """Whether no prompt exists any more, seen or unseen."""
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    return not [top for top in QApplication.topLevelWidgets() if isinstance(top, McpElicitationDialog)]


# ---- doing -----------------------------------------------------------------------------------------------------------


def fill(dialog: McpElicitationDialog, label: str, text: str) -> None:
    lines = [line for line in dialog.findChildren(QLineEdit) if line.accessibleName().startswith(label)]
    assert lines, [line.accessibleName() for line in dialog.findChildren(QLineEdit)]
    QTest.keyClicks(lines[0], text)


def press(dialog: McpElicitationDialog, text: str) -> None:
    found = [button for button in dialog.findChildren(QAbstractButton) if button.text().replace("&", "") == text]
    assert found, [button.text() for button in dialog.findChildren(QAbstractButton)]
    found[0].click()


def send_name(dialog: McpElicitationDialog, name: str) -> None:
    """Answers `form()`."""
    fill(dialog, "Name", name)
    press(dialog, "Send")


class Asking(threading.Thread):
    """Calls something on a thread of its own and keeps what it returns or raises."""

    def __init__(self, call: Callable[..., Any], *arguments: Any) -> None:
        super().__init__(name="asking", daemon=True)
        self._call, self._arguments = call, arguments
        self.result: Any = None
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self.result = self._call(*self._arguments)
        except BaseException as error:
            self.error = error

    def outcome(self) -> Any:
        """What came of it, the events being served meanwhile."""
        wait_until(lambda: not self.is_alive())
        self.join()
        if self.error is not None:
            raise self.error
        return self.result
