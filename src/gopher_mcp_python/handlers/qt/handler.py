"""Handlers that ask in a window: one for threads, one for event loops."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal

from ..prompts import response_of
from ..watch import Watch
from .prompt import QtPrompt

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from ...elicitation import GopherAgentElicitationRequest, GopherAgentElicitationResponse

__all__ = ["AsyncQtElicitationHandler", "QtElicitationHandler"]

_LASTING = ("session", "always")


class _Handler:
    """What both have in common.

    Attributes:
        gopher_prompt: what agents and toolsets ask in the handler's place, and tell when nobody waits any more.
    """

    def __init__(
        self,
        parent: QWidget | None = None,
        *,
        timeout_s: float | None = None,
        lasting: Sequence[Literal["session", "always"]] = (),
    ) -> None:
        import_module(".dialog", __package__)  # now rather than when somebody waits for the first window
        self._timeout_s = _checked_timeout(timeout_s)
        self._lasting = _checked_lasting(lasting)
        self.gopher_prompt = QtPrompt(parent, timeout_s=self._timeout_s, any_platform=True)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(timeout_s={self._timeout_s!r})"

    def _watch(self) -> Watch:
        watch = Watch()
        watch.lasting = self._lasting
        return watch


class QtElicitationHandler(_Handler):
    """Asks in a window of this program. Goes wherever handlers go.

        GopherAgentElicitationOptions(handler=QtElicitationHandler(main_window))
        McpToolset(url, elicitation_handler=policy.around(QtElicitationHandler()))

    It waits on any thread but the GUI thread: there it raises QtPromptUnavailable at once, and likewise where the GUI
    thread is inside agent.run(), since nobody could serve the window. Agents answer "cancel" then; the error, which
    names the ways out, is logged and kept as `elicitation_cause`.

    Args:
        parent: the window that prompts belong to; None: they stand alone.
        timeout_s: limit for one answer (in seconds), then it is "cancel"; None or 0: none of this handler's.
        lasting: for a handler that a program calls itself: how long "decline everything of this server" may hold,
            "session", "always" or both; the answer is a `RememberedResponse` then. Agents, toolsets and policies say
            so themselves.

    Raises ValueError: a value of the wrong kind.
    """

    def __call__(self, request: GopherAgentElicitationRequest) -> GopherAgentElicitationResponse:
        """The person's answer. Raises QtPromptUnavailable."""
        return response_of(self.gopher_prompt.ask(request, self._watch()))


class AsyncQtElicitationHandler(_Handler):
    """The same for who awaits it: on an event loop in the GUI thread (qasync, PySide6.QtAsyncio), which goes on
    meanwhile, or in any other thread. Cancelling the await closes the window. The arguments are those of
    `QtElicitationHandler`."""

    async def __call__(self, request: GopherAgentElicitationRequest) -> GopherAgentElicitationResponse:
        """The person's answer. Raises QtPromptUnavailable."""
        return response_of(await self.gopher_prompt.ask_async(request, self._watch()))


def _checked_timeout(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value) or value < 0:
        raise ValueError("timeout_s must be a number of seconds, 0 or None for no limit")
    return float(value) or None


def _checked_lasting(value: Any) -> tuple[Literal["session", "always"], ...]:
    found = (value,) if isinstance(value, str) else tuple(value)
    if not all(one in _LASTING for one in found):
        raise ValueError('lasting is made of "session" and "always"')
    return found
