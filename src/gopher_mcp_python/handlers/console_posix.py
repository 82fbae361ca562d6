"""The terminal on POSIX systems: found, put into line mode, read with short waits, restored."""

from __future__ import annotations

import atexit
import os
import select
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager

from .console import NO_ANSWER, Console, End, StderrConsole, ended, pause_for, write_stderr
from .told_to_end import giving_back
from .watch import Watch

__all__ = ["PosixConsole", "attributes_of", "find_terminal", "open_terminal", "readable", "set_attributes"]

_LINE_MODE = termios.ICANON | termios.ECHO | termios.ISIG
_INPUT, _OUTPUT, _LOCAL = 0, 1, 3  # places in the list of termios.tcgetattr
_silenced: dict[int, list[object]] = {}  # terminals that show nothing of what is typed, with what they had before


@contextmanager
def open_terminal(*, keys: bool = False) -> Iterator[Console]:
    """The person's terminal, or a console that says why there is none. Closes and restores at the end.

    `keys`: lines may be longer than a terminal's own, and secret (console_keys.py)."""
    found = find_terminal()
    if isinstance(found, str):
        yield StderrConsole(found)
        return
    try:
        if keys:
            from .console_keys import KeysConsole, key_mode

            with key_mode(found):
                yield KeysConsole(found)
            return
        with _line_mode(found):
            yield PosixConsole(found)
    finally:
        os.close(found)


class PosixConsole:
    """A terminal in line mode."""

    can_read = True
    why_not = ""
    has_half_a_line = False

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._partial = b""
        # Where stderr is a terminal it is this one; where it is not, the person would see nothing of the prompt.
        self.is_elsewhere = not _stream_is_terminal(sys.stderr)

    def write(self, text: str) -> bool:
        shown = write_stderr(text)
        if not self.is_elsewhere:
            return shown
        data = text.encode("utf-8", "backslashreplace")
        try:
            while data:
                select.select([], [self._descriptor], [], 1.0)
                data = data[os.write(self._descriptor, data) :]
        except OSError:
            return shown
        return True

    def read_line(self, watch: Watch, until: float | None = None) -> str | End | None:
        while True:
            end = ended(watch)
            if end is not None:
                self._drop_half_a_line()
                return end
            if until is not None and time.monotonic() >= until:
                return None
            looked_at = [self._descriptor] if watch.wakes is None else [self._descriptor, watch.wakes]
            if self._descriptor not in readable(looked_at, pause_for(watch, until)):
                continue
            line = self._read()
            if line is not None:
                return line

    @contextmanager
    def hidden(self) -> Iterator[None]:
        before = attributes_of(self._descriptor)
        if before is None:
            yield
            return
        _silenced[self._descriptor] = before
        try:
            with giving_back(lambda: set_attributes(self._descriptor, before)):
                set_attributes(self._descriptor, _without_echo(before))
                yield
        finally:
            set_attributes(self._descriptor, before)
            del _silenced[self._descriptor]

    def forget_typed(self) -> None:
        self._partial = b""
        self._drop_half_a_line()

    def _drop_half_a_line(self) -> None:
        """What was typed as an answer that nobody takes any more must not become the program's next input."""
        try:
            termios.tcflush(self._descriptor, termios.TCIFLUSH)
        except termios.error:
            pass  # the terminal is gone

    def _read(self) -> str | End | None:
        """A whole line, its end, or None when there is only a part of it yet (Ctrl-D after some text)."""
        try:
            data = os.read(self._descriptor, 4096)
        except BlockingIOError:
            return None  # somebody else of this process was faster
        except OSError:
            return NO_ANSWER["lost"]  # the terminal was closed
        if not data:
            return NO_ANSWER["eof"]
        self._partial += data
        if not self._partial.endswith(b"\n"):
            return None
        line, self._partial = self._partial, b""
        return line.decode("utf-8", "replace").rstrip("\r\n")


def readable(descriptors: list[int], seconds: float) -> list[int]:
    try:
        return select.select(descriptors, [], [], seconds)[0]
    except ValueError:  # above 1,023, which select can't do; poll can't do terminals everywhere
        poll = select.poll()
        for descriptor in descriptors:
            poll.register(descriptor, select.POLLIN)
        return [descriptor for descriptor, _ in poll.poll(seconds * 1000)]


def find_terminal() -> int | str:
    """A descriptor of the terminal that is ours to close, or the reason why there is none."""
    if _stream_is_terminal(sys.stdin):
        descriptor = _reopened(sys.stdin.fileno())
    else:
        try:
            descriptor = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return "there is no terminal to answer on"
    if _in_background(descriptor):
        os.close(descriptor)
        return "this process is in the background of its terminal"
    return descriptor


def _stream_is_terminal(stream: object) -> bool:
    try:
        return os.isatty(stream.fileno())  # type: ignore[attr-defined]
    except (AttributeError, OSError, ValueError):
        return False


def _reopened(descriptor: int) -> int:
    """The same terminal, opened anew so that not waiting in a read is our own setting and not the program's."""
    try:
        return os.open(os.ttyname(descriptor), os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return os.dup(descriptor)  # a terminal of another mount: readable by what we inherited only


def _in_background(descriptor: int) -> bool:
    try:
        return os.tcgetpgrp(descriptor) != os.getpgrp()
    except OSError:
        return False  # not our controlling terminal, so there is no job control on it


@contextmanager
def _line_mode(descriptor: int) -> Iterator[None]:
    """Line mode with echo, whole lines and Ctrl-C, whatever a program had set; what it had set comes back at the end.

    What was typed before the question was shown is dropped: an old Enter is no answer to it."""
    before = attributes_of(descriptor)
    try:
        if before is None:
            yield
            return
        with giving_back(lambda: set_attributes(descriptor, before)):
            set_attributes(descriptor, _with_line_mode(before))
            termios.tcflush(descriptor, termios.TCIFLUSH)
            yield
    finally:
        if before is not None and before != attributes_of(descriptor):
            set_attributes(descriptor, before)


def _with_line_mode(attributes: list[object]) -> list[object]:
    changed = list(attributes)
    changed[_INPUT] = int(changed[_INPUT]) | termios.ICRNL  # type: ignore[call-overload]
    changed[_OUTPUT] = int(changed[_OUTPUT]) | termios.OPOST | termios.ONLCR  # type: ignore[call-overload]
    changed[_LOCAL] = int(changed[_LOCAL]) | _LINE_MODE  # type: ignore[call-overload]
    return changed


def _without_echo(attributes: list[object]) -> list[object]:
    changed = list(attributes)
    local = int(changed[_LOCAL]) & ~termios.ECHO  # type: ignore[call-overload]
    changed[_LOCAL] = local | termios.ECHONL
    return changed


def attributes_of(descriptor: int) -> list[object] | None:
    try:
        return list(termios.tcgetattr(descriptor))
    except termios.error:
        return None


def set_attributes(descriptor: int, attributes: list[object]) -> None:
    if _in_background(descriptor):
        return  # the terminal is another job's, and the system would stop this one
    try:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, attributes)  # type: ignore[arg-type]
    except termios.error:
        pass  # the terminal is gone; reading will say so


def _at_exit() -> None:
    """A program may end without the thread that asks."""
    for descriptor, before in list(_silenced.items()):
        set_attributes(descriptor, before)


atexit.register(_at_exit)
