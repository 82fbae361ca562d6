"""Draws the pictures of docs/desktop.md from the real windows.

    QT_QPA_PLATFORM=offscreen python -m tests.qt.draw_screenshots [FOLDER]

Each is drawn in a process of its own, as the scale is a matter of the process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PySide6.QtCore import QPoint
from PySide6.QtGui import QColor, QImage, QPainter, QPalette, QPixmap
from PySide6.QtWidgets import QApplication, QWidget

from gopher_mcp_python.elicitation import GopherAgentElicitationRequest as Request
from gopher_mcp_python.handlers.qt.dialog import McpElicitationDialog

FOLDER = Path(__file__).parents[2] / "docs" / "images"
FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Project name", "minLength": 3, "maxLength": 40,
                 "description": "Shown to everybody who may see the project."},
        "license": {"type": "string", "oneOf": [{"const": "apache", "title": "Apache License 2.0"},
                                                {"const": "mit", "title": "MIT License"}], "default": "apache"},
        "public": {"type": "boolean", "title": "Visible to everybody"},
        "topics": {"type": "array", "items": {"enum": ["agents", "desktop", "protocol"]}, "maxItems": 2},
        "due": {"type": "string", "format": "date", "title": "Due date"},
        "apiKey": {"type": "string", "title": "API key"},
    },
    "required": ["name", "public"],
}  # fmt: skip
RIGHT_TO_LEFT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "שם הפרויקט", "minLength": 3,
                 "description": "השם יוצג לכל מי שרואה את הפרויקט."},
        "public": {"type": "boolean", "title": "גלוי לכולם"},
        "language": {"type": "string", "title": "اللغة", "oneOf": [{"const": "ar", "title": "العربية"},
                                                                   {"const": "he", "title": "עברית"}], "default": "ar"},
    },
    "required": ["name"],
}  # fmt: skip


def form(schema: dict[str, Any] = FORM, message: str = "The new project needs a name and a license.") -> Any:
    request = Request("form", message=message, requested_schema=schema, tool="create_project")
    return McpElicitationDialog("projects.example.com", request, lasting=("session", "always"))


def page(url: str) -> Any:
    request = Request("url", message="Connect your calendar, so that I can find a free hour.", url=url)
    return McpElicitationDialog("calendar.example.com", request, opener=lambda _: True)


def shown(dialog: Any) -> Any:
    dialog.show()
    QApplication.processEvents()
    return dialog


def errors() -> QPixmap:
    dialog = shown(form())
    row = dialog._view.row("name")
    row.editor.line.setText("Qt")
    row.editor.line.textEdited.emit("Qt")
    dialog._view.row("topics").editor.boxes[0].click()
    dialog._footer.send.click()
    dialog.set_time_left(95)
    return pictured(dialog)


def two() -> QPixmap:
    """Both windows as they stand on a screen, the newer one in front."""
    windows = [shown(page("https://calendar.example.com/connect?state=8f2c")), shown(form())]
    pictures = [window.grab() for window in windows]
    offset = QPoint(70, 60)
    width = max(pictures[0].width(), pictures[1].width() + offset.x())
    height = max(pictures[0].height(), pictures[1].height() + offset.y())
    whole = QPixmap(width + 20, height + 20)
    whole.fill(QColor(0x5B, 0x6B, 0x7B))
    painter = QPainter(whole)
    for picture, corner in zip(pictures, (QPoint(10, 10), offset), strict=True):
        painter.fillRect(picture.rect().translated(corner).adjusted(-1, -1, 1, 1), QColor(0x30, 0x30, 0x30))
        painter.drawPixmap(corner, picture)
    painter.end()
    return whole


def dark() -> QPixmap:
    palette = QPalette(QColor(0x38, 0x38, 0x38))
    palette.setColor(QPalette.ColorRole.Base, QColor(0x1B, 0x1B, 0x1B))
    QApplication.setPalette(palette)
    return errors()


def pictured(dialog: Any) -> QPixmap:
    QApplication.processEvents()
    picture: QPixmap = dialog.grab()
    return picture


PICTURES: dict[str, Callable[[], QPixmap]] = {
    "form": lambda: pictured(shown(form())),
    "errors": errors,
    "url": lambda: pictured(shown(page("https://accounts.calendar.example.com/connect?scope=read&state=8f2c71d0"))),
    "look-alike": lambda: pictured(shown(page("https://accounts.google.com@login.example.com.evil.test/connect?x=1"))),
    "two": two,
    "dark": dark,
    "double-size": errors,
    "right-to-left": lambda: pictured(shown(form(RIGHT_TO_LEFT, "הפרויקט החדש צריך שם ושפה."))),
}


def draw(name: str, folder: Path) -> None:
    application = QApplication.instance() or QApplication([])
    picture = PICTURES[name]()
    folder.mkdir(parents=True, exist_ok=True)
    image = picture.toImage().convertToFormat(QImage.Format.Format_RGB32)
    assert image.save(str(folder / f"desktop-{name}.png"), "PNG", 0)  # 0: as small as it can be
    for window in application.topLevelWidgets() if isinstance(application, QApplication) else []:
        assert isinstance(window, QWidget)
        window.deleteLater()


def main() -> None:
    if len(sys.argv) == 3:
        draw(sys.argv[1], Path(sys.argv[2]))
        return
    folder = Path(sys.argv[1]) if len(sys.argv) == 2 else FOLDER
    for name in PICTURES:
        scale = "2" if name == "double-size" else "1"
        environ = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "QT_SCALE_FACTOR": scale}
        command = [sys.executable, "-m", "tests.qt.draw_screenshots", name, str(folder)]
        subprocess.run(command, env=environ, check=True, cwd=Path(__file__).parents[2])


if __name__ == "__main__":
    main()
