"""What comes to a window from outside, sent to the native window as the system sends it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QProgressDialog, QWidget
from shiboken6 import Shiboken

from gopher_mcp_python.handlers.qt import window_guard
from gopher_mcp_python.handlers.qt.dialog import McpElicitationDialog
from tests.support import desk

from .dialogs import Show, settle

pytestmark = pytest.mark.usefixtures("no_window_left")

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}


def middle(dialog: McpElicitationDialog, button: QAbstractButton) -> QPoint:
    where: QPoint = button.mapTo(dialog, button.rect().center())
    return where


def click(dialog: McpElicitationDialog, button: QAbstractButton) -> None:
    QTest.mouseClick(dialog.windowHandle(), Qt.MouseButton.LeftButton, pos=middle(dialog, button))


def double_click(dialog: McpElicitationDialog, button: QAbstractButton) -> None:
    QTest.mouseDClick(dialog.windowHandle(), Qt.MouseButton.LeftButton, pos=middle(dialog, button))


NONE = Qt.KeyboardModifier.NoModifier


def key(dialog: McpElicitationDialog, code: Qt.Key, held: Qt.KeyboardModifier = NONE) -> None:
    QTest.keyClick(dialog.windowHandle(), code, held)


# ---- what was meant for another window -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "act",
    [
        lambda dialog: key(dialog, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier),
        lambda dialog: key(dialog, Qt.Key.Key_G, Qt.KeyboardModifier.AltModifier),  # A&gree
        lambda dialog: key(dialog, Qt.Key.Key_Escape),
        lambda dialog: click(dialog, dialog._footer.send),
        lambda dialog: double_click(dialog, dialog._footer.send),
        lambda dialog: click(dialog, dialog._footer.decline),
    ],
    ids=["Ctrl+Enter", "Alt+G", "Esc", "click", "double click", "click on Decline"],
)
def test_a_window_that_came_up_just_now_is_not_answered(
    act: Callable[[McpElicitationDialog], None], show: Show, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window_guard, "HELD_FOR", 3600.0)
    dialog = show(requested_schema={"type": "object", "properties": {}})
    act(dialog)
    settle()
    assert not dialog.is_answered
    dialog._guard.release()
    act(dialog)
    desk.wait_until(lambda: dialog.is_answered)  # Alt+G presses for a moment, as Qt has it


def test_nor_is_a_field_of_it(show: Show, monkeypatch: pytest.MonkeyPatch) -> None:
    """The keyboard is at the first field, where the space key says "yes"."""
    monkeypatch.setattr(window_guard, "HELD_FOR", 3600.0)
    dialog = show(requested_schema=SCHEMA)
    key(dialog, Qt.Key.Key_Space)
    assert dialog._model["sure"].state == "omitted"
    dialog._guard.release()
    key(dialog, Qt.Key.Key_Space)
    assert dialog._model["sure"].value is True


def test_a_page_is_not_opened_by_a_click_for_another_window(show: Show, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(window_guard, "HELD_FOR", 3600.0)
    dialog = show(mode="url", url="https://pay.example.com/x", opener=opened.append)
    click(dialog, dialog._view.open_button)
    assert opened == []
    dialog._guard.release()
    click(dialog, dialog._view.open_button)
    assert opened == ["https://pay.example.com/x"]


def test_it_holds_for_a_moment_only(show: Show) -> None:
    dialog = show(requested_schema={"type": "object", "properties": {}})
    assert dialog._guard.is_holding
    desk.wait_until(lambda: not dialog._guard.is_holding)
    click(dialog, dialog._footer.send)
    assert dialog.action == "accept"


# ---- dialogs of the program ------------------------------------------------------------------------------------------


@pytest.fixture
def main(no_window_left: None) -> Iterator[QWidget]:
    """The program's window; ask for it before everything that belongs to it."""
    window = QWidget()
    window.show()
    yield window
    window.deleteLater()
    settle()


@pytest.fixture
def locking() -> Iterator[Callable[..., QWidget]]:
    """A dialog of the program that locks its windows, all or that of its parent."""
    found: list[QWidget] = []

    def made(modality: Qt.WindowModality, parent: QWidget | None = None) -> QWidget:
        busy = QProgressDialog("Working ...", "Stop", 0, 0, parent)
        busy.setWindowModality(modality)
        busy.show()
        found.append(busy)
        desk.wait_until(busy.isVisible)
        return busy

    yield made
    for one in found:
        if Shiboken.isValid(one):
            one.close()
            one.deleteLater()
    found.clear()
    settle()


@pytest.mark.parametrize("is_first", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("modality", [Qt.WindowModality.ApplicationModal, Qt.WindowModality.WindowModal])
def test_a_modal_dialog_does_not_lock_it(
    is_first: bool, modality: Qt.WindowModality, main: QWidget, show: Show, locking: Callable[..., QWidget]
) -> None:
    """It may be waiting for this very answer."""
    if is_first:
        locking(modality, main)
    dialog = show(requested_schema={"type": "object", "properties": {}}, parent=main)
    if not is_first:
        locking(modality, main)
    assert QGuiApplication.modalWindow() is not None
    dialog._guard.release()
    click(dialog, dialog._footer.send)
    assert dialog.action == "accept"


def test_it_stays_when_the_modal_dialog_goes(show: Show, locking: Callable[..., QWidget]) -> None:
    busy = locking(Qt.WindowModality.ApplicationModal)
    dialog = show(requested_schema={"type": "object", "properties": {}})
    busy.close()
    busy.deleteLater()
    settle()
    assert dialog.isVisible() and not dialog.is_answered
    dialog._guard.release()
    click(dialog, dialog._footer.decline)
    assert dialog.action == "decline"


def test_a_modal_dialog_that_belongs_to_it_locks_it(show: Show, locking: Callable[..., QWidget]) -> None:
    dialog = show(requested_schema={"type": "object", "properties": {}})
    busy = locking(Qt.WindowModality.WindowModal, dialog)
    dialog._guard.release()
    click(dialog, dialog._footer.send)
    assert not dialog.is_answered
    busy.close()
    click(dialog, dialog._footer.send)
    assert dialog.is_answered


def test_a_program_that_disables_its_window_while_it_works(main: QWidget, show: Show) -> None:
    main.setEnabled(False)
    dialog = show(requested_schema={"type": "object", "properties": {}}, parent=main)
    assert dialog.isEnabled()
    main.setEnabled(True)
    main.setEnabled(False)
    dialog._guard.release()
    click(dialog, dialog._footer.send)
    assert dialog.action == "accept"
