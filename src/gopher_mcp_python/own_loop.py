"""Event loops for threads of this package."""

from __future__ import annotations

import asyncio
import sys

__all__ = ["new_loop", "why_no_sockets"]


def new_loop() -> asyncio.AbstractEventLoop:
    """A loop of asyncio's own, whatever policy the program has set for its loops: one of Qt's (qasync, QtAsyncio) runs
    on the GUI thread only, and would stand still on any other."""
    if sys.platform == "win32":
        return asyncio.ProactorEventLoop()
    return asyncio.SelectorEventLoop()


def why_no_sockets(loop: asyncio.AbstractEventLoop) -> str | None:
    """Why no connection can be made on this loop, as a sentence with the remedy; None when one can."""
    if not type(loop).__module__.startswith("PySide6.QtAsyncio"):
        return None
    return (
        "PySide6.QtAsyncio has no network connections, and would wait for one without end: run the program with "
        "qasync, the toolset on a thread of its own (asyncio.run), or an agent (run_async)"
    )
