"""How long a person waits for a prompt: from the request to the first paint of the dialog, and to the first question on
a terminal, line by line and on a screen of its own.

Beside each figure stands a raw baseline of the same run: a plain QDialog with as many labels and line edits, and a
plain print of the very text that the terminal showed. Every side has processes of its own: the first prompt of each is
cold, the others are warm. A cold one imports what prompts need; what a session imports (the MCP SDK) and the program's
own (PySide6) are there before the request, as they are when one comes. Targets are for warm ones.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from importlib.util import find_spec

from benchmarks._report import Compared, Target, main, median, note, rounded
from tests.support import children

PROCESSES = 5
TURNS = 4  # prompts of one process, the first of them cold
LIMIT = 60.0  # seconds for one prompt to appear
SIZE = (40, 120)  # lines and columns of the terminal

TARGETS = (
    Target("dialog_50_ms", "<=", 150, "request to the dialog's first paint, 50 fields"),
    Target("dialog_500_ms", "<=", 800, "request to the dialog's first paint, 500 fields"),
    Target("line_50_ms", "<=", 50, "request to the first question on a terminal, line by line, 50 fields"),
    Target("screen_50_ms", "<=", 50, "request to the first question on a terminal, full screen, 50 fields"),
)
_PROMPTS = (
    ("dialog_50", "dialog of 50 fields, first paint", "a plain QDialog"),
    ("dialog_500", "dialog of 500 fields, first paint", "a plain QDialog"),
    ("line_50", "terminal by line, 50 fields, question", "a plain print of its text"),
    ("screen_50", "terminal's screen, 50 fields, question", "a plain print of its text"),
)
COMPARED = (
    *(Compared(f"{what}, warm", f"{key}_ms", f"{key}_raw_ms", f"{key}_ratio", plain) for key, what, plain in _PROMPTS),
    *(Compared(f"{what}, cold", f"{key}_cold_ms") for key, what, _ in _PROMPTS),
)
QUICK = {"PROCESSES": 1, "TURNS": 2}

_REQUEST = """
import json, sys, time
from gopher_mcp_python import GopherAgentElicitationRequest, McpToolset
count, turns = int(sys.argv[1]), int(sys.argv[2])
KINDS = [
    {"type": "string", "minLength": 1, "description": "as in your passport"}, {"type": "string", "format": "email"},
    {"type": "integer", "minimum": 0, "maximum": 10}, {"type": "boolean", "default": False},
    {"type": "string", "enum": ["low", "middle", "high"]}, {"type": "number"},
    {"type": "array", "items": {"type": "string", "enum": ["x", "y", "z"]}}, {"type": "string", "format": "date"},
]
properties = {f"field{number}": KINDS[number % len(KINDS)] for number in range(count)}
schema = {"type": "object", "properties": properties, "required": ["field0"]}
request = GopherAgentElicitationRequest("form", message="Please", server="mail.test", requested_schema=schema)
"""
_PAINTING = """
from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QApplication, QDialog, QFormLayout, QLabel, QLineEdit, QScrollArea, QVBoxLayout, QWidget
app = QApplication([])

class Painted(QObject):
    window = None
    def eventFilter(self, watched, event):
        if event.type() == QEvent.Type.Paint and watched is self.window:
            self.window = None
        return False

painted = Painted()
app.installEventFilter(painted)

def raw():
    dialog, body, area = QDialog(), QWidget(), QScrollArea()
    rows = QFormLayout(body)
    for name in properties:
        rows.addRow(QLabel(name), QLineEdit())
    area.setWidget(body)
    area.setWidgetResizable(True)
    QVBoxLayout(dialog).addWidget(area)
    return dialog

def ours():
    from gopher_mcp_python.handlers.qt import McpElicitationDialog
    return McpElicitationDialog(request.server, request)

make = {"raw": raw, "ours": ours}[sys.argv[3]]
for _ in range(turns):
    begin = time.perf_counter()
    dialog = make()
    painted.window = dialog
    dialog.show()
    while painted.window is not None:
        app.processEvents()
    print(time.perf_counter() - begin, flush=True)
    dialog.close()
    dialog.deleteLater()
    app.processEvents()
"""
_ASKING = """
from gopher_mcp_python.handlers.watch import Watch
from gopher_mcp_python.handlers.terminal_prompt import TerminalPrompt
prompt = TerminalPrompt()
for _ in range(turns):
    print(time.monotonic(), flush=True)
    try:
        prompt.ask(request, Watch())
    except KeyboardInterrupt:
        pass
"""
_PRINTING = """
for _ in range(turns):
    print(time.monotonic(), flush=True)
    try:
        print(sys.argv[3], end="", flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        pass
"""
_SIGN = {"line": "Field 0: ", "screen": r"\x1b\[\?25h"}  # the last that is shown: a question; the cursor in its field


def _dialogs(count: int) -> dict[str, float | None]:
    """Figures of the window; a line about it and None when PySide6 is not installed."""
    names = [f"dialog_{count}_{what}" for what in ("cold_ms", "ms", "raw_ms", "ratio")]
    if find_spec("PySide6") is None:
        note(f"the dialog of {count} fields is not measured: PySide6 is missing (pip install 'gopher-mcp-python[qt]')")
        return dict.fromkeys(names)
    note(f"{PROCESSES} x {TURNS} dialogs of {count} fields, and as many plain ones")
    pairs = [(_painted(count, "ours"), _painted(count, "raw")) for _ in range(PROCESSES)]
    return dict(zip(names, _four_figures(pairs), strict=True))


def _painted(count: int, side: str) -> list[float]:
    """Seconds to the first paint, one by one, of a process of its own."""
    program = [sys.executable, "-c", _REQUEST + _PAINTING, str(count), str(TURNS), side]
    done = subprocess.run(
        program, env=children.environment({"QT_QPA_PLATFORM": "offscreen"}), cwd=children.ROOT, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True, timeout=LIMIT * TURNS, check=True,
    )  # fmt: skip
    return [float(line) for line in done.stdout.split()]


def _asked(mode: str, count: int = 50) -> dict[str, float | None]:
    """Figures of the terminal: "line" or "screen"."""
    names = [f"{mode}_{count}_{what}" for what in ("cold_ms", "ms", "raw_ms", "ratio")]
    if os.name == "nt" or (mode == "screen" and find_spec("prompt_toolkit") is None):
        note(f"{mode}: not measured, there is no pty (or no prompt_toolkit) here")
        return dict.fromkeys(names)
    note(f"{PROCESSES} x {TURNS} forms of {count} fields, mode {mode}, and as many prints of the same text")
    pairs = []
    for _ in range(PROCESSES):
        ours, shown = _shown(_ASKING, count, mode)
        pairs.append((ours, _shown(_PRINTING, count, mode, shown)[0]))
    return dict(zip(names, _four_figures(pairs), strict=True))


def _shown(program: str, count: int, mode: str, text: str = "") -> tuple[list[float], str]:
    """Seconds from each request to the question on a pty, of a process of its own; and what the first one showed."""
    from tests.support.terminal import Terminal

    plain = {"GOPHER_MCP_PLAIN": "1"} if mode == "line" else {}
    times, first = [], ""
    with Terminal.python(
        "-c", _REQUEST + program, str(count), str(TURNS), text, env=plain, size=SIZE, timeout=LIMIT
    ) as terminal:
        terminal.child.delaybeforesend = None
        for _ in range(TURNS):
            begin = re.search(r"([0-9.]+)\s*\Z", terminal.expect(r"[0-9]+\.[0-9]+\r\n"))
            shown = terminal.expect(_SIGN[mode])
            end = time.monotonic()
            assert begin is not None
            times.append(end - float(begin[1]))
            first = first or shown
            terminal.send("\x03")
        terminal.end()
    return times, first


def _four_figures(pairs: list[tuple[list[float], list[float]]]) -> list[float | None]:
    """The cold and the warm prompt, the baseline (all in ms), and the median of the runs' warm ratios."""
    warm = [(median(ours[1:]), median(raw[1:])) for ours, raw in pairs]
    cold = median([ours[0] for ours, _ in pairs])
    return [
        rounded(cold * 1e3),
        rounded(median([ours for ours, _ in warm]) * 1e3),
        rounded(median([raw for _, raw in warm]) * 1e3),
        rounded(median([ours / raw for ours, raw in warm])),
    ]


def measure() -> dict[str, float | None]:
    """Milliseconds (medians) and the medians of the runs' ratios."""
    return {**_dialogs(50), **_dialogs(500), **_asked("line"), **_asked("screen")}


if __name__ == "__main__":
    raise SystemExit(main("benchmarks.prompts"))
