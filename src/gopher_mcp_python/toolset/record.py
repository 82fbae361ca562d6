"""What is known of one request under way: who asked, its clock, its open prompts, what the wire said.

The record travels in a `ContextVar`. The SDK's HTTP transports send each message in its sender's context and hand what
comes back on that message's own stream to handlers in the same context, so an elicitation finds the call that it
belongs to, even with many calls at once. Other transports (stdio) carry no such link; see `Session.owner_of`.
"""

from __future__ import annotations

from collections.abc import Hashable
from contextvars import Context, ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import AgentError
from .clock import PausableClock, counting

if TYPE_CHECKING:
    from .elicitation import Prompt


@dataclass(eq=False)
class Record:
    """One request (or one tool call with all its rounds) of ours.

    Attributes:
        what: what is called, for messages; None for connecting and listing.
        tool: the tool's name; None for everything else.
        person: who is asked, where the caller said so.
        context: of whoever made the call; handlers see it.
        clock: stands still while one of its prompts is open.
        prompts: questions asked on behalf of it, by key; an answered one answers its repetition.
        over: the request has ended; what still comes in its context belongs to no call.
        http_status: of the last answer to one of its POSTs; None before, and on other transports.
        http_session: whether that POST named a session.
        http_error: the JSON of an HTTP error's body (gateways put the server's own error there).
        raw_result: the last result as it came, for the canonical JSON of questions inside it.
        cause: what a handler raised.
        interrupt: the KeyboardInterrupt or SystemExit that a handler raised.
        failure: why it can't succeed any more, where the SDK's own error would not say it.
        asked: whether anybody was asked anything.
    """

    what: str | None = None
    tool: str | None = None
    person: Hashable = None
    context: Context | None = None
    clock: PausableClock = field(default_factory=lambda: PausableClock(None))
    prompts: dict[tuple[str | None, str | None, str], Prompt] = field(default_factory=dict)
    over: bool = False
    http_status: int | None = None
    http_session: bool = False
    http_error: Any = None
    raw_result: dict[str, Any] | None = None
    cause: BaseException | None = None
    interrupt: BaseException | None = None
    failure: AgentError | None = None
    asked: bool = False

    def give_up(self, failure: AgentError) -> None:
        """There is nothing left to wait for: it ends now, with this error."""
        self.failure = failure
        self.clock.stop()

    def take_over(self, other: Record) -> None:
        """What the wire said to a request that was made on behalf of this one."""
        self.http_status, self.http_session, self.http_error = other.http_status, other.http_session, other.http_error
        self.failure = self.failure or other.failure

    def finish(self) -> None:
        """The request is over: whatever is still asked on its behalf is taken back (and answered with cancel)."""
        self.over = True
        self.withdraw()

    def withdraw(self) -> None:
        for prompt in self.prompts.values():
            prompt.withdraw()


_current: ContextVar[Record | None] = ContextVar("gopher_mcp_record", default=None)


def current_record() -> Record | None:
    return _current.get()


class under_way:
    """`with under_way(record):` makes `record` the one that everything sent inside belongs to."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def __enter__(self) -> Record:
        self._token = _current.set(self._record)
        self._counting = counting(self._record.clock)
        self._counting.__enter__()
        return self._record

    def __exit__(self, *_: object) -> None:
        self._counting.__exit__(None, None, None)
        _current.reset(self._token)
