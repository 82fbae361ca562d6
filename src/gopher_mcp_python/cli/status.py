"""Says on standard error what is being waited for, and how long.

On a terminal it is one line that is kept up to date and taken away at the end; pipes and logs get nothing of it. It
shares the terminal with prompts by their own queue (`handlers.turns`): while one is open, nothing is written, and when
one begins the line is gone.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO, final

from ..display import safe_line
from ..handlers.turns import TERMINAL

if TYPE_CHECKING:
    from ..events import GopherAgentEvent

FIRST_SECONDS = 1.0
"""Shorter waits are not worth a line."""
EVERY_SECONDS = 1.0
_CLEAR = "\r\x1b[K"


@final
class Status:
    """A context manager around work that may take long; `waiting` says for what, from now on."""

    def __init__(self, *, enabled: bool = True, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._enabled = enabled and _is_terminal(self._stream)
        self._what, self._since, self._told, self._detail = "", time.monotonic(), 0.0, ""
        self._drawn = False
        self._writing = threading.RLock()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._work, name="gopher-mcp-status", daemon=True)

    def __enter__(self) -> Status:
        if self._enabled:
            self._before_prompt, TERMINAL.at_start = TERMINAL.at_start, self.clear
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._enabled:
            self._end.set()
            self._thread.join()
            self.clear()
            TERMINAL.at_start = self._before_prompt

    def waiting(self, what: str) -> None:
        """What the program waits for from now on, in a few words; the time starts anew when it is something else."""
        if what != self._what:
            self._since, self._told, self._what, self._detail = time.monotonic(), 0.0, what, ""

    def detail(self, text: str) -> None:
        """How far that is, in a few words."""
        self._detail = text

    def say(self, text: str) -> None:
        """Prints a line on standard output, in the place of the status line where one is shown."""
        with self._writing:
            self.clear()
            print(text, flush=True)

    def event(self, event: GopherAgentEvent) -> None:
        """Follows a run: takes the events of `GopherAgentCreateOptions(on_event=...)`."""
        if event.kind == "llm_request":
            self.waiting("waiting for the model")
        elif event.kind == "tool_dispatched":
            self.waiting(f"waiting for {_tool_name(event.data)}")
        elif event.kind in ("tool_result", "llm_response"):
            self.waiting("working")

    def _work(self) -> None:
        while not self._end.wait(0.2):
            passed = time.monotonic() - self._since
            if not self._what or passed < FIRST_SECONDS or passed - self._told < EVERY_SECONDS:
                continue
            looks = iter((True, False))  # one look: a status that has to queue is not worth showing any more
            with TERMINAL.turn(lambda looks=looks: next(looks, False)) as mine:  # type: ignore[misc]
                if mine and not self._end.is_set():
                    self._told = passed
                    self._write(passed)

    def _write(self, passed: float) -> None:
        text = f"{self._what} ... {passed:.0f} s" + (f", {self._detail}" if self._detail else "")
        with self._writing:
            width = shutil.get_terminal_size().columns - 1
            self._drawn = True
            self._put(f"{_CLEAR}{text[:width]}\r")

    def clear(self) -> None:
        """Take the line away; it comes back when there is still something to wait for."""
        with self._writing:
            if self._drawn:
                self._drawn = False
                self._put(_CLEAR)

    def _put(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._enabled = False  # nobody reads it any more


@contextmanager
def waiting(what: str, *, enabled: bool = True) -> Iterator[Status]:
    """Says so while the block runs, if it takes longer than a second."""
    with Status(enabled=enabled) as status:
        status.waiting(what)
        yield status


def _is_terminal(stream: TextIO | None) -> bool:
    """Whether a line can be written there and taken away again."""
    try:
        return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"
    except ValueError:  # it is closed
        return False


def _tool_name(data: dict[str, Any]) -> str:
    """The tool that an event is about: a server's text, so only its harmless part is shown."""
    for key in ("tool", "name"):
        if isinstance(data.get(key), str):
            return safe_line(data[key], limit=60)
    return "a tool"
