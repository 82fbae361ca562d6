"""A program that is told to end while it has changed the terminal: it ends as it would, and gives the terminal back.

Python ends at SIGTERM and SIGHUP without any of its own code, where the program has no handler for them. Only the main
thread can set one, so that this holds for what is asked there.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

__all__ = ["giving_back"]

_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


@contextmanager
def giving_back(restore: Callable[[], object]) -> Iterator[None]:
    """Calls `restore` when the program is told to end inside of the block, and lets it end then. Handlers of the
    program's own stay, also those that it sets meanwhile."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _: FrameType | None) -> None:
        try:
            restore()
        finally:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    ours: list[int] = []
    try:
        for number in _SIGNALS:
            if signal.getsignal(number) is signal.SIG_DFL:
                with suppress(ValueError):  # an interpreter that is not the main one
                    signal.signal(number, end)
                    ours.append(number)
        yield
    finally:
        for number in ours:
            if signal.getsignal(number) is end:
                signal.signal(number, signal.SIG_DFL)
