"""A terminal on which a person may paste what is secret and long: an address with a code in it.

In line mode a terminal drops what is longer than 4,095 bytes (Linux; 1,024 on macOS) and shows all of it. Here keys are
read as they come and lines are edited by us: any length, and of what looks like a paste only the harmless beginning is
shown.
"""

from __future__ import annotations

import atexit
import os
import re
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from .console import NO_ANSWER, End
from .console_posix import PosixConsole, attributes_of, set_attributes
from .told_to_end import giving_back
from .watch import Watch

__all__ = ["KeysConsole", "key_mode"]

_INPUT, _OUTPUT, _LOCAL, _CHARACTERS = 0, 1, 3, 6  # places in the list of termios.tcgetattr
_LONGEST = 1 << 20  # bytes of a line; what comes after them is dropped
_SEQUENCE = re.compile(rb"\x1b\[[0-9;]*[A-Za-z~]")  # arrow keys, and the marks that terminals put around a paste
_SHORT_WORD = re.compile(r"[A-Za-z ]{0,8}\Z")
_ADDRESS = re.compile(r"https?://[A-Za-z0-9.:\[\]/_-]{0,60}")
_END_OF_INPUT, _ERASE, _KILL_LINE = 0x04, (0x08, 0x7F), (0x15, 0x17)
_changed: dict[int, list[object]] = {}  # terminals in key mode, with what they had before


class KeysConsole(PosixConsole):
    """A terminal in key mode (`key_mode`)."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor)
        self._ahead = b""  # read and not yet looked at
        self._line = bytearray()
        self._shown = ""

    def read_line(self, watch: Watch, until: float | None = None) -> str | End | None:
        line = self._typed() if self._ahead else None
        return line if line is not None else super().read_line(watch, until)

    def _read(self) -> str | End | None:
        try:
            data = os.read(self._descriptor, 1 << 16)
        except BlockingIOError:
            return None
        except OSError:
            return NO_ANSWER["lost"]
        if not data:
            return NO_ANSWER["eof"]
        self._ahead += data
        _stay_in_key_mode(self._descriptor)
        return self._typed()

    def _typed(self) -> str | End | None:
        """Takes keys until a line is whole."""
        for place, key in enumerate(self._ahead):
            if key in b"\r\n":
                self._ahead = self._ahead[place + 1 :]
                return self._whole_line()
            if key == _END_OF_INPUT and not self._line:
                self._ahead = b""
                return NO_ANSWER["eof"]
            self._edit(key)
        self._ahead = b""
        self.has_half_a_line = bool(self._line)
        self._show(_visible(bytes(self._line)))
        return None

    def _edit(self, key: int) -> None:
        if key in _ERASE:
            self._line[:] = self._line.decode("utf-8", "ignore")[:-1].encode()
        elif key in _KILL_LINE:
            self._line.clear()
        elif key != _END_OF_INPUT and len(self._line) < _LONGEST:
            self._line.append(key)

    def _whole_line(self) -> str:
        line = _SEQUENCE.sub(b"", bytes(self._line))
        self._show(_visible(line))
        self._echo("\n")
        self._line.clear()
        self.has_half_a_line = False
        self._shown = ""
        return line.decode("utf-8", "replace")

    def _show(self, text: str) -> None:
        """Changes what is shown of the line; only printable ASCII, so that each letter has one column."""
        if text == self._shown:
            return
        gone = 0 if text.startswith(self._shown) else len(self._shown)
        self._echo("\b" * gone + " " * gone + "\b" * gone + text[len(self._shown) - gone :])
        self._shown = text

    def _echo(self, text: str) -> None:
        """On the terminal only: keys are nothing for a log that stderr may go to."""
        try:
            os.write(self._descriptor, text.encode("ascii"))
        except OSError:
            pass  # full or gone; reading will say so

    def _drop_half_a_line(self) -> None:
        super()._drop_half_a_line()
        self._ahead = b""
        self._line.clear()


def _visible(line: bytes) -> str:
    """What may be shown of a line: short words, and an address up to its question mark."""
    text = _SEQUENCE.sub(b"", line).decode("utf-8", "replace").strip("\x1b")
    if _SHORT_WORD.match(text):
        return text
    address = _ADDRESS.match(text)
    return f"{address.group() if address else ''}[...]"


@contextmanager
def key_mode(descriptor: int) -> Iterator[None]:
    """Keys as they come, without echo; Ctrl-C works, and what the program had set comes back at the end, also when the
    program ends without us. What was typed before is dropped."""
    before = attributes_of(descriptor)
    if before is None:
        yield
        return
    _changed[descriptor] = before
    try:
        with giving_back(lambda: set_attributes(descriptor, before)):
            set_attributes(descriptor, _with_key_mode(before))
            with suppress(termios.error):  # the terminal is gone; reading will say so
                termios.tcflush(descriptor, termios.TCIFLUSH)
            yield
    finally:
        set_attributes(descriptor, before)
        del _changed[descriptor]


def _with_key_mode(attributes: list[object]) -> list[object]:
    changed = list(attributes)
    changed[_INPUT] = int(changed[_INPUT]) | termios.ICRNL  # type: ignore[call-overload]
    changed[_OUTPUT] = int(changed[_OUTPUT]) | termios.OPOST | termios.ONLCR  # type: ignore[call-overload]
    local = int(changed[_LOCAL]) | termios.ISIG  # type: ignore[call-overload]
    changed[_LOCAL] = local & ~(termios.ICANON | termios.ECHO | termios.IEXTEN)
    characters = list(changed[_CHARACTERS])  # type: ignore[call-overload]
    characters[termios.VMIN], characters[termios.VTIME] = 1, 0
    changed[_CHARACTERS] = characters
    return changed


def _stay_in_key_mode(descriptor: int) -> None:
    """A shell may have set line mode while the program was stopped (Ctrl-Z)."""
    now = attributes_of(descriptor)
    if now is not None and int(now[_LOCAL]) & termios.ICANON:  # type: ignore[call-overload]
        set_attributes(descriptor, _with_key_mode(now))


def _at_exit() -> None:
    for descriptor, before in list(_changed.items()):
        set_attributes(descriptor, before)


atexit.register(_at_exit)
