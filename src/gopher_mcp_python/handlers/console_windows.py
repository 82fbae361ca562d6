"""The console on Windows: keys are polled, since a console there can't be waited for with a time limit.

Written after the documentation of msvcrt; it has been type-checked but not run on Windows.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from .console import NO_ANSWER, End, ended, pause_for, write_stderr
from .watch import Watch

__all__ = ["WindowsConsole"]

_CTRL_C, _CTRL_Z = "\x03", "\x1a"
_SHORT, _WHOLE = 8, 1 << 30  # letters of a line that are shown: words, not what may be secret
_PREFIXES = ("\x00", "\xe0")  # begin the two-part code of an arrow or function key


class WindowsConsole:
    """The console of this process."""

    can_read = True
    why_not = ""

    def __init__(self, *, keys: bool = False) -> None:
        self.forget_typed()
        self._most_shown = _SHORT if keys else _WHOLE

    @property
    def has_half_a_line(self) -> bool:
        return bool(self._line)

    @staticmethod
    def unusable() -> str | None:
        """Why lines can't be read here, or None."""
        try:
            return None if sys.stdin.isatty() else "there is no terminal to answer on"
        except (AttributeError, ValueError):
            return "there is no terminal to answer on"

    def write(self, text: str) -> bool:
        return write_stderr(text)

    def read_line(self, watch: Watch, until: float | None = None) -> str | End | None:
        import msvcrt

        while True:
            end = ended(watch)
            if end is not None:
                return end
            if until is not None and time.monotonic() >= until:
                return None
            if not msvcrt.kbhit():  # type: ignore[attr-defined, unused-ignore]
                time.sleep(pause_for(watch, until))
                continue
            answer = self._typed(msvcrt.getwch())  # type: ignore[attr-defined, unused-ignore]
            if answer is not None:
                return answer

    def forget_typed(self) -> None:
        import msvcrt

        while msvcrt.kbhit():  # type: ignore[attr-defined, unused-ignore]
            msvcrt.getwch()  # type: ignore[attr-defined, unused-ignore]
        self._line = ""

    @contextmanager
    def hidden(self) -> Iterator[None]:
        before, self._most_shown = self._most_shown, 0
        try:
            yield
        finally:
            self._most_shown = before

    def _typed(self, key: str) -> str | End | None:
        if key == _CTRL_C:
            raise KeyboardInterrupt
        if key == _CTRL_Z:
            return NO_ANSWER["eof"]
        if key in _PREFIXES:
            import msvcrt

            msvcrt.getwch()  # type: ignore[attr-defined, unused-ignore]
            return None
        if key in "\r\n":
            write_stderr("\n")
            line, self._line = self._line, ""
            return line
        before = len(self._line)
        self._line = self._line[:-1] if key == "\b" else self._line + key
        if max(before, len(self._line)) <= self._most_shown and before != len(self._line):
            write_stderr("\b \b" if key == "\b" else key)
        return None
