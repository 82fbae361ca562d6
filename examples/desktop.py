"""A desktop program (Qt): the agent works on a thread, and what its servers ask comes up as windows.

    pip install 'gopher-mcp-python[qt]'
    python desktop.py URL ["query"]

The query names the tool, since there is no model here. The window stays usable all the time.
"""

import signal
import sys
import threading

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QPushButton, QVBoxLayout, QWidget

from gopher_mcp_python import AgentError, GopherAgent
from gopher_mcp_python.handlers.qt import QtElicitationHandler
from gopher_mcp_python.policy import ElicitationPolicy

QUERY = "get mail profile, using get_gmail_users_get_profile"


class Window(QWidget):
    finished = Signal(str)  # emitted on the agent's thread, delivered on this one

    def __init__(self, url: str, query: str) -> None:
        super().__init__()
        self.setWindowTitle("Desktop example")
        self.url = url
        self.agent: GopherAgent | None = None
        # What the policy lets through is asked in a window that belongs to this one.
        self.handler = ElicitationPolicy().around(QtElicitationHandler(self))
        self.query = QLineEdit(query)
        self.button = QPushButton("&Run")
        self.answer = QLabel("Press Run.")
        self.answer.setWordWrap(True)
        column = QVBoxLayout(self)
        for part in (self.query, self.button, self.answer):
            column.addWidget(part)
        self.button.clicked.connect(self.start)
        self.finished.connect(self.show_answer)

    def start(self) -> None:
        self.button.setEnabled(False)
        self.answer.setText("...")
        threading.Thread(target=self.work, args=(self.query.text(),)).start()

    def work(self, query: str) -> None:
        """On a thread of its own: making an agent and running it may wait for the person, whom only the GUI thread can
        ask. Here nothing of Qt is touched but the signal."""
        try:
            options = {"elicitation": {"handler": self.handler}}
            with GopherAgent.create_with_url("DirectProvider", "direct", self.url, options) as self.agent:
                text = self.agent.run(query)
        except AgentError as error:
            text = f"It did not work: {error}"
        self.finished.emit(text)

    def show_answer(self, text: str) -> None:
        self.answer.setText(text)
        self.button.setEnabled(True)

    def stop(self) -> None:
        """The program ends: so does what the agent is doing. Open requests have been answered "cancel" by then."""
        if self.agent is not None:
            self.agent.dispose()


def main() -> int:
    if len(sys.argv) < 2:
        print("usage: desktop.py URL [QUERY]", file=sys.stderr)
        return 2
    app = QApplication(sys.argv[:1])
    window = Window(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else QUERY)
    window.resize(480, 160)
    window.show()
    # Ctrl-C ends the program; Python sees it only when some Python runs, so let some run now and then.
    signal.signal(signal.SIGINT, lambda *_: app.quit())
    awake = QTimer(interval=200)
    awake.timeout.connect(lambda: None)
    awake.start()
    code = app.exec()
    window.stop()
    return code


if __name__ == "__main__":
    raise SystemExit(main())
