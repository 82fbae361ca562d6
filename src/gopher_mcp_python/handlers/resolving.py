"""An answer that another thread gives, awaited on an event loop: for programs with a dialog of their own.

    future: concurrent.futures.Future[ElicitResult] = concurrent.futures.Future()
    show_on_the_gui_thread(request, future)                    # sets the future's result when it is answered
    return await resolve_elicitation(future, 120, on_abandon=close_the_dialog)
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from .. import sdk_import
from ..elicitation import is_async_handler
from ..redaction import log_failure

if TYPE_CHECKING:
    from mcp_types import ElicitResult

__all__ = ["build_declined_result", "resolve_elicitation"]

_log = logging.getLogger("gopher_mcp_python.elicitation")
_LONGEST_WAIT = 86400.0  # seconds in one piece: timers of Qt end at 24 days


def build_declined_result() -> ElicitResult:
    """The answer when no operator is available to ask: a decline, which refuses without pretending that anybody
    answered. A result of the MCP SDK that is installed, 1.x or 2.x."""
    sdk_import.load("mcp.types")
    types: Any = sys.modules["mcp.types"]
    return cast("ElicitResult", types.ElicitResult(action="decline"))


async def resolve_elicitation(
    future: Future[ElicitResult], timeout_s: float | None, *, on_abandon: Callable[[], None] | None = None
) -> ElicitResult:
    """Awaits the operator's answer; a decline when none comes in time.

    Either the answer is returned or `on_abandon` is called, never both. An answer that is there when the time is up is
    taken; one that comes later is dropped. The future itself is never cancelled.

    Args:
        future: resolved by the GUI thread, or any other, when the operator has answered. One that is cancelled counts
            as a decline, since nobody answered; its exception is raised here. In both cases nothing is abandoned:
            whoever ended it knows.
        timeout_s: how long to wait (in seconds). 0 or less: only for what is there already; None or infinity: for ever.
        on_abandon: called once, on this loop, when the wait is given up on: the time is up, or the caller is cancelled.
            What it raises is logged.

    Returns:
        The operator's answer, or a decline.

    Raises:
        CancelledError: the caller was cancelled while it waited.
        ValueError: `timeout_s` is not a number, or `on_abandon` not a plain function. Nothing was waited for.
    """
    limit = _checked_limit(timeout_s)
    if on_abandon is not None and (not callable(on_abandon) or is_async_handler(on_abandon)):
        raise ValueError("on_abandon must be a plain function without arguments")
    try:
        await _until_done(future, limit)
    except BaseException:  # cancelled, or the coroutine is closed
        _abandon(on_abandon)
        raise
    if not future.done():
        _abandon(on_abandon)
        return build_declined_result()
    return build_declined_result() if future.cancelled() else future.result()


def _checked_limit(timeout_s: object) -> float | None:
    if timeout_s is None:
        return None
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, (int, float)) or timeout_s != timeout_s:  # NaN
        raise ValueError("timeout_s must be a number of seconds, or None for no limit")
    return None if timeout_s > sys.maxsize else max(0.0, float(timeout_s))


async def _until_done(future: Future[ElicitResult], limit: float | None) -> None:
    """Returns when the future is done or the time (in seconds; None: no limit) is up. Leaves the future alone."""
    loop = asyncio.get_running_loop()
    told: asyncio.Future[None] = loop.create_future()

    def tell() -> None:
        if not told.done():
            told.set_result(None)

    def done(_: object) -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(tell)

    future.add_done_callback(done)
    end = None if limit is None else loop.time() + limit
    while not future.done():
        left = _LONGEST_WAIT if end is None else min(end - loop.time(), _LONGEST_WAIT)
        if left <= 0:
            return
        await asyncio.wait((told,), timeout=left)  # which, unlike wait_for, loses no cancellation


def _abandon(on_abandon: Callable[[], None] | None) -> None:
    """Tells that nobody reads the answer any more. A failure must not take the place of the result."""
    if on_abandon is None:
        return
    try:
        on_abandon()
    except Exception as error:
        log_failure(_log, "on_abandon failed", error)
