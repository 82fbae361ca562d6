"""Functions that a program gives us, sync or async, called from an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from inspect import isawaitable
from typing import Any

from ..elicitation import is_async_handler
from .elicitation import HandlerInterrupted
from .errors import ElicitationHandlerError

__all__ = ["called", "on_helper", "outcome_of"]


async def outcome_of(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a handler returns. It has a task of its own: whoever is withdrawn or whose time is up does not wait for a
    handler that won't end, and hears nothing more of it; and a cancellation of the handler's own is told from theirs.

    Raises what it raises; HandlerInterrupted for KeyboardInterrupt and SystemExit; ElicitationHandlerError for all else
    that is no Exception and would end more than this question.
    """
    task = asyncio.ensure_future(_uninterrupted(function, *arguments))
    task.add_done_callback(_seen)
    try:
        await asyncio.wait((task,))
    finally:
        task.cancel()
    error = asyncio.CancelledError() if task.cancelled() else task.exception()
    if error is None:
        return task.result()
    if isinstance(error, Exception):
        raise error
    raise ElicitationHandlerError(f"the elicitation handler ended with {type(error).__name__}") from error


async def _uninterrupted(function: Callable[..., Any], *arguments: Any) -> Any:
    """A task that ends with an interrupt takes the loop with it."""
    try:
        return await called(function, *arguments)
    except (KeyboardInterrupt, SystemExit) as interrupt:
        raise HandlerInterrupted(interrupt) from None


def _seen(task: asyncio.Future[Any]) -> None:
    """What a handler that nobody waits for any more raises is nobody's."""
    if not task.cancelled():
        task.exception()


async def called(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a sync or async function of the program returns. A sync one runs on a thread of its own, in this context,
    since it may wait for a person; one that is marked as non-blocking runs here."""
    if is_async_handler(function) or getattr(function, "gopher_non_blocking", False):
        result = function(*arguments)
    else:
        result = await on_helper(function, *arguments)
    return await result if isawaitable(result) else result


async def on_helper(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function returns on a daemon thread that can be left behind: when the awaiting task is cancelled, its
    result interests nobody, and the end of the process does not wait for it."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[Any] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if outcome.done():
            return
        if error is None:
            outcome.set_result(result)
        elif isinstance(error, StopIteration):  # which a future can't hold
            outcome.set_exception(RuntimeError("the function raised StopIteration"))
        else:
            outcome.set_exception(error)

    def work() -> None:
        result, error = None, None
        try:
            result = function(*arguments)
        except BaseException as raised:  # handed to whoever waits
            error = raised
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(settle, result, error)

    thread = threading.Thread(target=copy_context().run, args=(work,), name="gopher-mcp-elicitation", daemon=True)
    thread.start()
    return await outcome
