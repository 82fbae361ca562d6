"""How a thread tells a task of asyncio or of trio that something is over."""

from __future__ import annotations

import sys
from typing import Any, Protocol

from .errors import AgentError

__all__ = ["Over", "over_here"]

# Seconds that a cancelled task gives its thread to answer cancel and to let go. What takes longer (a name that is being
# looked up, an import) is left to end by itself.
_LINGER = 0.25


class Over(Protocol):
    """An event that another thread tells to a task."""

    def tell(self) -> bool:
        """Any thread. False when the event loop is closed."""

    async def wait(self) -> None: ...

    async def linger(self) -> None:
        """Waits at most `_LINGER` seconds, in a task that was cancelled."""


def over_here() -> Over:
    """For the running task. Raises AgentError where none of asyncio or trio runs."""
    if "trio" in sys.modules:
        import sniffio  # trio brings it

        try:
            if sniffio.current_async_library() == "trio":
                return _TrioOver(sys.modules["trio"])
        except sniffio.AsyncLibraryNotFoundError:
            pass
    return _AsyncioOver()


class _AsyncioOver:
    def __init__(self) -> None:
        import asyncio

        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            raise AgentError("The ..._async methods are awaited in an event loop of asyncio or trio") from None
        self._future = self._loop.create_future()
        self._wait = asyncio.wait  # which leaves the future as it is when the task is cancelled

    def tell(self) -> bool:
        try:
            self._loop.call_soon_threadsafe(self._set)
        except RuntimeError:
            return False
        return True

    def _set(self) -> None:
        if not self._future.done():
            self._future.set_result(None)

    async def wait(self) -> None:
        await self._wait((self._future,))

    async def linger(self) -> None:
        await self._wait((self._future,), timeout=_LINGER)


class _TrioOver:
    def __init__(self, trio: Any) -> None:
        self._trio = trio
        self._token = trio.lowlevel.current_trio_token()
        self._event = trio.Event()

    def tell(self) -> bool:
        try:
            self._token.run_sync_soon(self._event.set)
        except self._trio.RunFinishedError:
            return False
        return True

    async def wait(self) -> None:
        await self._event.wait()

    async def linger(self) -> None:
        with self._trio.CancelScope(deadline=self._trio.current_time() + _LINGER, shield=True):
            await self._event.wait()
