"""The end of the process, as threads see it that are still at work then."""

from __future__ import annotations

import threading

from .ffi import _bridge

__all__ = ["begin", "stand_still"]

_begun = False


def begin() -> None:
    """Called by what this package does at exit, before anything is taken from under a thread that still uses it."""
    global _begun
    _begun = True


def stand_still() -> None:
    """Returns at once, except on a daemon thread while the process exits: there it never returns.

    Such a thread has nobody to tell what became of its run. The interpreter stops it where it stands in a moment, and
    an exception would only be printed, in whole or in part, into the program's last output.
    """
    if (_begun or not _bridge.gate_is_open()) and threading.current_thread().daemon:
        threading.Event().wait()
