"""Asking somebody who is elsewhere: what a server asks is stored, and answered on a page or over HTTP (docs/store.md).

    GopherAgentElicitationOptions(handler=StoreElicitationHandler(store, caller="ada"))
    HandlerChain(store=StoreElicitationHandler(store, caller="ada"))  # where nobody sits before this program
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ..elicitation import GopherAgentElicitationRequest, GopherAgentElicitationResponse, is_async_handler
from ..store.errors import StoreError
from ..store.model import LONGEST_TIMEOUT_S, StoredElicitation
from ..store.rows import check_caller
from .elsewhere import PAUSE_S, Caller, Patience, StorePrompt, question_of
from .prompts import DECLINED, PersonAnswer, PersonPrompt, response_of
from .watch import Watch

if TYPE_CHECKING:
    from ..store.core import Store

__all__ = ["StoreElicitationHandler"]


class StoreElicitationHandler:
    """A handler that has somebody answer from elsewhere, for GopherAgentElicitationOptions, McpToolset, a policy or the
    end of a HandlerChain. A call of it waits; `handle_async` is the same for event loops.

    The question is a caller's: whoever may answer for them (a token with the scope "answer") sees it. It ends when it
    is answered, cancelled there or too old, and when nobody waits for the answer any more. An accepted form is judged
    once more against the server's schema; the third answer that doesn't fit ends the question. "Decline everything of
    this server" is not offered.

    Args:
        store: where questions are kept; stays yours to close.
        caller: whose question it is: a text, or a function of the request, called in the context of the agent's or
            toolset's call (so that it may read a context variable).
        timeout_s: limit for an answer in seconds, 1 to 1800; None: 1800. An earlier limit of the engine's or the
            options' counts, from 1 second.
        on_created: called with the StoredElicitation once somebody can answer it: send them its id. When it raises, the
            question is cancelled.

    Raises ValueError for another limit, a text that is no caller, and functions that are async.
    """

    gopher_has_no_line = True  # each question goes into a list of its caller's, so nobody waits for another answer

    def __init__(
        self,
        store: Store,
        *,
        caller: Caller,
        timeout_s: float | None = None,
        on_created: Callable[[StoredElicitation], object] | None = None,
    ) -> None:
        if timeout_s is not None and not (_is_number(timeout_s) and 1 <= timeout_s <= LONGEST_TIMEOUT_S):
            raise ValueError(f"timeout_s must be from 1 to {LONGEST_TIMEOUT_S} seconds, or None")
        if isinstance(caller, str):
            check_caller(caller)
        else:
            _check_function("caller must be a text or a function of the request", caller)
        if on_created is not None:
            _check_function("on_created must be a function of the stored elicitation", on_created)
        self._prompt = StorePrompt(store, caller, timeout_s, on_created)
        self.gopher_prompt: PersonPrompt = self._prompt

    def __repr__(self) -> str:
        return f"StoreElicitationHandler({self._prompt.store!r})"

    def __call__(self, request: GopherAgentElicitationRequest) -> GopherAgentElicitationResponse:
        """Asks and waits. Raises StoreError, RateLimited, and what `caller` and `on_created` raise."""
        return response_of(self._prompt.ask(request, Watch()))

    async def handle_async(self, request: GopherAgentElicitationRequest) -> GopherAgentElicitationResponse:
        """The same, awaited under asyncio or trio: no thread waits meanwhile, so that thousands may. Given to a
        McpToolset as its handler, it does not hear that a page was completed. When its task is cancelled, the question
        is, too; `caller` and `on_created` are called on a thread, in the task's context."""
        from ..awaiting import on_a_thread

        prompt = self._prompt
        new = question_of(request)
        if new is None:
            return response_of(DECLINED)
        one = await on_a_thread(partial(prompt.create, request, new), discard=prompt.end)
        try:
            await on_a_thread(partial(prompt.tell, one))
            return response_of(await self._awaited(request, one))
        except BaseException:
            # On a thread of its own, since a task that was cancelled can't wait for it.
            threading.Thread(target=prompt.end, args=(one,), name="gopher-mcp-store-end", daemon=True).start()
            raise

    handle_async.gopher_has_no_line = True  # type: ignore[attr-defined]

    async def _awaited(self, request: GopherAgentElicitationRequest, one: StoredElicitation) -> PersonAnswer:
        import anyio

        from ..awaiting import on_a_thread
        from ..store.aio import AsyncStore

        prompt = self._prompt
        waiting, patience = AsyncStore(prompt.store), Patience(prompt.store)
        while True:
            patience.begin()
            try:
                now = await waiting.wait(one.caller, one.id)
                return await on_a_thread(partial(prompt.answer, request, one, now.status))
            except StoreError as error:
                patience.spend(error)
            await anyio.sleep(PAUSE_S)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _check_function(rule: str, function: object) -> None:
    if not callable(function):
        raise ValueError(rule)
    if is_async_handler(function):
        raise ValueError(f"{rule}, and not async: nothing awaits it")
