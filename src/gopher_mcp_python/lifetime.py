"""Who still has an agent: release exactly once, at dispose, when it is dropped, or at exit; never in a forked child."""

from __future__ import annotations

import atexit
import os
import warnings
import weakref
from typing import TYPE_CHECKING

from . import exiting
from .errors import AgentError

if TYPE_CHECKING:
    from .engines.base import EngineAgent

__all__ = ["Life"]

_LIVE: set[Life] = set()  # strong: an agent that nobody disposed of is still released at exit
_TO_HOOK = [True]  # once: taking it out is atomic


class Life:
    """One engine agent's time in this process. Holds the only reference that counts; never refers to its
    GopherAgent."""

    def __init__(self, engine: EngineAgent, server: str) -> None:
        self._box = [engine]  # taking it out is atomic, also in a finaliser that interrupts dispose()
        self._server = server
        self._pid = os.getpid()
        _LIVE.add(self)
        _hook_once()

    @property
    def inherited(self) -> bool:
        """Whether this is a forked child's copy of the parent's agent."""
        return self._pid != os.getpid()

    @property
    def over(self) -> bool:
        return not self._box

    def engine(self) -> EngineAgent:
        """The agent to run with. Raises AgentError when it was disposed of or belongs to the parent process."""
        if self.inherited:
            raise AgentError(
                "This agent was created before a fork and belongs to the parent process; create one in this process"
            )
        try:
            return self._box[0]
        except IndexError:
            raise AgentError("Agent has been disposed") from None

    def end(self) -> bool:
        """Releases the engine's agent unless that was done. True when this call was the one. Never blocks."""
        try:
            engine = self._box.pop()
        except IndexError:
            return False
        _LIVE.discard(self)
        if not self.inherited:  # the parent still uses what the engine holds
            engine.release()
        return True

    def watch(self, owner: object) -> None:
        """Ends with `owner`: an agent that is dropped without dispose() is released then, with a warning."""
        weakref.finalize(owner, _dropped, self).atexit = False


def _dropped(life: Life) -> None:
    if not life.over and life.end() and not life.inherited:
        warnings.warn(
            f"A GopherAgent for {life._server} was dropped without dispose(); use it in a with statement",
            ResourceWarning,
            stacklevel=2,
        )


def _hook_once() -> None:
    try:
        _TO_HOOK.pop()
    except IndexError:
        return
    atexit.register(_end_all)
    if hasattr(os, "register_at_fork"):
        from .handlers.turns import TERMINAL

        os.register_at_fork(after_in_child=TERMINAL.reset_after_fork)


def _end_all() -> None:
    exiting.begin()
    for life in list(_LIVE):
        life.end()
