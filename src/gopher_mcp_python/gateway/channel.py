"""The gateway's side towards one client: what it declared, and the way back to it, messages unchanged.

The SDK's session takes typed requests and drops what it does not know. What passes through the gateway is not its to
change, so it goes as a request whose "model" is the message itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from ..redaction import log_failure
from ..toolset.errors import INTERNAL_ERROR
from ..toolset.record import Record

__all__ = ["Channel", "Client", "Passage", "RequestContext"]

_log = logging.getLogger("gopher_mcp_python.gateway")
RequestContext = ServerRequestContext[Any, Any]


@dataclass(frozen=True)
class Client:
    """Who is in front of the gateway.

    Attributes:
        caller: whose calls they are; approvals and stored questions belong to it.
        version: of the protocol that it speaks.
        capabilities: as it declared them.
        info: its name and version, as it said.
    """

    caller: str
    version: str
    capabilities: Mapping[str, Any] = field(repr=False)
    info: Mapping[str, Any] = field(repr=False)

    @property
    def modern(self) -> bool:
        return self.version in MODERN_PROTOCOL_VERSIONS

    @property
    def takes_forms(self) -> bool:
        """Whether it can show a form. An empty declaration is the older way to say so."""
        declared = self.capabilities.get("elicitation")
        return isinstance(declared, Mapping) and (not declared or "form" in declared)


class _Message:
    """A request or notification that the SDK sends as it is."""

    def __init__(self, method: str, params: Mapping[str, Any] | None) -> None:
        self.method = method
        self._params = params

    def model_dump(self, **_: Any) -> dict[str, Any]:
        return {"method": self.method, "params": self._params}


class _AsItCame:
    @staticmethod
    def model_validate(value: Any, **_: Any) -> Any:
        return value


class Channel:
    """The way back to a client: on a request's own stream, or on its connection's.

    Args:
        session: of one of its requests; any will do for the connection's stream.
        request_id: of the request whose stream is meant; None: the connection's.
        own_token: under which the server tells of progress to a client that named no token itself.
    """

    def __init__(self, session: ServerSession, request_id: Any = None, own_token: str | None = None) -> None:
        self._session = session
        self._request_id = request_id
        self._own_token = own_token

    async def request(self, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
        """Asks the client and returns its result as it came. Raises MCPError: the client's own error, or that there
        is no way back."""
        metadata = ServerMessageMetadata(related_request_id=self._request_id)
        try:
            answer: Any = await self._session.send_request(
                cast(Any, _Message(method, params)), cast(Any, _AsItCame), metadata=metadata
            )
        except ValidationError:
            raise MCPError(INTERNAL_ERROR, f"the client's answer to {method} breaks the protocol") from None
        return cast("dict[str, Any]", answer)

    async def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Tells the client; one that has gone is told nothing."""
        told = params or {}
        try:
            if self._own_token is not None and told.get("progressToken") == self._own_token:
                await self._session.report_progress(told["progress"], told.get("total"), told.get("message"))
            else:
                await self._session.send_notification(cast(Any, _Message(method, params)), self._request_id)
        except Exception as error:
            log_failure(_log, f"{method} could not be passed on", error)


@dataclass(eq=False)
class Passage(Record):
    """A client's request on its way to a server.

    Attributes:
        channel: the client's request.
        rounds: for a client without a way back for requests (2026-07-28): who keeps the server's questions.
    """

    channel: Channel | None = None
    rounds: Any = None
    _queue: deque[tuple[str, Any]] = field(default_factory=deque)
    _sending: asyncio.Task[None] | None = None

    def tell(self, method: str, params: Any) -> None:
        """Passes a notification on; the order stays."""
        if self.over or self.channel is None:
            return
        self._queue.append((method, params))
        if self._sending is None or self._sending.done():
            self._sending = asyncio.ensure_future(self._send())

    async def _send(self) -> None:
        assert self.channel is not None
        while self._queue:
            method, params = self._queue.popleft()
            await self.channel.notify(method, params)

    async def told(self) -> None:
        """Returns when all that was passed on has left: the result comes after it."""
        while self._sending is not None and not self._sending.done():
            await asyncio.wait((self._sending,))
