"""How the dialog looks: readable in light and dark, on small screens, and in scripts that begin on the right."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QColor, QImage, QPalette
from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QWidget

from gopher_mcp_python.handlers.qt.dialog import McpElicitationDialog
from gopher_mcp_python.handlers.qt.style import ToneLabel, breakable, contrast, is_right_to_left, tone_color, tooltip

from .dialogs import Show, settle

pytestmark = pytest.mark.usefixtures("no_window_left")
STRING: dict[str, Any] = {"type": "string"}
DARK, LIGHT, SEPIA, BLUE = (QColor(name) for name in ("#2b2b2b", "#f5f5f5", "#f4ecd8", "#00005a"))
EVERYTHING: dict[str, Any] = {
    "type": "object",
    "properties": {
        "a": {**STRING, "minLength": 3, "default": "x\u200b", "description": "Of the house."}, "token": STRING,
        "b": {"type": "boolean"}, "c": {"enum": [f"option {n}" for n in range(99)]},
    },
    "required": ["b"],
}  # fmt: skip


@pytest.fixture
def palette(qapp: QApplication) -> Iterator[Any]:
    before = QPalette(qapp.palette())
    yield qapp.setPalette
    qapp.setPalette(before)
    settle()


def contrasts(dialog: McpElicitationDialog) -> dict[str, float]:
    """The contrast of every label's text to the window behind it."""
    labels: list[QLabel] = dialog.findChildren(QLabel)
    return {
        label.text(): contrast(label.palette().color(QPalette.ColorRole.WindowText), dialog.palette().color(
            QPalette.ColorRole.Window)) for label in labels if label.text()
    }  # fmt: skip


# ---- colours ---------------------------------------------------------------------------------------------------------


def test_contrast_is_that_of_the_guideline() -> None:
    black, white, grey = QColor(0, 0, 0), QColor(255, 255, 255), QColor(0x77, 0x77, 0x77)
    assert round(contrast(black, white), 2) == round(contrast(white, black), 2) == 21
    assert round(contrast(grey, white), 2) == 4.48  # the well-known grey that is just too light
    assert contrast(grey, grey) == 1


@pytest.mark.parametrize("ground", [DARK, LIGHT, SEPIA, BLUE, QColor("black"), QColor("white")], ids=lambda c: c.name())
@pytest.mark.parametrize("tone", ["muted", "warning", "error"])
def test_every_tone_can_be_read_on_every_palette(ground: QColor, tone: Any) -> None:
    palette = QPalette(ground)
    color = tone_color(tone, palette)
    for role in (QPalette.ColorRole.Window, QPalette.ColorRole.Base):
        assert contrast(color, palette.color(role)) >= 4.5


@pytest.mark.parametrize("ground", [DARK, LIGHT], ids=["dark", "light"])
def test_everything_can_be_read(show: Show, palette: Any, ground: QColor) -> None:
    palette(QPalette(ground))
    dialog = show(requested_schema=EVERYTHING)
    dialog._footer.send.click()
    labels: list[ToneLabel] = [label for label in dialog.findChildren(ToneLabel) if label.isVisible()]
    assert {label.tone for label in labels} == {"plain", "muted", "warning", "error"}
    for label in labels:
        assert label.palette().color(QPalette.ColorRole.WindowText) == tone_color(label.tone, dialog.palette())
    found = contrasts(dialog)
    assert len(found) > 10 and min(found.values()) >= 4.5, found


def test_it_follows_the_desktop_from_light_to_dark(show: Show, palette: Any) -> None:
    palette(QPalette(LIGHT))
    dialogs = [show(requested_schema=EVERYTHING), show(mode="url", url="https://a.test@evil.test/")]
    dialogs[0]._footer.send.click()
    palette(QPalette(DARK))
    settle()
    for dialog in dialogs:
        assert min(contrasts(dialog).values()) >= 4.5
        assert dialog.palette().color(QPalette.ColorRole.Window) == DARK


def test_the_parent_s_own_colours_count(show: Show) -> None:
    parent = QWidget()
    parent.setPalette(QPalette(DARK))
    dialog = show(requested_schema=EVERYTHING, parent=parent)
    dialog.setPalette(QPalette(DARK))
    dialog._footer.send.click()
    assert min(contrasts(dialog).values()) >= 4.5
    dialog.close()
    parent.deleteLater()


# ---- small screens ---------------------------------------------------------------------------------------------------


def inside(dialog: McpElicitationDialog, widget: QWidget) -> bool:
    return dialog.rect().contains(QRect(widget.mapTo(dialog, QPoint(0, 0)), widget.size()))


@pytest.mark.parametrize("message", ["Please.", "A long story. " * 400])
def test_40_fields_on_600_pixels(show: Show, message: str) -> None:
    names = [f"field{number}" for number in range(40)]
    schema = {"type": "object", "properties": dict.fromkeys(names, STRING), "required": names, "description": message}
    dialog = show(requested_schema=schema, lasting=("session",))
    dialog.resize(500, 560)
    dialog._footer.send.click()
    dialog.set_time_left(30)
    settle()
    assert (dialog.width(), dialog.height()) == (500, 560)
    for widget in (*dialog.findChildren(QPushButton), dialog._header.sentence, dialog._header.warning):
        assert widget.isVisible() and inside(dialog, widget)
    assert dialog._view.verticalScrollBar().maximum() > 0
    assert dialog._view.height() >= 80 and dialog._view.horizontalScrollBar().maximum() == 0


def test_it_opens_no_larger_than_the_screen(show: Show) -> None:
    room = QApplication.primaryScreen().availableGeometry()
    schema = {"type": "object", "properties": {f"f{n}": STRING for n in range(100)}, "description": "Words. " * 3000}
    for dialog in (show(requested_schema=schema), show(mode="url", url="https://a.test/" + "x" * 9000)):
        assert dialog.width() <= room.width() and dialog.height() <= room.height()


def test_a_short_form_opens_with_all_of_it(show: Show) -> None:
    dialog = show(requested_schema={"type": "object", "properties": {"a": STRING, "b": {"type": "boolean"}}})
    assert dialog._view.verticalScrollBar().maximum() == 0
    dialog = show(mode="url", url="https://accounts.google.com@login.example.com.evil.test/x")
    assert dialog._view.verticalScrollBar().maximum() == 0


def test_words_without_end_make_no_window_wider(show: Show) -> None:
    long = "x" * 5000
    schema = {
        "type": "object", "title": long[:1000], "description": long,
        "properties": {"a": {**STRING, "title": long[:1000], "description": long, "pattern": "x" * 1000},
                       "b": {"enum": [long[:1000], "y"]},
                       "c": {"type": "array", "items": {"enum": [long[:1000], "y"]}}},
        "required": ["a"],
    }  # fmt: skip
    dialog = show(requested_schema=schema, server=long, tool=long)
    dialog._footer.send.click()
    dialog.resize(420, 500)
    settle()
    assert dialog.width() == 420 and dialog._view.horizontalScrollBar().maximum() == 0
    for row in dialog._view.rows:
        assert row.width() <= dialog._view.viewport().width()


@pytest.mark.parametrize("name", ["double-size", "right-to-left", "look-alike", "two"])
def test_the_pictures_of_the_documentation_can_be_drawn(name: str, tmp_path: Path) -> None:
    environ = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "QT_SCALE_FACTOR": "2" if name == "double-size" else "1"}
    command = [sys.executable, "-m", "tests.qt.draw_screenshots", name, str(tmp_path)]
    subprocess.run(command, env=environ, check=True, timeout=120, cwd=Path(__file__).parents[2])
    image = QImage(str(tmp_path / f"desktop-{name}.png"))
    colors = {image.pixel(x, y) for x in range(0, image.width(), 3) for y in range(0, image.height(), 3)}
    assert image.width() > 300 and len(colors) > 10


# ---- scripts ---------------------------------------------------------------------------------------------------------


def test_text_stands_where_its_language_begins(show: Show) -> None:
    schema = {"type": "object", "properties": {"a": {**STRING, "title": "שם", "description": "עברית", "minLength": 2},
                                               "b": {**STRING, "title": "Name"}}}  # fmt: skip
    dialog = show(requested_schema=schema)
    hebrew, english = dialog._view.rows
    assert hebrew.layoutDirection() == Qt.LayoutDirection.RightToLeft
    assert english.layoutDirection() == Qt.LayoutDirection.LeftToRight
    right, left = Qt.AlignmentFlag.AlignRight, Qt.AlignmentFlag.AlignLeft
    assert all(label.alignment() & right for label in hebrew.findChildren(ToneLabel))
    assert all(label.alignment() & left for label in english.findChildren(ToneLabel))
    assert dialog._header.sentence.alignment() & left
    assert is_right_to_left("123 عربي") and not is_right_to_left("abc עברית") and not is_right_to_left("123")


def test_long_words_can_break_and_markup_is_none() -> None:
    assert breakable("x" * 60).replace("\u200b", "") == "x" * 60 and "\u200b" in breakable("x" * 60)
    assert breakable("short words only") == "short words only"
    assert tooltip("<b>a&b</b>\u202e").count("<") == 2 and "&lt;b&gt;a&amp;b" in tooltip("<b>a&b</b>")
