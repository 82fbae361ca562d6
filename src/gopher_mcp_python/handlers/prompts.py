"""Where a person can be asked: the terminal, a window, a notebook. All of them look alike to the engines.

A handler that has such a prompt says so with the attribute `gopher_prompt`: engines then call the prompt, which is told
with a `Watch` when nobody waits for the answer any more, in place of the handler, which is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from ..elicitation import GopherAgentElicitationResponse
from ..errors import AgentError

if TYPE_CHECKING:
    from ..elicitation import GopherAgentElicitationRequest
    from .watch import Watch

__all__ = [
    "CANCELLED", "DECLINED", "PersonAnswer", "PersonPrompt", "PromptUnavailable", "prompt_of", "response_of",
]  # fmt: skip


@dataclass(frozen=True)
class PersonAnswer:
    """What a person answered.

    Attributes:
        action: "accept", "decline" or "cancel".
        content: what an accepted form sends; None for everything else.
        whole_server: with "decline": everything of this server is to be declined from now on, for this "session" or
            "always"; one of what `Watch.lasting` offers.
    """

    action: str
    content: Mapping[str, Any] | None = field(default=None, repr=False)
    whole_server: Literal["session", "always"] | None = None


CANCELLED = PersonAnswer("cancel")
DECLINED = PersonAnswer("decline")


class PromptUnavailable(AgentError):
    """Nobody can be asked there, which showed only when it was tried. Nothing was shown."""


class PersonPrompt(Protocol):
    """A place where one person can be asked."""

    name: str

    def unusable(self) -> str | None:
        """Why nobody can be asked here and now, as a phrase for the log; None when somebody can. Cheap, any thread."""

    def ask(self, request: GopherAgentElicitationRequest, watch: Watch) -> PersonAnswer:
        """Asks and waits, on any thread. Ends with "cancel" when `watch` says that no answer is wanted any more, and a
        page with "accept" when it says that the server knows of the end. Calls `watch.on_shown()` once the person has
        the request before them. KeyboardInterrupt passes, for the caller to cancel; other exceptions are failures, and
        PromptUnavailable says that somebody else may be asked."""


def prompt_of(handler: object) -> PersonPrompt | None:
    """The prompt behind a handler, where it has one."""
    found: PersonPrompt | None = getattr(handler, "gopher_prompt", None)
    return found


def response_of(answer: PersonAnswer) -> GopherAgentElicitationResponse:
    """The answer as a handler gives it; what holds for the whole server as a policy remembers it."""
    if answer.whole_server is not None:
        from ..policy.decisions import RememberedResponse

        return RememberedResponse(answer.action, lasts=answer.whole_server, whole_server=True)
    return GopherAgentElicitationResponse(answer.action, answer.content)
