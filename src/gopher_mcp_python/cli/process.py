"""The process around a command: nothing shows a traceback by itself, and output that nobody takes is no accident."""

from __future__ import annotations

import logging
import os
import select
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from ..display import safe_text
from .failures import line, say
from .secrecy import redacted, without_secrets

__all__ = [
    "end_at_the_next_interrupt", "is_debugging", "is_reader_gone", "let_go_of_output", "ready_output", "show_traceback",
    "surroundings",
]  # fmt: skip

_OFF = ("", "0", "false", "no", "off")
_DEBUG = "--debug shows where"


def is_debugging(asked: bool) -> bool:
    """Whether logs and tracebacks are shown: --debug, GOPHER_MCP_DEBUG, or DEBUG, which the native library has, too."""
    variables = ("GOPHER_MCP_DEBUG", "DEBUG")
    return asked or any(os.environ.get(name, "").strip().lower() not in _OFF for name in variables)


@contextmanager
def surroundings(debug: bool, *, lasting: bool = False) -> Iterator[None]:
    """What the process says by itself, in one line each: warnings, logs that nobody takes, threads that fail. With
    `lasting` it stays so afterwards, for what the interpreter does at its end."""
    showing, last, hook, unraisable = (
        warnings.showwarning, logging.lastResort, threading.excepthook, sys.unraisablehook
    )  # fmt: skip
    package, handler = logging.getLogger("gopher_mcp_python"), _handler(debug)
    level = package.level
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    logging.lastResort = handler
    threading.excepthook = lambda args: _show_stray(args.exc_value, debug)
    sys.unraisablehook = lambda args: _show_stray(args.exc_value, debug)
    if debug:
        package.addHandler(handler)
        package.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        if not lasting:
            warnings.showwarning, logging.lastResort, threading.excepthook, sys.unraisablehook = (
                showing, last, hook, unraisable
            )  # fmt: skip
            package.removeHandler(handler)
            package.setLevel(level)


def show_traceback(error: BaseException) -> None:
    """Where it failed, on standard error, without secrets and without what could drive a terminal."""
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    say(safe_text(redacted(text), limit=200_000).rstrip())


def ready_output() -> None:
    """What the encoding of standard output has no sign for is written as an escape, as on standard error."""
    with suppress(AttributeError, ValueError, OSError):
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def end_at_the_next_interrupt() -> None:
    """What is left to be done is the interpreter's: a Ctrl-C meanwhile ends it without a word."""
    with suppress(ValueError, OSError):
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def is_reader_gone() -> bool:
    """Whether somebody read our output, and does so no longer."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # closed, none, no file
            try:
                stream.flush()
            except BrokenPipeError:
                return True
            if _is_hung_up(stream.fileno()):
                return True
    return False


def _is_hung_up(descriptor: int) -> bool:
    """Whether it is a pipe without a reader; a write that has failed once leaves nothing behind to be flushed."""
    if not hasattr(select, "poll"):
        return False
    looking = select.poll()
    looking.register(descriptor, 0)  # errors are always told
    return any(told & (select.POLLERR | select.POLLHUP) for _, told in looking.poll(0))


def let_go_of_output() -> None:
    """Output that can't be written (a full disk, a reader who has gone) is dropped, so that the interpreter's own flush
    at the end has nothing to complain about."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                devnull = os.open(os.devnull, os.O_WRONLY)
                os.dup2(devnull, stream.fileno())
                os.close(devnull)


class _OneLine(logging.Formatter):
    """A record on one line; an exception's traceback only when it was asked for."""

    def __init__(self, debug: bool) -> None:
        super().__init__("%(asctime)s %(name)s: %(message)s" if debug else "%(message)s")
        self._debug = debug

    def format(self, record: logging.LogRecord) -> str:
        if self._debug:
            # Other handlers keep what they make of it: the text of the exception is not left in the record.
            return safe_text(redacted_log(super().format(record)), limit=200_000)
        text = without_secrets(record.getMessage())
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            text += f" ({type(error).__name__}: {redacted(str(error))}; {_DEBUG})"
        return " ".join(safe_text(text).split())


def redacted_log(text: str) -> str:
    """A formatted record: its own text is written without secrets by who logs it, a traceback by nobody."""
    said, mark, trace = text.partition("Traceback (most recent call last)")
    return without_secrets(said) + redacted(mark + trace)


def _handler(debug: bool) -> logging.Handler:
    handler = logging.StreamHandler()
    handler.setLevel(logging.DEBUG if debug else logging.WARNING)
    handler.setFormatter(_OneLine(debug))
    return handler


def _show_warning(message: Warning | str, category: type[Warning], *_: Any) -> None:
    if issubclass(category, (DeprecationWarning, ResourceWarning)) and not sys.warnoptions:
        return
    say(line(f"warning: {message}"))


def _show_stray(error: BaseException | None, debug: bool) -> None:
    """An exception that no code of ours gets to see."""
    if error is None or isinstance(error, (SystemExit, KeyboardInterrupt, BrokenPipeError)):
        return
    if debug:
        show_traceback(error)
    text = f"something failed in the background: {type(error).__name__}: {redacted(str(error))}"
    say(line(text, advice=None if debug else _DEBUG))
