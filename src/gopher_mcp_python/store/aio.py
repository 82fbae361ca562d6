"""The store for event loops of asyncio and trio: the same methods, awaited. No loop is held up, and a wait takes no
thread while it lasts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ..awaiting import on_a_thread
from ..telling import Over, over_here
from .listing import Page
from .model import NewElicitation, StoredElicitation
from .outcome import ConfirmationState, ConsumeState, Outcome
from .waiting import PULSE_S, Deadline

if TYPE_CHECKING:
    from .audit import Verification
    from .core import Store

__all__ = ["AsyncStore"]

T = TypeVar("T")


class AsyncStore:
    """A `Store`, awaited. What a cancelled task had begun goes on and may still be done: a transaction is short, and
    either whole or not at all."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def __repr__(self) -> str:
        return f"AsyncStore({self.store!r})"

    async def create(self, caller: str, new: NewElicitation, *, timeout_s: float = 300) -> StoredElicitation:
        """See Store.create."""
        return await on_a_thread(partial(self.store.create, caller, new, timeout_s=timeout_s))

    async def create_confirmation(
        self,
        caller: str,
        *,
        tool: str,
        arguments: Mapping[str, Any],
        server: str | None = None,
        message: str | None = None,
        timeout_s: float = 300,
        once: bool = False,
    ) -> StoredElicitation:
        """See Store.create_confirmation."""
        create = partial(self.store.create_confirmation, caller, tool=tool, arguments=arguments, server=server)
        return await on_a_thread(partial(create, message=message, timeout_s=timeout_s, once=once))

    async def respond(self, caller: str, id: str, response: Any, *, by: str | None = None) -> Outcome:
        """See Store.respond."""
        return await on_a_thread(partial(self.store.respond, caller, id, response, by=by))

    async def cancel(self, caller: str, id: str, *, by: str | None = None) -> Outcome:
        """See Store.cancel."""
        return await on_a_thread(partial(self.store.cancel, caller, id, by=by))

    async def get(self, caller: str, id: str) -> StoredElicitation:
        """See Store.get."""
        return await on_a_thread(partial(self.store.get, caller, id))

    async def pending(self, caller: str, *, limit: int = 100, after: str | None = None) -> Page:
        """See Store.pending."""
        return await on_a_thread(partial(self.store.pending, caller, limit=limit, after=after))

    async def result(self, caller: str, id: str) -> Any:
        """See Store.result."""
        return await on_a_thread(partial(self.store.result, caller, id))

    async def confirmation_state(self, caller: str, id: str) -> ConfirmationState:
        """See Store.confirmation_state."""
        return await on_a_thread(partial(self.store.confirmation_state, caller, id))

    async def is_confirmed(self, caller: str, id: str) -> bool:
        """See Store.is_confirmed."""
        return await on_a_thread(partial(self.store.is_confirmed, caller, id))

    async def find_confirmation(
        self, caller: str, *, tool: str, arguments: Mapping[str, Any], server: str | None = None
    ) -> StoredElicitation | None:
        """See Store.find_confirmation."""
        find = partial(self.store.find_confirmation, caller, tool=tool, arguments=arguments, server=server)
        return await on_a_thread(find)

    async def consume(
        self, caller: str, id: str, *, tool: str, arguments: Mapping[str, Any], server: str | None = None
    ) -> ConsumeState:
        """See Store.consume."""
        consume = partial(self.store.consume, caller, id, tool=tool, arguments=arguments, server=server)
        return await on_a_thread(consume)

    async def complete(self, caller: str, id: str) -> None:
        """See Store.complete."""
        await on_a_thread(partial(self.store.complete, caller, id))

    async def verify(self) -> Verification:
        """See Store.verify."""
        return await on_a_thread(self.store.verify)

    async def check(self) -> None:
        """See Store.check."""
        await on_a_thread(self.store.check)

    async def close(self) -> None:
        """See Store.close."""
        await on_a_thread(self.store.close)

    async def wait(
        self,
        caller: str,
        id: str,
        *,
        timeout_s: float | None = None,
        still_wanted: Callable[[], bool] | None = None,
    ) -> StoredElicitation:
        """See Store.wait. `still_wanted` is called in the event loop. A cancelled task leaves nothing behind."""
        await on_a_thread(self._listening)
        deadline, bell = Deadline(timeout_s), _Bell()
        with self.store._waiters.watching(id, bell.ring):
            while True:
                bell.fresh()
                row = await on_a_thread(partial(self.store._row, caller, id, surely_over=deadline.surely_over))
                deadline.meet(row)
                unwanted = still_wanted is not None and not still_wanted()
                if row.status != "pending" or deadline.passed or unwanted:
                    return await on_a_thread(partial(self.store._unsealed, row))
                await bell.heard(deadline, still_wanted)

    def _listening(self) -> None:
        """Not in the loop: a database may take seconds to be connected to."""
        self.store._usable()
        self.store._waiters.start()


class _Bell:
    """Rung on any thread, heard in one task."""

    def __init__(self) -> None:
        self._over: Over = over_here()
        self._rung = False

    def fresh(self) -> None:
        if self._rung:
            self._rung, self._over = False, over_here()

    def ring(self) -> None:
        over = self._over  # before: after `fresh` there is another one, which must not be told of what is heard
        self._rung = True
        over.tell()

    async def heard(self, deadline: Deadline, still_wanted: Callable[[], bool] | None) -> None:
        """Returns when it was rung, or there is another reason to look again."""
        import anyio

        while not self._rung and not deadline.passed and not deadline.surely_over:
            with anyio.move_on_after(deadline.left(PULSE_S)):
                await self._over.wait()
            if still_wanted is not None and not still_wanted():
                return
