"""The store's own threads."""

from __future__ import annotations

import threading
from collections.abc import Callable

from .errors import StoreError

__all__ = ["started"]


def started(name: str, run: Callable[[], object]) -> threading.Thread:
    """A daemon thread that runs. Raises StoreError when there is none to be had: too many, or the program ends."""
    thread = threading.Thread(target=run, name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError:
        raise StoreError(f"The store needs a thread ({name}) and none can be started: see how many there are") from None
    return thread
