"""Threads that a blocking call of this package holds: an event loop of theirs serves nothing meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["is_occupied", "occupying"]

_calls: dict[int, int] = {}  # under way, by thread; each thread changes its own only, so that no lock is needed


@contextmanager
def occupying() -> Iterator[None]:
    """The calling thread is held until the end of the block."""
    thread = threading.get_ident()
    outer = _calls.get(thread, 0)
    _calls[thread] = outer + 1
    try:
        yield
    finally:
        if outer:
            _calls[thread] = outer
        else:
            _calls.pop(thread, None)  # a fork's child may have lost it


def is_occupied(thread: int) -> bool:
    """Whether the thread of this identifier (`threading.get_ident`) is inside of such a call."""
    return thread in _calls
