"""The dialog on its own: a fixture that shows it, and a guard that no test leaves a window behind."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from gopher_mcp_python.elicitation import GopherAgentElicitationRequest
from gopher_mcp_python.handlers.qt.dialog import McpElicitationDialog

Show = Callable[..., McpElicitationDialog]


def settle() -> None:
    """Handles what is waiting, deletions included."""
    QCoreApplication.processEvents()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    QCoreApplication.processEvents()


@pytest.fixture(scope="session")
def warm_windows(qapp: QApplication) -> None:
    """Qt keeps a few descriptors from its first window and its first timer on, which are nobody's leak."""
    window = QWidget()
    window.show()
    QTest.qWait(1)
    QGuiApplication.clipboard().setText("")
    window.deleteLater()
    settle()


@pytest.fixture
def no_window_left(warm_windows: None, qapp: QApplication) -> Iterator[None]:
    yield
    settle()
    gc.collect()
    settle()
    left = qapp.topLevelWidgets()
    for window in left:
        window.deleteLater()
    settle()
    assert not left, f"this test left windows behind: {', '.join(type(window).__name__ for window in left)}"


@pytest.fixture
def show(no_window_left: None) -> Iterator[Show]:
    """Shows a dialog for `params`, or for the request that the keywords make; it is deleted after the test."""
    dialogs: list[McpElicitationDialog] = []

    def shown(params: Any = None, *, server: str = "files.example.com", **words: Any) -> McpElicitationDialog:
        own = {key: words.pop(key) for key in ("lasting", "opener", "parent") if key in words}
        if params is None:
            params = GopherAgentElicitationRequest(words.pop("mode", "form"), message="Please say.", **words)
        dialog = McpElicitationDialog(server, params, **own)
        dialogs.append(dialog)
        dialog.show()
        QCoreApplication.processEvents()
        return dialog

    yield shown
    for dialog in dialogs:
        dialog.close()
        dialog.deleteLater()
    dialogs.clear()
    settle()
