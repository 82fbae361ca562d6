"""The terminal while a form has it: keys come as they are typed, the other screen is shown, and all of it is undone at
the end, however that comes about."""

from __future__ import annotations

import atexit
import os
import select
import sys
import termios
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from prompt_toolkit.data_structures import Size
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Style

from ..console_posix import attributes_of, set_attributes
from ..told_to_end import giving_back
from .look import Drawing, Line, Look

__all__ = ["OwnTerminal", "own_terminal"]

_INPUT, _OUTPUT, _LOCAL, _CHARACTERS = 0, 1, 3, 6  # places in the list of termios.tcgetattr
_NO_KEY = b"\0" if sys.platform == "linux" else b"\xff"  # _POSIX_VDISABLE
_PATIENCE = 2.0  # seconds for a terminal that takes nothing; what is left is not shown then
# Colours of the terminal's own palette, which are made for its background, and no more of them than needed.
_STYLE = Style.from_dict(
    {
        "bar": "reverse", "title": "bold reverse", "strong": "bold", "focus": "bold", "chosen": "reverse",
        "bad": "bold ansired", "good": "ansigreen", "state": "", "warning": "bold", "text": "underline", "": "",
    }
)  # fmt: skip
_owned: dict[int, OwnTerminal] = {}


class OwnTerminal:
    """One terminal that shows a form; `close` gives it back. Any thread may close it, also twice."""

    def __init__(self, descriptor: int, before: list[object]) -> None:
        self._descriptor = descriptor
        self._before = before
        self._lock = threading.RLock()  # a signal handler may close what its thread is writing to
        self._is_open = False
        self._pid = os.getpid()
        self._shown: list[Line] = []
        self._is_stale = False
        self._size = (0, 0)
        self.is_lost = False
        stream: Any = self  # it is written to, and nothing else
        self._output = Vt100_Output(stream, self._given_size, term=os.environ.get("TERM"), enable_cpr=False)
        self.encoding = Look.of_terminal(80).encoding
        self._depth = ColorDepth.DEPTH_1_BIT if os.environ.get("NO_COLOR") else ColorDepth.DEPTH_4_BIT

    # ---- having it -------------------------------------------------------------------------------------------------

    def open(self) -> None:
        with self._lock:
            self._is_open = True
            self._set_keys()
            with suppress(termios.error):  # the terminal is gone; reading will say so
                termios.tcflush(self._descriptor, termios.TCIFLUSH)
            self._output.enter_alternate_screen()
            self._output.enable_bracketed_paste()
            self._output.disable_autowrap()
            self._output.flush()

    def close(self, last_line: str = "") -> None:
        """Gives it back as it was; `last_line` then stands on the person's own screen."""
        if os.getpid() != self._pid:  # a child of a fork has no prompt, and perhaps a lock that nobody opens
            return
        with self._lock:
            if not self._is_open:
                return
            try:
                self._output.reset_attributes()
                self._output.enable_autowrap()
                self._output.disable_bracketed_paste()
                self._output.erase_screen()  # some terminals have only one
                self._output.cursor_goto(1, 1)
                self._output.quit_alternate_screen()
                self._output.show_cursor()
                self._output.write(last_line)
                self._output.flush()
                self._is_open = False  # not before: a second Ctrl-C may come, and it is closed once more then
            finally:
                set_attributes(self._descriptor, self._before)

    def stays(self) -> bool:
        """False where somebody had set line mode, as a shell does while the program is stopped; it is set back."""
        now = attributes_of(self._descriptor)
        if now is None or not int(now[_LOCAL]) & termios.ICANON:  # type: ignore[call-overload]
            return True
        self._set_keys()
        self._shown = []
        return False

    def forget_typed(self) -> None:
        with suppress(termios.error):
            termios.tcflush(self._descriptor, termios.TCIFLUSH)

    def _set_keys(self) -> None:
        set_attributes(self._descriptor, _with_keys(self._before))

    # ---- showing ---------------------------------------------------------------------------------------------------

    def size(self) -> tuple[int, int]:
        """Columns and lines."""
        try:
            columns, lines = os.get_terminal_size(self._descriptor)
        except OSError:
            return self._size if self._size != (0, 0) else (80, 24)
        return columns or 80, lines or 24

    def redraw(self) -> None:
        """The next drawing is shown whole: something else may have written over it."""
        self._shown = []

    def repaint(self) -> None:
        """With the next drawing each line is written again, where the program may have written over it."""
        self._is_stale = True

    def show(self, drawing: Drawing) -> None:
        """Shows as many lines as fit; only those that differ from what is there are written."""
        with self._lock:
            if self._is_open:
                self._show(drawing)

    def _show(self, drawing: Drawing) -> None:
        size = self.size()
        output = self._output
        output.hide_cursor()
        if size != self._size or not self._shown:
            self._size, self._shown = size, []
            output.reset_attributes()
            output.erase_screen()
        lines = drawing.lines[: size[1]]
        for row, line in enumerate(lines):
            if self._is_stale or row >= len(self._shown) or self._shown[row] != line:
                self._write_line(row, line)
        for row in range(len(lines), len(self._shown)):
            self._write_line(row, ())
        self._shown, self._is_stale = lines, False
        if drawing.cursor is not None and drawing.cursor[0] < size[1]:
            output.cursor_goto(drawing.cursor[0] + 1, drawing.cursor[1] + 1)
            output.show_cursor()
        output.flush()

    def _write_line(self, row: int, line: Line) -> None:
        self._output.cursor_goto(row + 1, 1)
        for style, text in line:
            self._output.set_attributes(_STYLE.get_attrs_for_style_str(f"class:{style}" if style else ""), self._depth)
            self._output.write(text)
        self._output.reset_attributes()
        self._output.erase_end_of_line()  # no line takes the last column

    # ---- a stream, as Vt100_Output wants one -----------------------------------------------------------------------

    def write(self, text: str) -> None:
        """Writes what was laid out in the terminal's encoding; never waits for ever."""
        try:
            data = text.encode(self.encoding, "backslashreplace")
        except LookupError:
            data = text.encode("ascii", "backslashreplace")
        until = time.monotonic() + _PATIENCE
        while data and not self.is_lost:
            try:
                data = data[os.write(self._descriptor, data) :]
            except BlockingIOError:
                if time.monotonic() >= until:
                    return
                _wait_to_write(self._descriptor, 0.1)
            except OSError:
                self.is_lost = True

    def flush(self) -> None:
        """Nothing is kept back."""

    def _given_size(self) -> Size:
        columns, lines = self.size()
        return Size(rows=lines, columns=columns)


def _wait_to_write(descriptor: int, seconds: float) -> None:
    poll = select.poll()  # select takes no descriptors above 1,023; this is a short wait in any case
    poll.register(descriptor, select.POLLOUT)
    with suppress(OSError):
        poll.poll(seconds * 1000)


def _with_keys(attributes: Sequence[object]) -> list[object]:
    """Keys as they come, Ctrl-C still the program's; no other key stops the program with the form on the screen."""
    changed = list(attributes)
    flow = termios.IXON | termios.IXOFF | termios.ICRNL | termios.INLCR | termios.IGNCR | termios.ISTRIP
    changed[_INPUT] = int(changed[_INPUT]) & ~flow  # type: ignore[call-overload]
    changed[_OUTPUT] = int(changed[_OUTPUT]) | termios.OPOST | termios.ONLCR  # type: ignore[call-overload]
    local = int(changed[_LOCAL]) | termios.ISIG  # type: ignore[call-overload]
    changed[_LOCAL] = local & ~(termios.ICANON | termios.ECHO | termios.ECHONL | termios.IEXTEN)
    characters = list(changed[_CHARACTERS])  # type: ignore[call-overload]
    characters[termios.VMIN], characters[termios.VTIME] = 1, 0
    for key in ("VSUSP", "VDSUSP", "VQUIT"):
        if hasattr(termios, key):
            characters[getattr(termios, key)] = _NO_KEY
    changed[_CHARACTERS] = characters
    return changed


@contextmanager
def own_terminal(descriptor: int) -> Iterator[OwnTerminal]:
    """The terminal behind a descriptor, for one form. Raises OSError when it is none (any more)."""
    before = attributes_of(descriptor)
    if before is None:
        raise OSError("the terminal is gone")
    terminal = OwnTerminal(descriptor, before)
    _owned[descriptor] = terminal
    try:
        with giving_back(terminal.close):
            terminal.open()
            yield terminal
    finally:
        try:
            terminal.close()
        finally:
            del _owned[descriptor]


def _at_exit() -> None:
    """A program may end without the thread that asks."""
    for terminal in list(_owned.values()):
        terminal.close()


atexit.register(_at_exit)
