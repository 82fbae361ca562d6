"""What a policy decides and what it is told to remember."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ..elicitation import GopherAgentElicitationAction, GopherAgentElicitationResponse
from ..errors import AgentError
from .asked import Asked

__all__ = ["Lasting", "PolicyDecision", "PolicyStoreError", "Remembered", "RememberedResponse", "Verdict", "find"]

Verdict = Literal["allow", "ask", "decline", "block"]
Lasting = Literal["session", "always"]


class PolicyStoreError(AgentError):
    """The file of remembered decisions can't be read or written. The text names the file and the remedy."""


@dataclass(frozen=True, slots=True)
class PolicyDecision:
    """What a policy does with a request.

    Attributes:
        decision: "allow" (accepted at once), "ask" (the wrapped handler answers), "decline" or "block" (declined at
            once; a block holds whatever other rules say).
        rule: which rule decided, as a phrase for people. Holds no URL and no answer.
        content: the answers of an accepted form; not in the repr.
    """

    decision: Verdict
    rule: str
    content: Mapping[str, Any] | None = field(default=None, repr=False)

    @property
    def action(self) -> str | None:
        """"accept" or "decline"; None when the wrapped handler is asked."""
        return {"allow": "accept", "ask": None}.get(self.decision, "decline")


class RememberedResponse(GopherAgentElicitationResponse):
    """A handler's answer that holds from now on, given to the policy around the handler.

        return RememberedResponse("decline", lasts="always")

    An accepted page is remembered for that very host, a refused one too; a refused form for all forms of that server;
    an accepted form is never remembered, since its answers are not kept. `whole_server=True` with "decline" refuses
    everything of that server.
    """

    __slots__ = ("lasts", "whole_server")

    def __init__(
        self,
        action: GopherAgentElicitationAction | str,
        content: Mapping[str, Any] | None = None,
        *,
        lasts: Lasting,
        whole_server: bool = False,
        finished: Callable[[], Any] | None = None,
    ) -> None:
        """Raises ValueError like GopherAgentElicitationResponse; for `lasts` other than "session" or "always"; for
        "cancel", which is no decision; and for `whole_server` with anything but "decline"."""
        super().__init__(action, content, finished=finished)
        checked_lasting(lasts)
        if action == "cancel":
            raise ValueError('"cancel" is no decision and can\'t be remembered: answer "accept" or "decline"')
        if whole_server and action != "decline":
            raise ValueError('whole_server is only for "decline": pages are accepted host by host')
        self.lasts: Lasting = lasts
        self.whole_server = whole_server


def checked_lasting(lasts: object) -> None:
    if lasts not in ("session", "always"):
        raise ValueError('lasts must be "session" or "always"')


@dataclass(frozen=True, slots=True)
class Remembered:
    """A decision that holds for later requests.

    Attributes:
        decision: "allow" (pages only), "decline", or "block" (everything of this server).
        server: its name.
        address: scheme, host and port of the server, or its program's name; None when it was not known.
        digest: of the server's URL or command; None when it was not known.
        mode: "url" or "form"; None for a block.
        host: of the page; None for forms and blocks.
    """

    decision: Verdict
    server: str | None
    address: str | None
    digest: str | None
    mode: str | None = None
    host: str | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for two decisions on the same thing, of which the later one holds."""
        return self.server, self.digest, self.mode, self.host

    def is_stale(self, asked: Asked) -> bool:
        """Whether the server of this name has become another one."""
        return self.server == asked.server and asked.digest is not None and self.digest != asked.digest

    def holds_for(self, asked: Asked) -> bool:
        """Whether it decides this request. Where it is not known which server asks, a refusal holds by name alone."""
        if self.server != asked.server:
            return False
        if self.digest != asked.digest and (asked.digest is not None or self.decision == "allow"):
            return False
        if self.decision == "block":
            return True
        if self.mode != asked.mode or self.host != asked.host:
            return False
        return self.decision != "allow" or (asked.mode == "url" and asked.is_sound)


def find(decisions: list[Remembered], asked: Asked) -> Remembered | None:
    """The decision that holds for the request: refusals before anything else."""
    order = {"block": 0, "decline": 1, "allow": 2}
    holding = [one for one in decisions if one.holds_for(asked)]
    return min(holding, key=lambda one: order[one.decision], default=None)
