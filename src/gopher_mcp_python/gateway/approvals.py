"""The confirmations of calls: asked for, found again, used once.

The approval is a row of the store, bound to caller, server, tool and the exact arguments. It is consumed before the
server is called and completed when its result is in. So whatever dies in between, no call runs without an approval and
none twice by one: an approval that is consumed and not completed stands for a call whose outcome nobody knows, which is
said, and which only another confirmation by a person runs again.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import anyio
import anyio.lowlevel
import anyio.to_thread

from ..display import safe_line
from ..redaction import log_failure
from ..store.errors import ElicitationNotFound, StoreError
from ..toolset.canonical import canonical_json
from .held import UNKNOWN_BEFORE, HeldCall, Pending, Unsuitable

__all__ = ["Approvals"]

_log = logging.getLogger("gopher_mcp_python.gateway")
T = TypeVar("T")
# Seconds for which the approval of a call stands that the server refused before it began.
UNSPENT_SECONDS = 300.0
# Confirmed calls that may wait for their next round at the same time; older ones are given up.
MAX_GOING = 10_000


class Approvals:
    """The confirmations of a gateway.

    Args:
        store: where they are; any of its replicas' gateways may finish what another one began.
        timeout_s: how long a confirmation may wait for its answer.
        decline_s: how long a refusal stands before the same call may ask again.
    """

    def __init__(self, store: Any, *, timeout_s: int = 300, decline_s: float = 60.0) -> None:
        self._store = store
        self._timeout_s = timeout_s
        self._decline_s = decline_s
        # Approvals whose call the server refused before it began (-32042), and until when they stand.
        self._unspent: dict[str, float] = {}
        self._asking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        # Confirmed calls that wait for their next round, each with what only that round brings along, once.
        self._going: dict[str, str] = {}

    async def find(self, call: HeldCall) -> tuple[str, Any]:
        """The state of the newest confirmation of this very call: "pending" (with it), "approved", "unspent" (consumed
        for a call that the server refused before it began), "declined", "unknown" (each with its id), or "none".

        Raises StoreError; Unsuitable for arguments that no confirmation can be about.
        """
        try:
            stored = await self._do(
                self._store.find_confirmation, call.caller, tool=call.tool, arguments=call.arguments, server=call.server
            )
        except ValueError:
            raise Unsuitable from None
        if stored is None:
            return "none", None
        state: str = await self._do(self._store.confirmation_state, call.caller, stored.id)
        if state == "used":  # with a result, or without one
            state = await self._consume(call, stored.id)
        if state == "unknown" and stored.id in self._unspent:
            if self._stands(stored.id):
                return "unspent", stored.id
            del self._unspent[stored.id]
            await self.complete(call, stored.id)  # nothing ran, and that is known
            return "none", None
        if state == "pending":
            before = UNKNOWN_BEFORE if stored.message.startswith(UNKNOWN_BEFORE) else ""
            return state, Pending(stored.id, stored.expires_at, before)
        if state in ("declined", "failed"):
            ended = stored.ended_at or stored.created_at
            fresh = datetime.now(timezone.utc) - ended < timedelta(seconds=self._decline_s)
            return ("declined", stored.id) if fresh else ("none", None)
        return (state, stored.id) if state in ("approved", "unknown") else ("none", None)

    async def find_or_ask(self, call: HeldCall) -> tuple[str, Any]:
        """As `find`, but where it is "none" or "unknown" a confirmation is asked for and comes with it. However many of
        the same calls come at the same time, there is one, so that a person who answers it has answered them all."""
        found, what = await self.find(call)
        if found not in ("none", "unknown"):
            return found, what
        key = canonical_json([call.caller, call.server, call.tool, call.arguments])
        lock = self._asking.get(key)
        if lock is None:
            lock = self._asking[key] = asyncio.Lock()
        async with lock:
            found, what = await self.find(call)
            if found in ("none", "unknown"):
                what = await self.create(call, UNKNOWN_BEFORE if found == "unknown" else "")
            return found, what

    async def create(self, call: HeldCall, before: str = "") -> Pending:
        """Stores a confirmation to be answered. Raises StoreError, RateLimited."""
        message = f"{before}{safe_line(call.tool)} of {safe_line(call.server)} may change or delete something. Run it?"
        stored = await self._do(
            self._store.create_confirmation,
            call.caller,
            tool=call.tool,
            arguments=call.arguments,
            server=call.server,
            message=message,
            timeout_s=self._timeout_s,
            once=True,  # another gateway on this store may have been quicker
        )
        return Pending(stored.id, stored.expires_at, before)

    async def answer(self, call: HeldCall, id: str, confirmed: bool, by: str) -> None:
        """Records a person's answer; one that was given elsewhere before stands. Raises StoreError."""
        try:
            await self._do(self._store.respond, call.caller, id, {"confirmed": confirmed}, by=by)
        except ElicitationNotFound:
            raise StoreError("the confirmation is no longer in the store") from None

    async def withdraw(self, call: HeldCall, id: str, by: str) -> None:
        """The person turned away without an answer. Raises StoreError."""
        try:
            await self._do(self._store.cancel, call.caller, id, by=by)
        except ElicitationNotFound:
            return

    async def run(
        self, call: HeldCall, id: str, work: Callable[[], Awaitable[T]], *, resumed: bool = False
    ) -> tuple[str, T | None]:
        """Consumes an approval and does the work that it is for.

        Returns ("ran", its result), or why nothing ran. Raises what `work` raises, StoreError. Whoever does the work
        completes the approval when the outcome is known.

        Args:
            resumed: the call goes on in another round, so that its approval is consumed already.
        """
        open_for_this = resumed or self._stands(id)
        self._unspent.pop(id, None)
        with anyio.CancelScope(shield=True):
            state = await self._consume(call, id)
        if state != "consumed" and not (state == "unknown" and open_for_this):
            return state, None
        try:
            await anyio.lowlevel.checkpoint_if_cancelled()
        except BaseException:  # nothing was sent
            await self.complete(call, id)
            raise
        return "ran", await work()

    async def _consume(self, call: HeldCall, id: str) -> str:
        return await self._do(
            self._store.consume, call.caller, id, tool=call.tool, arguments=call.arguments, server=call.server
        )

    def park(self, id: str) -> str:
        """The call of this approval asks through its result. Returns what its next round has to bring along."""
        while len(self._going) >= MAX_GOING:
            del self._going[next(iter(self._going))]
        self._going[id] = secrets.token_urlsafe(16)
        return self._going[id]

    def goes_on(self, id: str, token: str) -> bool:
        """Whether this is the next round of the call, and the first to say so: no round is made twice."""
        return self._going.get(id) == token and self._going.pop(id, None) is not None

    def keep(self, id: str) -> None:
        """The server refused the call before it began: the approval stands for its next attempt, and not for long."""
        self._unspent[id] = time.monotonic() + UNSPENT_SECONDS

    def _stands(self, id: str) -> bool:
        return time.monotonic() <= self._unspent.get(id, float("-inf"))

    async def complete(self, call: HeldCall, id: str) -> None:
        """The call has its result. A store that is down meanwhile leaves it unknown, which is logged."""
        with anyio.CancelScope(shield=True):
            try:
                await self._do(self._store.complete, call.caller, id)
            except (StoreError, ElicitationNotFound) as error:
                log_failure(_log, f"The outcome of the confirmed call {id} could not be recorded", error)

    async def _do(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        return await anyio.to_thread.run_sync(partial(function, *args, **kwargs))
