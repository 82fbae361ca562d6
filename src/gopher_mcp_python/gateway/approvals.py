"""Calls that a person has to confirm: held, confirmed, run once; and what the caller is told meanwhile.

The approval is a row of the store, bound to caller, server, tool and the exact arguments. It is consumed before the
server is called and completed when its result is in. So whatever dies in between, no call runs without an approval and
none twice by one: an approval that is consumed and not completed stands for a call whose outcome nobody knows, which is
said, and which only another confirmation by a person runs again.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread

from ..display import safe_line, safe_text
from ..redaction import log_failure
from ..store.errors import ElicitationNotFound, RateLimited, StoreError

__all__ = ["META_KEY", "Approvals", "HeldCall", "Pending", "told"]

META_KEY = "gopher-mcp/confirmation"
_log = logging.getLogger("gopher_mcp_python.gateway")
T = TypeVar("T")


@dataclass(frozen=True)
class HeldCall:
    """A call that needs a confirmation.

    Attributes:
        shown: the tool's name as the client calls it.
        plain: whether the result may hold structured content (the tool declares none of its own).
    """

    caller: str
    server: str
    tool: str
    shown: str
    arguments: Mapping[str, Any] = field(repr=False)
    plain: bool = True

    def question(self, before: str = "") -> str:
        """What a person is asked: everything that the call does, nothing of it cut, nothing that drives a screen."""
        text = json.dumps(self.arguments, indent=2, ensure_ascii=False)
        return (
            f"{before}Run {safe_line(self.tool)} on {safe_line(self.server)}? It may change or delete something.\n\n"
            f"Tool: {safe_text(self.tool, limit=len(self.tool))}\nServer: {safe_text(self.server)}\n"
            f"Arguments:\n{safe_text(text, limit=len(text))}"
        )


@dataclass(frozen=True)
class Pending:
    """A confirmation that waits, and why it was asked for again, if it was."""

    id: str
    expires_at: datetime
    before: str = ""


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
        # Approvals whose call the server refused before it began (-32042), so that they still stand.
        self._unspent: set[str] = set()

    async def find(self, call: HeldCall) -> tuple[str, Any]:
        """The state of the newest confirmation of this very call: "pending" (with it), "approved", "unspent" (consumed
        for a call that the server refused before it began), "declined", "unknown" (each with its id), or "none".

        Raises StoreError, RateLimited.
        """
        stored = await self._do(
            self._store.find_confirmation, call.caller, tool=call.tool, arguments=call.arguments, server=call.server
        )
        if stored is None:
            return "none", None
        state: str = await self._do(self._store.confirmation_state, call.caller, stored.id)
        if state == "used":  # with a result, or without one
            state = await self._consume(call, stored.id)
        if state == "unknown" and stored.id in self._unspent:
            return "unspent", stored.id
        if state == "pending":
            before = UNKNOWN_BEFORE if stored.message.startswith(UNKNOWN_BEFORE) else ""
            return state, Pending(stored.id, stored.expires_at, before)
        if state in ("declined", "failed"):
            ended = stored.ended_at or stored.created_at
            fresh = datetime.now(timezone.utc) - ended < timedelta(seconds=self._decline_s)
            return ("declined", stored.id) if fresh else ("none", None)
        return (state, stored.id) if state in ("approved", "unknown") else ("none", None)

    async def create(self, call: HeldCall, before: str = "") -> Pending:
        """Stores a confirmation to be answered. Raises StoreError, RateLimited."""
        message = f"{before}{safe_line(call.server)} is asked to run {safe_line(call.tool)}, which may change or delete "
        stored = await self._do(
            self._store.create_confirmation,
            call.caller,
            tool=call.tool,
            arguments=call.arguments,
            server=call.server,
            message=message + "something",
            timeout_s=self._timeout_s,
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
        open_for_this = resumed or id in self._unspent
        self._unspent.discard(id)
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

    def keep(self, id: str) -> None:
        """The server refused the call before it began: the approval stands for its next attempt."""
        self._unspent.add(id)

    async def complete(self, call: HeldCall, id: str) -> None:
        """The call has its result. A store that is down meanwhile leaves it unknown, which is logged."""
        with anyio.CancelScope(shield=True):
            try:
                await self._do(self._store.complete, call.caller, id)
            except (StoreError, ElicitationNotFound) as error:
                log_failure(_log, f"The outcome of the confirmed call {id} could not be recorded", error)

    async def _do(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        return await anyio.to_thread.run_sync(partial(function, *args, **kwargs))


def told(call: HeldCall, status: str, text: str, pending: Pending | None = None, **more: Any) -> dict[str, Any]:
    """A tool result that says why nothing ran, for people and models in the text, for programs in `_meta` (and in the
    structured content, where the tool's own schema does not rule)."""
    facts: dict[str, Any] = {"status": status, "tool": call.tool, "server": call.server, **more}
    if pending is not None:
        facts |= {"id": pending.id, "expiresAt": pending.expires_at.isoformat()}
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": True, "_meta": {META_KEY: facts}}
    if call.plain:
        result["structuredContent"] = {META_KEY: facts}
    return result


def held(call: HeldCall, pending: Pending) -> dict[str, Any]:
    """The answer to a call that waits for its confirmation."""
    status = "unknown" if pending.before else "held"
    return told(
        call,
        status,
        f"{pending.before}Held: {call.shown} may change or delete something, so a person has to confirm it first. "
        f"Nothing was run. When the confirmation {pending.id} has been accepted, call {call.shown} again with exactly "
        "the same arguments.",
        pending,
    )


UNKNOWN_BEFORE = (
    "An earlier, confirmed call with the same arguments was begun, and its outcome is unknown: it may have run. It is "
    "not run again by itself. "
)


def unsuitable(call: HeldCall) -> dict[str, Any]:
    """The answer for arguments that no confirmation can be about."""
    text = f"{call.shown} has to be confirmed by a person, and its arguments are too large for that. It was not run."
    return told(call, "unsuitable", text)


def unavailable(call: HeldCall, error: Exception) -> dict[str, Any]:
    """The answer when the store can't be used: closed, not open."""
    if isinstance(error, RateLimited):
        text = f"Too many confirmations were asked for; {call.shown} was not run. Try again in {error.retry_after_s} s."
        return told(call, "rate_limited", text, retryAfter=error.retry_after_s)
    text = f"The store of confirmations can't be used, so {call.shown} was not run: nothing runs without it."
    return told(call, "unavailable", text)


REASONS = {
    "declined": "A person declined this call. It was not run.",
    "expired": "The approval of this call has expired. It was not run; call again to ask anew.",
    "used": "The approval of this call was used already. It was not run again; call again to ask anew.",
    "unknown": UNKNOWN_BEFORE + "Call again to ask for another confirmation.",
    "mismatch": "The approval is for another call. Nothing was run.",
}


def refused(call: HeldCall, state: str) -> dict[str, Any]:
    """The answer to a call whose confirmation was no yes, or is one no longer."""
    status = {"cancelled": "declined", "failed": "declined", "absent": "expired"}.get(state, state)
    return told(call, status, REASONS.get(status, "This call was not confirmed. It was not run."))
