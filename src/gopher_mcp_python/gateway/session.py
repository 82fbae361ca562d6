"""One connection to a server, for one client: messages as they came, in both directions.

It lives as the toolset's sessions do (a task of its own, its end, its goodbye); what differs is that nothing is parsed
into models here, that the client's own capabilities are declared, and that what the server asks goes to the client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.dispatcher import CallOptions, DispatchContext
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
)
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types import CLIENT_CAPABILITIES_META_KEY, CLIENT_INFO_META_KEY, PROTOCOL_VERSION_META_KEY
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION, MODERN_PROTOCOL_VERSIONS

from ..errors import ConnectionError
from ..toolset.connection import Connection, context_tells, place
from ..toolset.errors import CONNECTION_CLOSED, METHOD_NOT_FOUND
from ..toolset.record import current_record
from ..toolset.session import Protocol, Session, leaf, not_a_cancellation
from .channel import Channel, Client, Passage
from .transport import open_transport

__all__ = ["UpstreamSession"]

ENVELOPE = (PROTOCOL_VERSION_META_KEY, CLIENT_INFO_META_KEY, CLIENT_CAPABILITIES_META_KEY)
# What a server may ask of a client, and the capability that the client has to declare for it.
ASKED = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}
# The dispatcher takes back a question of the server's own; a subscription is the gateway's.
_NOT_PASSED = ("notifications/cancelled", "notifications/subscriptions/acknowledged")
DISCOVER_SECONDS = 10.0
NOT_OPEN = "the session is not open"
Notice = Callable[[str, Any], Awaitable[None]]


class UpstreamSession(Session):
    """A session with a server on behalf of one client.

    Args:
        connection: where the server is.
        protocol: "handshake" or "2026-07-28". There is one for a connection: some servers keep to what they hear first.
        client: what is declared to the server is what this one declared.
        channel: the client's own connection, for what belongs to no call; None: it has none.
        told: an async function of (method, params): notices of the server that belong to no call.

    Attributes:
        welcome: the result of the handshake or of server/discover, as it came.
    """

    def __init__(
        self,
        connection: Connection,
        protocol: Protocol,
        client: Client,
        channel: Channel | None,
        told: Notice,
    ) -> None:
        super().__init__(connection, None, protocol, types.Implementation(name="gopher-mcp", version="0"))
        self._for = client
        self._channel = channel
        self._told = told
        self._dispatcher: JSONRPCDispatcher[TransportContext] | None = None
        self._version = ""
        self.welcome: dict[str, Any] = {}
        self.passages: set[Passage] = set()
        self._by_token: dict[Any, Passage] = {}

    async def _own(self) -> None:
        try:
            async with open_transport(self.connection, self._farewell) as (read, write):
                dispatcher = JSONRPCDispatcher[TransportContext](read, write)
                async with anyio.create_task_group() as group:
                    await group.start(self._run, dispatcher)
                    await (self._shake_hands if self._protocol == "handshake" else self._discover_raw)(dispatcher)
                    self._dispatcher = dispatcher
                    self._ready.set_result(None)
                    await self._closing.wait()
                    group.cancel_scope.cancel()
        except BaseException as error:
            self.failure = leaf(error)
            if not self._ready.done():
                self._ready.set_exception(not_a_cancellation(self.failure))
                self._ready.exception()  # seen, also when `open` was cancelled meanwhile
            if isinstance(error, asyncio.CancelledError | KeyboardInterrupt | SystemExit):
                raise

    async def _run(self, dispatcher: Any, *, task_status: Any) -> None:
        try:
            await dispatcher.run(self._asked, self._noticed, task_status=task_status)
        finally:
            self.lost()

    # ---- the beginning ---------------------------------------------------------------------------------------------

    async def _shake_hands(self, dispatcher: Any) -> None:
        version = LATEST_HANDSHAKE_VERSION if self._for.modern else self._for.version
        params = {
            "protocolVersion": version,
            "capabilities": dict(self._for.capabilities),
            "clientInfo": dict(self._for.info),
        }
        welcome = await dispatcher.send_raw_request("initialize", params, {"cancel_on_abandon": False})
        answered = welcome.get("protocolVersion")
        if answered not in HANDSHAKE_PROTOCOL_VERSIONS:
            raise ConnectionError(f"{place(self.connection)} speaks no protocol version that is known here")
        self._version, self.welcome = answered, welcome
        await dispatcher.notify("notifications/initialized", None, {"headers": self._headers("", {})})

    async def _discover_raw(self, dispatcher: Any) -> None:
        version = MODERN_PROTOCOL_VERSIONS[-1]
        self._version = version
        params = {"_meta": self._envelope({})}
        options = {
            "cancel_on_abandon": False,
            "timeout": DISCOVER_SECONDS,
            "headers": self._headers("server/discover", params),
        }
        try:
            welcome = await dispatcher.send_raw_request("server/discover", params, options)
        except MCPError:
            self._version = ""
            raise
        if version not in (welcome.get("supportedVersions") or ()):
            raise ConnectionError(f"{place(self.connection)} does not speak protocol {version}")
        self.welcome = welcome

    @property
    def version(self) -> str:
        return self._version or LATEST_HANDSHAKE_VERSION

    @property
    def offers(self) -> Mapping[str, Any]:
        """The server's capabilities."""
        declared = self.welcome.get("capabilities")
        return declared if isinstance(declared, Mapping) else {}

    # ---- to the server ---------------------------------------------------------------------------------------------

    async def ask(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        passage: Passage | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Makes a request. Cancelled, it takes the request back. Raises MCPError: the server's own error, or that the
        connection ended."""
        if self._dispatcher is None or self._closing.is_set():
            raise MCPError(CONNECTION_CLOSED, NOT_OPEN)
        sent = self._stamped(params)
        more = headers or {} if self.modern else {}
        options: CallOptions = {"headers": {**self._headers(method, sent), **more}}
        if passage is None:
            return await self._dispatcher.send_raw_request(method, sent, options)
        token = (sent.get("_meta") or {}).get("progressToken")
        self.passages.add(passage)
        if token is not None:
            self._by_token[token] = passage
        try:
            return await self._dispatcher.send_raw_request(method, sent, options)
        finally:
            self.passages.discard(passage)
            if self._by_token.get(token) is passage:
                del self._by_token[token]

    async def tell(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Sends a notification."""
        if self._dispatcher is not None:
            await self._dispatcher.notify(method, params, {"headers": self._headers(method, params or {})})

    def _stamped(self, params: Mapping[str, Any] | None) -> dict[str, Any]:
        """`_meta` goes on unchanged; the envelope of 2026-07-28 is put in or taken out where the two sides differ."""
        sent = dict(params or {})
        meta = sent.get("_meta") or {}
        if self.modern and PROTOCOL_VERSION_META_KEY not in meta:
            sent["_meta"] = self._envelope(meta)
        elif not self.modern and self._for.modern:
            sent["_meta"] = {name: value for name, value in meta.items() if name not in ENVELOPE}
        return sent

    def _envelope(self, meta: Mapping[str, Any]) -> dict[str, Any]:
        return {
            **meta,
            PROTOCOL_VERSION_META_KEY: self._version,
            CLIENT_INFO_META_KEY: dict(self._for.info),
            CLIENT_CAPABILITIES_META_KEY: dict(self._for.capabilities),
        }

    def _headers(self, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        headers = {MCP_PROTOCOL_VERSION_HEADER: self._version}
        if self.modern:
            headers[MCP_METHOD_HEADER] = method
            name = params.get(NAME_BEARING_METHODS.get(method, ""))
            if isinstance(name, str):
                headers[MCP_NAME_HEADER] = encode_header_value(name)
        return headers

    # ---- from the server -------------------------------------------------------------------------------------------

    def _passage(self) -> Passage | None:
        """The call that what just came in belongs to: by context, else the only one under way."""
        record = current_record()
        if isinstance(record, Passage) and not record.over and record in self.passages:
            return record
        return next(iter(self.passages)) if len(self.passages) == 1 and not context_tells(self.connection) else None

    async def _asked(self, context: DispatchContext[Any], method: str, params: Any) -> dict[str, Any]:
        """A request of the server: the client answers it. Raises MCPError, as the client did."""
        if method == "ping":
            return {}
        needed = ASKED.get(method)
        if needed is not None and self._for.capabilities.get(needed) is None:
            raise MCPError(METHOD_NOT_FOUND, f"the client does not support {needed}")
        passage = self._passage()
        if passage is not None and passage.rounds is not None:
            return await _counted(self, passage.rounds.ask(method, params))
        channel = passage.channel if passage is not None else self._channel
        if channel is None:
            raise MCPError(METHOD_NOT_FOUND, f"{method}: there is no way to the client outside of a call of its own")
        return await _counted(self, channel.request(method, params))

    async def _noticed(self, context: DispatchContext[Any], method: str, params: Any) -> None:
        """A notification of the server. Up to its first await this runs in the order of arrival."""
        passage = self._passage()
        if method == "notifications/progress" and isinstance(params, Mapping):
            passage = self._by_token.get(params.get("progressToken"))
            if passage is None:
                return
        if method in _NOT_PASSED:
            return
        if passage is not None and not method.endswith("/list_changed"):
            passage.tell(method, params)
        else:
            await self._told(method, params)


async def _counted(session: UpstreamSession, answering: Awaitable[dict[str, Any]]) -> dict[str, Any]:
    """Counts it among the answers that have to leave before the session ends."""
    session.questions.under_way += 1
    try:
        return await answering
    finally:
        session.questions.under_way -= 1
        session.questions.given += 1
        session.questions.answered_at = asyncio.get_running_loop().time()
