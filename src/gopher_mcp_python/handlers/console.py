"""The person's terminal: where a prompt is written and a line is read, without taking anything from anybody else.

Prompts go to stderr. Lines are read from the terminal itself: from stdin when that is a terminal, else from the
controlling terminal (/dev/tty); a stdin that is a pipe or a file is the program's data and is never read. When stderr
is no terminal (redirected to a file) the prompt is also written to the terminal, where the person is. A process in
the background has no terminal: reading would stop it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

from .watch import Watch

__all__ = ["NO_ANSWER", "Console", "End", "StderrConsole", "columns", "open_console"]

_LOOK_EVERY = 0.05  # seconds; withdrawal and completion are noticed within this


class End:
    """Why no line came: a key of `dialogue.ENDINGS`."""

    def __init__(self, why: str) -> None:
        self.why = why


NO_ANSWER = {why: End(why) for why in ("eof", "withdrawn", "finished", "timeout", "lost")}


class Console(Protocol):
    """Somewhere to write to and, when `can_read`, to read lines from."""

    can_read: bool
    why_not: str

    @property
    def has_half_a_line(self) -> bool:
        """Whether something was typed, as far as can be seen, and not yet ended with Enter."""
        ...

    def write(self, text: str) -> bool:
        """Writes text that is safe for a terminal; False when it could not be shown anywhere."""
        ...

    def read_line(self, watch: Watch, until: float | None = None) -> str | End | None:
        """A line without its end, why there is none, or None when `until` (monotonic seconds) has come."""
        ...

    def hidden(self) -> AbstractContextManager[None]:
        """What is typed meanwhile is not shown."""
        ...

    def forget_typed(self) -> None:
        """What was typed up to now is no answer to what is asked next."""
        ...


class StderrConsole:
    """No terminal: what is written is still shown on stderr, nothing can be read."""

    can_read = False
    has_half_a_line = False

    def __init__(self, why_not: str) -> None:
        self.why_not = why_not

    def write(self, text: str) -> bool:
        return write_stderr(text)

    def read_line(self, watch: Watch, until: float | None = None) -> str | End | None:
        return NO_ANSWER["eof"]

    def hidden(self) -> AbstractContextManager[None]:
        return nullcontext()

    def forget_typed(self) -> None:
        """There is nothing."""


def write_stderr(text: str) -> bool:
    """Writes to stderr whatever its encoding; False when there is none or it is broken."""
    stream = sys.stderr
    if stream is None:
        return False
    try:
        encoding = getattr(stream, "encoding", None) or "utf-8"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except (OSError, ValueError, LookupError):
        return False
    return True


def columns() -> int:
    """How wide the terminal is on which prompts are shown; 80 where there is none, or it does not say."""
    for stream in (sys.stderr, sys.stdin, sys.stdout):
        try:
            found = os.get_terminal_size(stream.fileno()).columns
        except (AttributeError, OSError, ValueError):
            continue
        if found:
            return found
    return 80


def ended(watch: Watch) -> End | None:
    """Whether there is nothing to wait for any more. A completed sign-in counts even at the last moment."""
    if watch.is_finished():
        return NO_ANSWER["finished"]
    no_time, is_open = watch.remaining() == 0.0, watch.is_open()
    if is_open and not no_time:
        return None
    return NO_ANSWER["timeout" if is_open or watch.ran_out() else "withdrawn"]


@contextmanager
def open_console(*, keys: bool = False) -> Iterator[Console]:
    """The terminal for one prompt, given back as it was found.

    `keys`: what is typed or pasted may be long and secret, so it is not shown in full."""
    if os.name == "nt":
        from .console_windows import WindowsConsole

        reason = WindowsConsole.unusable()
        yield StderrConsole(reason) if reason else WindowsConsole(keys=keys)
        return
    from .console_posix import open_terminal

    with open_terminal(keys=keys) as console:
        yield console


def pause_for(watch: Watch, until: float | None) -> float:
    """How long one look may take (in seconds): short, and never past a limit."""
    pause = _LOOK_EVERY
    if until is not None:
        pause = min(pause, until - time.monotonic())
    remaining = watch.remaining()
    if remaining is not None:
        pause = min(pause, remaining)
    return max(0.0, pause)
