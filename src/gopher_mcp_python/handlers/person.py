"""The person behind a prompt, as an engine asks them: what they, or a policy, refused for good is not asked again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from .prompts import DECLINED, PersonAnswer, PersonPrompt, prompt_of, response_of
from .watch import Watch

if TYPE_CHECKING:
    from ..elicitation import GopherAgentElicitationRequest, GopherAgentElicitationResponse
    from ..policy.guard import Guard

__all__ = ["Person"]

Lasting = Literal["session", "always"]


class Person:
    """Asked by one agent or toolset. Any thread.

    Where no policy stands in front of them, "decline everything of this server" holds as long as this object.
    """

    def __init__(self, prompt: PersonPrompt, guard: Guard | None) -> None:
        self._prompt = prompt
        self._guard = guard
        self._refused: set[str] = set()
        self._refusals: dict[str | None, object] = {}  # a new mark each time that everything of a server was refused

    @classmethod
    def behind(cls, handler: Any, open_browser: Any) -> Person | None:
        """The person whom this handler asks; None for one of the program's own, which asks as it likes."""
        guard: Guard | None = getattr(handler, "gopher_guard", None)
        inner = handler if guard is None else guard.inner
        if inner is None:
            from .chain import default_prompt

            return cls(default_prompt(open_browser), guard)
        prompt = prompt_of(inner)
        return None if prompt is None else cls(prompt, guard)

    @property
    def outstays(self) -> bool:
        """Whether asking may go on when nobody waits for the answer any more."""
        return bool(getattr(self._prompt, "outstays", False))

    def check_thread(self) -> None:
        """For who is about to wait on this thread. Raises PromptUnavailable where the prompt would need the thread."""
        check = getattr(self._prompt, "check_thread", None)
        if check is not None:
            check()

    def ask(self, request: GopherAgentElicitationRequest, watch: Watch) -> tuple[PersonAnswer, bool]:
        """The answer, and whether it came without asking them. Raises what the prompt raises."""
        if self._guard is None:
            return (DECLINED, True) if self.has_refused(request) else (self._asked(request, watch), False)
        asked: list[PersonAnswer] = []

        def further() -> GopherAgentElicitationResponse:
            asked.append(self._asked(request, watch))
            return response_of(asked[0])

        answer = self._guard.ask_here(request, further)
        return (asked[0], False) if asked else (PersonAnswer(answer.action, answer.content), True)

    def ask_in_turn(self, request: GopherAgentElicitationRequest, watch: Watch) -> PersonAnswer:
        """Asks one who stood in a line: the policy has let it pass, but may have been told something else meanwhile."""
        refused = self.has_refused(request) if self._guard is None else self._guard.refuses(request)
        return DECLINED if refused else self._asked(request, watch)

    def has_refused(self, request: GopherAgentElicitationRequest) -> bool:
        """Whether they want to hear nothing more of this server; where there is a policy, that one knows."""
        return request.server in self._refused

    def _asked(self, request: GopherAgentElicitationRequest, watch: Watch) -> PersonAnswer:
        """Asks. Who refuses everything of a server has refused, too, what else of it is open or stands in line."""
        watch.lasting = self._lasting(request)
        server, is_open = request.server, watch.is_open
        before = self._refusals.get(server)
        watch.is_open = lambda: self._refusals.get(server) is before and is_open()
        answer = self._prompt.ask(request, watch)
        if answer.whole_server is not None and server is not None:
            if self._guard is None:
                self._refused.add(server)
            self._refusals[server] = object()
        elif answer.action == "cancel" and self._refusals.get(server) is not before:
            return DECLINED
        return answer

    def _lasting(self, request: GopherAgentElicitationRequest) -> tuple[Lasting, ...]:
        if self._guard is not None:
            return self._guard.lasting(request)
        return () if request.server is None else ("session",)
