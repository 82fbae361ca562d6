"""Questions of a server that asks on a way back (2025-11-25 and older), for a client that is asked through results.

The server's call stays open here while its question goes out as the call's result (`InputRequiredResult`); the next
round brings the answer, and the call goes on. It lives in this process: a round that another replica gets can't find
it, and one that does not come in time takes the call back.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mcp.shared.exceptions import MCPError

from ..toolset.errors import INVALID_PARAMS
from .channel import Channel, Passage

__all__ = ["OpenCall", "OpenCalls", "input_required"]

# Seconds that an open call waits for its client's next round.
ROUND_SECONDS = 600.0
# Calls that may be open so at the same time.
MAX_OPEN = 1000


def input_required(requests: Mapping[str, Any], state: str) -> dict[str, Any]:
    """The result that asks."""
    return {"resultType": "input_required", "inputRequests": dict(requests), "requestState": state}


class OpenCall:
    """One call with its questions.

    Args:
        passage: of the call; its way back to the client is each round's own.
        whose: what the next round has to bring along again: caller, method and parameters.
    """

    def __init__(self, passage: Passage, whose: str) -> None:
        self.id = secrets.token_urlsafe(18)
        self.whose = whose
        self._passage = passage
        self._questions: dict[str, tuple[str, Any, asyncio.Future[dict[str, Any]]]] = {}
        self._news = asyncio.Event()
        self._count = 0
        self.task: asyncio.Task[dict[str, Any]] | None = None
        self.timer: asyncio.TimerHandle | None = None

    async def ask(self, method: str, params: Any) -> dict[str, Any]:
        """A question of the server; returns the client's answer."""
        self._count += 1
        key = f"question-{self._count}"
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._questions[key] = (method, params, answer)
        self._news.set()
        try:
            return await answer
        finally:
            self._questions.pop(key, None)

    def start(self, work: Callable[[], Awaitable[dict[str, Any]]]) -> None:
        async def run() -> dict[str, Any]:
            return await work()

        self.task = asyncio.ensure_future(run())
        self.task.add_done_callback(_seen)

    def answered(self, responses: Any, channel: Channel) -> None:
        """What the client's next round brought. Raises MCPError when there is an answer missing."""
        self._passage.channel = channel
        given = responses if isinstance(responses, Mapping) else {}
        for key, (_, _, answer) in list(self._questions.items()):
            if not isinstance(given.get(key), Mapping):
                raise MCPError(INVALID_PARAMS, f"the answer to {key} is missing in inputResponses")
            if not answer.done():
                answer.set_result(dict(given[key]))
        self._questions.clear()

    async def next(self) -> dict[str, Any] | None:
        """Waits: the result, or None when there is something to be asked."""
        assert self.task is not None
        news = asyncio.ensure_future(self._news.wait())
        try:
            await asyncio.wait((self.task, news), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self.task.cancel()  # the client took its request back
            raise
        finally:
            news.cancel()
        if self.task.done():
            return self.task.result()
        self._news.clear()
        return None

    @property
    def requests(self) -> dict[str, Any]:
        return {key: {"method": method, "params": params} for key, (method, params, _) in self._questions.items()}


def _seen(task: asyncio.Task[Any]) -> None:
    """What it raised is no news where nobody waits for it any more."""
    if not task.cancelled():
        task.exception()


class OpenCalls:
    """All that wait for their next round."""

    def __init__(self) -> None:
        self._open: dict[str, OpenCall] = {}

    def park(self, call: OpenCall) -> None:
        """Keeps a call for its next round. Raises MCPError when too many wait."""
        if len(self._open) >= MAX_OPEN:
            assert call.task is not None
            call.task.cancel()
            raise MCPError(INVALID_PARAMS, "too many calls wait for answers; this one was given up")
        self._open[call.id] = call
        call.timer = asyncio.get_running_loop().call_later(ROUND_SECONDS, self._give_up, call)

    def take(self, id: str, whose: str) -> OpenCall:
        """The call that a round goes on with. Raises MCPError when it is not here, or another one's."""
        call = self._open.get(id)
        if call is None or call.whose != whose:
            raise MCPError(
                INVALID_PARAMS, "this call no longer waits for an answer here (or never did): call the tool anew"
            )
        del self._open[id]
        if call.timer is not None:
            call.timer.cancel()
        return call

    def _give_up(self, call: OpenCall) -> None:
        self._open.pop(call.id, None)
        if call.task is not None:
            call.task.cancel()

    def close(self) -> None:
        for call in list(self._open.values()):
            if call.timer is not None:
                call.timer.cancel()
            self._give_up(call)
