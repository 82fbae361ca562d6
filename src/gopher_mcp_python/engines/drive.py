"""Waiting for an engine's call and answering what it asks meanwhile: one loop for both engines.

The call object is `_bridge.Call` or the embedded engine's own one with the same methods. The person's time does not
count: both stop their clock while a request is open.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Protocol

from .. import stopping
from ..errors import AgentError, TimeoutError
from ..exiting import stand_still
from ..ffi import _bridge

if TYPE_CHECKING:
    from ..elicitor import Elicitor, Pending

__all__ = ["DrivenCall", "drive"]

_SLICE_MS = 50  # how soon a signal, a handler's deadline or `stopping.CURRENT` is noticed


class DrivenCall(Protocol):
    """What `drive` needs of a call; see `_bridge.Call`."""

    def wait(self, slice_ms: int) -> int: ...

    def take(self) -> Pending | None: ...

    def leave(self) -> None: ...


def drive(call: DrivenCall, elicitor: Elicitor, *, what: str) -> None:
    """Returns when the call is done; the caller then reads its outcome and leaves it.

    `what` names the call in messages ("the run"). Raises TimeoutError when the call's own time was up and AgentError
    when its agent was disposed meanwhile or the call was called off (`stopping.CURRENT`); in all these cases, and when
    a KeyboardInterrupt or SystemExit passes (from a signal or from a handler), the call has been left: its open
    requests are cancelled and nobody waits for it any more.
    """
    desk = _Desk(elicitor)
    try:
        while True:
            stopping.check(what)
            wake = call.wait(0 if desk.can_start() else _SLICE_MS)
            if wake in (_bridge.WAKE_DONE, _bridge.WAKE_CLOSED):
                stand_still()
            if wake == _bridge.WAKE_DONE:
                elicitor.raise_interrupt()
                return
            if wake == _bridge.WAKE_TIMEOUT:
                raise TimeoutError(
                    f"{what} took longer than its timeout_ms and was given up; the time in which a person was asked "
                    "is not counted"
                )
            if wake == _bridge.WAKE_CLOSED:
                raise AgentError(f"Agent has been disposed while {what} was under way")
            if wake == _bridge.WAKE_REQUEST:
                desk.add(call.take())
            desk.work()
    except BaseException:
        call.leave()
        raise


class _Desk:
    """Requests of one call, answered one after another: on this thread, or on a helper thread when the handler is the
    caller's own and has a time limit or the call may be called off (a helper can be left behind, this thread can't)."""

    def __init__(self, elicitor: Elicitor) -> None:
        self._elicitor = elicitor
        self._beside = elicitor.needs_helper or stopping.CURRENT.get() is not None
        self._waiting: deque[Pending] = deque()
        self._helper: threading.Thread | None = None
        self._helped: Pending | None = None

    def add(self, pending: Pending | None) -> None:
        if pending is not None:
            self._waiting.append(pending)

    def can_start(self) -> bool:
        return bool(self._waiting) and not self._helper_busy()

    def work(self) -> None:
        self._elicitor.raise_interrupt()
        if not self.can_start():
            return
        pending = self._waiting.popleft()
        if self._beside:
            self._helped = pending
            self._helper = self._elicitor.answer_on_helper(pending)
        else:
            self._elicitor.answer(pending)

    def _helper_busy(self) -> bool:
        """A helper whose request is over (its deadline passed) no longer holds up the next one."""
        if self._helper is None or self._helped is None:
            return False
        if self._helped.is_open():
            return self._helper.is_alive()
        self._elicitor.gone(self._helped)
        return False
