"""One run of the embedded engine: a query, a provider, the tools of all servers, the events of what happens."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..errors import AgentError
from ..events import GopherAgentEvent
from ..oauth.errors import SignInError
from ..providers import ToolAnswer, ToolSpec
from ..redaction import redacted_error
from ..toolset.errors import SessionLostError, ToolsetError
from ..toolset.results import result_text
from .base import RunOutcome

if TYPE_CHECKING:
    from ..providers import Provider
    from ..toolset.toolset import Toolset
    from ._asker import LoopAsker

_log = logging.getLogger("gopher_mcp_python.embedded")


class Tools:
    """The tools of all servers under one roof. A name that two servers use keeps its first owner; the later one's tool
    is `server__name` (`server_2__name` where two servers are called the same)."""

    def __init__(self, toolsets: list[Toolset]) -> None:
        self._owners: dict[str, tuple[Toolset, str]] = {}
        self.specs: list[ToolSpec] = []
        for toolset in toolsets:
            for name, tool in toolset.tools.items():
                shown = self._free(name, toolset.connection.label)
                self._owners[shown] = (toolset, name)
                self.specs.append(ToolSpec(shown, tool.description or "", tool.input_schema))

    def _free(self, name: str, server: str) -> str:
        numbered = (f"{server}_{number}__{name}" for number in itertools.count(2))
        candidates = itertools.chain((name, f"{server}__{name}"), numbered)
        return next(candidate for candidate in candidates if candidate not in self._owners)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Raises ToolsetError."""
        if name not in self._owners:
            raise ToolsetError(f"there is no tool {name!r}; there are: {', '.join(sorted(self._owners))}")
        toolset, own_name = self._owners[name]
        result = await toolset.call_tool(own_name, arguments)
        return ToolAnswer(result_text(result), bool(result.is_error))


class Run:
    """Carries out one query. What providers do goes through here, so that it is counted and told."""

    def __init__(
        self,
        run_id: int,
        query: str,
        provider: Provider,
        tools: Tools,
        on_event: Callable[[GopherAgentEvent], object] | None,
    ) -> None:
        self.id, self.query = run_id, query
        self._provider = provider
        self._tools = tools
        self._on_event = on_event
        self.iteration = 0
        self.tokens = 0
        self._called: list[str] = []
        self._last_text: str | None = None

    async def carry_out(self, asker: LoopAsker) -> RunOutcome:
        try:
            text = await self._provider.answer(self)
        except Exception as error:
            self.tell("run_completed", status="error", error=redacted_error(error))
            if isinstance(error, AgentError):
                raise
            # Without its cause: a traceback would show the text as it was.
            raise AgentError(f"the run failed: {type(error).__name__}: {redacted_error(error)}") from None
        self.tell("run_completed", status="completed", final_answer=text, iteration_count=max(1, self.iteration))
        return RunOutcome(
            text, max(1, self.iteration), self.tokens, None, tuple(self._called), self._last_text, asker.asked
        )

    # ---- for providers ---------------------------------------------------------------------------------------------

    @property
    def tools(self) -> list[ToolSpec]:
        return self._tools.specs

    def begin_iteration(self) -> None:
        self.iteration += 1
        self.tell("iteration_start")

    def end_iteration(self) -> None:
        self.tell("iteration_end")

    async def call_tool(self, name: str, arguments: Mapping[str, Any], *, errors_as_text: bool = False) -> ToolAnswer:
        """Calls a tool and tells about it.

        Args:
            errors_as_text: what the server refuses becomes an answer that the model can read; a lost connection, a
                sign-in that failed and a disposed agent stay errors.

        Raises ToolsetError.
        """
        self.tell("tool_dispatched", tool=name, args=dict(arguments))
        self._called.append(name)
        try:
            answer = await self._tools.call(name, arguments)
        except (SessionLostError, SignInError):
            raise  # a person who said no would be asked again for each tool that the model tries
        except AgentError as error:
            self.tell("tool_result", tool=name, is_error=True, result=redacted_error(error))
            if not errors_as_text:
                raise
            return ToolAnswer(f"Error: {error}", True)
        self._last_text = answer.text
        self.tell("tool_result", tool=name, is_error=answer.is_error, result=answer.text)
        return answer

    def tell(self, kind: str, **data: Any) -> None:
        """Hands an event to the program; an exception of its callback is logged and goes no further."""
        if self._on_event is None:
            return
        try:
            self._on_event(GopherAgentEvent(kind, self.id, self.iteration, data))
        except Exception as error:
            _log.warning("on_event raised %s: %s", type(error).__name__, redacted_error(error))
