"""What every engine is to the rest of the package: one function `create(spec)` and the agent that it returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from ..elicitor import Elicitor
    from ..first_step import SignIns
    from ..runtime_options import GopherAgentCreateOptions

__all__ = ["CreateSpec", "EngineAgent", "EngineName", "Factory", "RunOutcome"]

Factory = Literal["json", "api_key", "url", "server_id", "server_name", "gateway_id", "gateway_name"]
EngineName = Literal["native", "embedded"]


@dataclass(frozen=True, slots=True, repr=False)
class CreateSpec:
    """All that an engine needs to make an agent, normalised. Shared by both engines.

    `target` is the URL, the server configuration's JSON text, an id or a name, or "" for the api_key factory.
    `server` is the label that people see. `options.elicitation` is never None, `elicitor` was made from it.
    `sign_ins` is for servers that demand a token first; None: nobody signs in. `known_servers` is the configuration
    that stands behind a factory of the Gopher service, where it was fetched.
    """

    factory: Factory
    provider: str
    model: str
    target: str
    api_key: str | None
    options: GopherAgentCreateOptions
    elicitor: Elicitor
    server: str
    sign_ins: SignIns | None = None
    known_servers: str | None = None

    def __repr__(self) -> str:
        return f"CreateSpec(factory={self.factory!r}, provider={self.provider!r}, server={self.server!r})"


@dataclass(frozen=True, slots=True, repr=False)
class RunOutcome:
    """A run that ended well. The last three fields are for `authorization_text`: what ran, and whether anybody was
    asked."""

    text: str
    iterations: int = 1
    tokens: int = 0
    elicitation_cause: BaseException | None = None
    tools_called: tuple[str, ...] = ()
    last_tool_text: str | None = None
    elicited: bool = False

    def __repr__(self) -> str:
        return f"RunOutcome(<{len(self.text)} characters>, iterations={self.iterations}, tokens={self.tokens})"


class EngineAgent(Protocol):
    """An agent of one engine. `run` blocks its caller only; `release` never blocks, is idempotent, and may be called
    from any thread, a handler included."""

    @property
    def name(self) -> EngineName: ...

    def run(self, query: str, timeout_ms: int) -> RunOutcome:
        """Runs a query; `timeout_ms` 0 is no limit (in milliseconds, without the time in which a person was asked).
        Raises AgentError, TimeoutError, ApiKeyError, ConnectionError; KeyboardInterrupt passes."""
        ...

    def release(self) -> None: ...
