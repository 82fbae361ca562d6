"""One run of the embedded engine: a query, a provider, the tools of all servers, the events of what happens."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..errors import AgentError
from ..oauth.errors import SignInError
from ..providers import MAX_ITERATIONS, ToolAnswer, ToolSpec
from ..redaction import redacted_error
from ..toolset.errors import SessionLostError, ToolsetError
from ..toolset.results import result_text
from .base import RunOutcome

if TYPE_CHECKING:
    from ..providers import Provider
    from ..run_events import RunEvents
    from ..toolset.toolset import Toolset
    from ._asker import LoopAsker

# Kinds whose data names the iteration, as the vendor's library does.
_WITH_ITERATION = frozenset(("llm_request", "llm_response", "iteration_end", "tool_dispatched", "tool_result"))


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

    def server_of(self, name: str) -> str | None:
        """The label of the server that has this tool."""
        return self._owners[name][0].connection.label if name in self._owners else None

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
    ) -> None:
        self.id, self.query = run_id, query
        self._provider = provider
        self._tools = tools
        self._events: RunEvents | None = None
        self.iteration = 0
        self._prompt_tokens = self._completion_tokens = 0
        self._called: list[str] = []
        self._last_text: str | None = None
        self._began = 0.0

    async def carry_out(self, asker: LoopAsker, events: RunEvents | None = None) -> RunOutcome:
        self._events, self._began = events, time.monotonic()
        try:
            text = await self._provider.answer(self)
        except Exception as error:
            self._tell_end("error", redacted_error(error), "")
            if isinstance(error, AgentError):
                raise
            # Without its cause: a traceback would show the text as it was.
            raise AgentError(f"the run failed: {type(error).__name__}: {redacted_error(error)}") from None
        self._tell_end("completed", None, text)
        return RunOutcome(
            text, max(1, self.iteration), self.tokens, None, tuple(self._called), self._last_text, asker.asked
        )

    # ---- for providers ---------------------------------------------------------------------------------------------

    @property
    def tools(self) -> list[ToolSpec]:
        return self._tools.specs

    @property
    def tokens(self) -> int:
        return self._prompt_tokens + self._completion_tokens

    def begin_iteration(self) -> None:
        self.iteration += 1
        left = MAX_ITERATIONS - self.iteration + 1
        self.tell("iteration_start", iteration_about_to_start=self.iteration, remaining_steps=left)

    def end_iteration(self, transition: str = "final") -> None:
        self.tell("iteration_end", transition=transition)

    def spend(self, prompt_tokens: int, completion_tokens: int) -> None:
        self._prompt_tokens += prompt_tokens
        self._completion_tokens += completion_tokens

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        errors_as_text: bool = False,
        call_id: str | None = None,
    ) -> ToolAnswer:
        """Calls a tool and tells about it.

        Args:
            call_id: the model's own name for the call.
            errors_as_text: what the server refuses becomes an answer that the model can read; a lost connection, a
                sign-in that failed and a disposed agent stay errors.

        Raises ToolsetError.
        """
        self._called.append(name)
        about = {
            "tool": name,
            "tool_call_id": call_id or f"call_{len(self._called)}",
            "source_server": self._tools.server_of(name),
        }
        self.tell("tool_dispatched", args=dict(arguments), **about)
        try:
            answer = await self._tools.call(name, arguments)
        except (SessionLostError, SignInError) as error:
            self.tell("tool_result", is_error=True, result=redacted_error(error), **about)
            raise  # a person who said no would be asked again for each tool that the model tries
        except AgentError as error:
            self.tell("tool_result", is_error=True, result=redacted_error(error), **about)
            if not errors_as_text:
                raise
            return ToolAnswer(f"Error: {error}", True)
        self._last_text = answer.text
        self.tell("tool_result", is_error=answer.is_error, result=answer.text, **about)
        return answer

    def tell(self, kind: str, **data: Any) -> None:
        """Tells who listens; an exception of the program's callback is logged and goes no further."""
        if self._events is not None and self._events.heard:
            named = {"iteration": self.iteration} if kind in _WITH_ITERATION else {}
            self._events.tell(kind, self.id, self.iteration, {**named, **data})

    def _tell_end(self, status: str, error: str | None, text: str) -> None:
        used = {"prompt": self._prompt_tokens, "completion": self._completion_tokens, "total": self.tokens}
        self.tell(
            "run_completed",
            status=status,
            error=error,
            final_answer=text,
            iteration_count=max(1, self.iteration),
            tokens_used=used,
            elapsed_ms=round((time.monotonic() - self._began) * 1000),
        )
