"""A desktop program for tests: a window with a line to type into, and whatever asks of its user as it is told.

    python -m tests.support.desktop

Takes JSON lines: {"ask": MESSAGE, "form": SCHEMA or "url": URL, "timeout_s": ...}; {"agent": {...}} and {"here": {...}}
as of `_run`; {"close_all": true}; {"say": WORD}; {"quit": true}. Prints a line when a request is shown (with where its
buttons are), and one with its answer.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, QPoint, QSocketNotifier, Qt, QTimer, Signal, Slot
from PySide6.QtWidgets import QAbstractButton, QApplication, QLineEdit, QPlainTextEdit

from gopher_mcp_python import GopherAgent, GopherAgentElicitationRequest
from gopher_mcp_python.handlers.qt import McpElicitationDialog, QtElicitationHandler, QtPrompt
from gopher_mcp_python.handlers.qt.window_guard import WindowGuard
from gopher_mcp_python.handlers.watch import Watch

_told = threading.Lock()


def tell(**facts: Any) -> None:
    with _told:
        print(json.dumps(facts), flush=True)


class Program(QObject):
    """On the GUI thread; commands come from the thread that reads them."""

    shown = Signal(str)

    def __init__(self, app: QApplication) -> None:
        super().__init__()
        self._app = app
        self.window = QLineEdit()
        self.window.setWindowTitle("The program")
        self.window.resize(300, 60)
        self.window.show()
        self._begun = b""
        self._commands = QSocketNotifier(0, QSocketNotifier.Type.Read, self)
        self._commands.activated.connect(self._read)
        self.shown.connect(self._tell_shown, Qt.ConnectionType.QueuedConnection)

    @Slot()
    def _read(self) -> None:
        data = os.read(0, 1 << 16)
        if not data:
            self._commands.setEnabled(False)
        *lines, self._begun = (self._begun + data).split(b"\n")
        for line in lines:
            self._obey(json.loads(line))

    def _obey(self, given: dict[str, Any]) -> None:
        if "quit" in given:
            self._app.quit()
        elif "close_all" in given:
            for top in QApplication.topLevelWidgets():
                if isinstance(top, McpElicitationDialog):
                    top.close()
        elif "say" in given:
            self._once_keys_count(lambda: tell(said=given["say"]))
        elif "here" in given:  # on the GUI thread, as a beginner would
            self._run(given["here"])
        elif "agent" in given:
            threading.Thread(target=self._run, args=(given["agent"],), daemon=True).start()
        else:
            threading.Thread(target=self._ask, args=(given,), daemon=True).start()

    def _ask(self, given: dict[str, Any]) -> None:
        schema, url = given.get("form"), given.get("url")
        request = GopherAgentElicitationRequest(
            "url" if url else "form", None, given["ask"], url, "1", "{}", "{}", server="files.test", tool="move",
            requested_schema=schema,
        )  # fmt: skip
        watch = Watch(on_shown=lambda: self.shown.emit(given["ask"]))
        answer = QtPrompt(timeout_s=given.get("timeout_s")).ask(request, watch)
        tell(answer=given["ask"], action=answer.action, content=answer.content and dict(answer.content))

    def _run(self, given: dict[str, Any]) -> None:
        """An agent of that engine and provider at that URL, with this query."""
        handler = None if given.get("by_default") else QtElicitationHandler(self.window)
        options = {"engine": given["engine"], "elicitation": {"handler": handler}}
        try:
            with GopherAgent.create_with_url(given["provider"], "scripted", given["url"], options) as agent:
                result = agent.run_detailed(given["query"])
                cause = result.elicitation_cause
                told = {"engine": agent.engine, "cause": cause and f"{type(cause).__name__}: {cause}"}
                tell(result=result.response, error=result.error_message, **told)
        except Exception as error:
            tell(result=None, error=str(error))

    @Slot(str)
    def _tell_shown(self, message: str) -> None:
        for top in QApplication.topLevelWidgets():
            if not isinstance(top, McpElicitationDialog):
                continue
            texts = [one.toPlainText() for one in top.findChildren(QPlainTextEdit)]
            if message in texts:
                buttons = {one.text().replace("&", ""): _middle(one) for one in top.findChildren(QAbstractButton)}
                facts = {"shown": message, "buttons": buttons, "window": str(int(top.winId()))}
                self._once_keys_count(lambda facts=facts: tell(**facts))

    def _once_keys_count(self, then: Callable[[], None]) -> None:
        """A new window takes no key and no click for half a second; a person is not faster."""
        tops = [top for top in QApplication.topLevelWidgets() if isinstance(top, McpElicitationDialog)]
        if any(guard.is_holding for top in tops for guard in top.findChildren(WindowGuard)):
            QTimer.singleShot(20, lambda: self._once_keys_count(then))
        else:
            then()


def _middle(button: QAbstractButton) -> tuple[int, int]:
    place = button.mapToGlobal(QPoint(button.width() // 2, button.height() // 2))
    return place.x(), place.y()


def main() -> None:
    app = QApplication(["program"])
    program = Program(app)
    tell(ready=True)
    app.exec()
    program.window.close()


if __name__ == "__main__":
    main()
