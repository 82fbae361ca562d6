"""Pages in the dialog: where they lead stands out, and nothing is opened without a click."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QGuiApplication, QTextCursor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton

from gopher_mcp_python.handlers.qt import url_view
from gopher_mcp_python.handlers.qt.dialog import McpElicitationDialog
from gopher_mcp_python.handlers.qt.style import ToneLabel

from .dialogs import Show, settle

pytestmark = pytest.mark.usefixtures("no_window_left")
PLAIN = "https://accounts.calendar.example.com/connect?state=1"
AT_SIGN = "https://accounts.google.com@evil.example/x"


class Opener:
    """Notes what it was to open."""

    def __init__(self, result: object = True) -> None:
        self.opened: list[str] = []
        self._result = result

    def __call__(self, url: str) -> object:
        self.opened.append(url)
        if isinstance(self._result, Exception):
            raise self._result
        return self._result


def texts(dialog: McpElicitationDialog) -> list[str]:
    labels: list[ToneLabel] = dialog.findChildren(ToneLabel)
    return [label.text().replace("\u200b", "") for label in labels if not label.isHidden()]


def emphasised(dialog: McpElicitationDialog) -> str:
    """The part of the host line that stands out."""
    block, found = dialog._view.host, ""
    for position in range(1, len(block.toPlainText()) + 1):
        cursor = QTextCursor(block.document())
        cursor.setPosition(position)
        if cursor.charFormat().fontWeight() == QFont.Weight.Bold:
            found += block.toPlainText()[position - 1]
    return found


@pytest.mark.parametrize(
    ("url", "host", "site"),
    [
        (PLAIN, "accounts.calendar.example.com", "example.com"), ("http://localhost:8080/", "localhost", "localhost"),
        ("https://user.github.io/x", "user.github.io", "user.github.io"), (AT_SIGN, "evil.example", "evil.example"),
        ("https://xn--pple-43d.com/", "xn--pple-43d.com", "xn--pple-43d.com"), ("https://[::1]/", "[::1]", "[::1]"),
        ("https://аpple.com/", "xn--pple-43d.com", "xn--pple-43d.com"),
        ("https://login.example.com.evil.test/", "login.example.com.evil.test", "evil.test"),
        ("https://a.example.co.uk./", "a.example.co.uk.", "example.co.uk"),
    ],
)  # fmt: skip
def test_where_it_leads_stands_on_a_line_of_its_own(show: Show, url: str, host: str, site: str) -> None:
    dialog = show(mode="url", url=url)
    assert dialog._view.host.toPlainText() == f"Host: {host}" and emphasised(dialog) == site
    assert (f"This host belongs to: {site}" in texts(dialog)) == (site != host)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (AT_SIGN, "before an @ sign"), ("https://xn--pple-43d.com/", "can look like another one"),
        ("https://аpple.com/", "can look like another one"), ("https://login.example.com.evil.test/", "begins like"),
        ("https://0x7f.1/", "unusual spelling"),
    ],
)  # fmt: skip
def test_what_misleads_is_told_and_opened_after_a_click_of_its_own(show: Show, url: str, said: str) -> None:
    opener = Opener()
    dialog = show(mode="url", url=url, opener=opener)
    assert any(text.startswith("WARNING: ") and said in text for text in texts(dialog))
    view = dialog._view
    view.open_button.click()
    view.open()
    assert opener.opened == [] and not view.open_button.isEnabled()
    view.agreed.click()
    view.open_button.click()
    assert len(opener.opened) == 1 and opener.opened[0].isascii()
    assert not dialog.is_answered


def test_what_is_only_unsafe_on_the_way_is_told_and_opened(show: Show) -> None:
    opener = Opener()
    dialog = show(mode="url", url="http://pay.example.com/", opener=opener)
    assert any("http, not https" in text for text in texts(dialog)) and dialog._view.agreed is None
    dialog._view.open_button.click()
    assert opener.opened == ["http://pay.example.com/"]


def test_nothing_is_opened_by_itself_or_by_a_key_that_was_on_its_way(show: Show) -> None:
    opener = Opener()
    dialog = show(mode="url", url=PLAIN, opener=opener)
    for key in (Qt.Key.Key_Return, Qt.Key.Key_Space, Qt.Key.Key_O, Qt.Key.Key_Y):
        QTest.keyClick(dialog.focusWidget(), key)
    settle()
    assert opener.opened == [] and not dialog.is_answered


def test_it_is_opened_by_keyboard_too(show: Show) -> None:
    opener = Opener()
    dialog = show(mode="url", url=PLAIN, opener=opener)
    visited = []
    while dialog.focusWidget() is not dialog._view.open_button:
        visited.append(dialog.focusWidget())
        QTest.keyClick(dialog.focusWidget(), Qt.Key.Key_Tab)
        assert len(visited) < 20
    assert visited[0] is dialog._view.host and dialog._view.url in visited
    QTest.keyClick(dialog.focusWidget(), Qt.Key.Key_Space)
    assert opener.opened == [PLAIN]


def test_a_double_click_opens_it_once(show: Show, monkeypatch: pytest.MonkeyPatch) -> None:
    opener = Opener()
    monkeypatch.setattr(url_view, "_AGAIN_AFTER", 3600.0)
    dialog = show(mode="url", url=PLAIN, opener=opener)
    QTest.mouseClick(dialog._view.open_button, Qt.MouseButton.LeftButton)
    QTest.mouseDClick(dialog._view.open_button, Qt.MouseButton.LeftButton)
    assert opener.opened == [PLAIN]
    monkeypatch.setattr(url_view, "_AGAIN_AFTER", 0.0)
    QTest.mouseClick(dialog._view.open_button, Qt.MouseButton.LeftButton)
    assert opener.opened == [PLAIN, PLAIN]


def test_what_is_opened_is_written_anew(show: Show) -> None:
    opener = Opener()
    dialog = show(mode="url", url="HTTPS://Pay.Example.COM/a b?q=é'\"|`$(x)", opener=opener)
    dialog._view.open_button.click()
    dialog._view.copy_button.click()
    (href,) = opener.opened
    assert href.startswith("https://pay.example.com/a%20b?q=%C3%A9") and not set(href) & set(" \"|`<>")
    assert dialog._view.url.toPlainText() == QGuiApplication.clipboard().text() == href


@pytest.mark.parametrize(
    ("result", "said"),
    [(True, "It was opened in your browser"), (False, "No browser was opened: the browser could not be started"),
     (OSError("https://secret.test/?token=1"), "No browser was opened")],
)  # fmt: skip
def test_what_became_of_opening_is_told(show: Show, result: object, said: str) -> None:
    dialog = show(mode="url", url=PLAIN, opener=Opener(result))
    dialog._view.open_button.click()
    assert dialog._view.told.text().replace("\u200b", "").startswith(said)
    assert "token" not in dialog._view.told.text() and not dialog.is_answered


@pytest.mark.skipif(sys.platform == "win32", reason="BROWSER is a POSIX convention")
def test_without_an_opener_it_goes_to_the_person_s_browser(
    show: Show, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: Any
) -> None:
    script, visited = tmp_path / "browser", tmp_path / "visited"
    script.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> {visited}\n')
    script.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(script))
    dialog = show(mode="url", url=PLAIN)
    dialog._view.open_button.click()
    assert not dialog._view.open_button.isEnabled()
    qtbot.waitUntil(dialog._view.told.isVisible, timeout=30_000)
    assert dialog._view.told.text().startswith("It was opened") and dialog._view.open_button.isEnabled()
    assert visited.read_text() == f"{PLAIN}\n"


def test_no_browser_is_told_with_its_reason(show: Show, monkeypatch: pytest.MonkeyPatch, qtbot: Any) -> None:
    monkeypatch.delenv("BROWSER", raising=False)
    monkeypatch.setenv("SSH_CONNECTION", "1 2 3 4")
    dialog = show(mode="url", url=PLAIN)
    dialog._view.open_button.click()
    qtbot.waitUntil(dialog._view.told.isVisible, timeout=30_000)
    assert "SSH session" in dialog._view.told.text()


@pytest.mark.parametrize(
    "url",
    ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "vscode://x", " http://a.test/", "\x01http://a/"],
)
def test_unsafe_addresses_are_shown_and_lead_nowhere(show: Show, url: str) -> None:
    dialog = show(mode="url", url=url)
    (block,) = (block for block in dialog.findChildren(type(dialog._header.message)) if block.accessibleName() ==
                "The refused URL")  # fmt: skip
    assert block.toPlainText().strip() == url.strip().replace("\x01", "\\x01")
    assert block.textInteractionFlags() == Qt.TextInteractionFlag.NoTextInteraction
    labels = {button.text().replace("&", "") for button in dialog.findChildren(QPushButton)}
    assert labels == {"Decline", "Cancel"}
    QTest.keyClick(dialog, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert not dialog.is_answered


def test_a_url_of_5000_characters_is_whole_and_the_buttons_stay(show: Show) -> None:
    url = "https://pay.example.com/?q=" + "x" * 5000
    dialog = show(mode="url", url=url)
    block = dialog._view.url
    assert block.toPlainText() == url and block.verticalScrollBar().maximum() > 0
    assert block.horizontalScrollBar().maximum() == 0
    assert block.textInteractionFlags() & Qt.TextInteractionFlag.TextSelectableByKeyboard
    for button in (dialog._footer.send, dialog._footer.decline, dialog._footer.cancel):
        assert dialog.rect().contains(button.geometry().translated(dialog._footer.pos()))


def test_the_warning_about_credentials_stands_there(show: Show) -> None:
    dialog = show(mode="url", url=PLAIN)
    assert dialog._header.warning.isVisible()
    assert dialog._header.warning.text().startswith("Never give a password, a key or other credentials")


def test_escape_cancels_and_a_closed_window_tells_no_more(show: Show) -> None:
    dialog = show(mode="url", url=PLAIN)
    QTest.keyClick(dialog.focusWidget(), Qt.Key.Key_Escape)
    assert dialog.is_answered and dialog.action == "cancel"
