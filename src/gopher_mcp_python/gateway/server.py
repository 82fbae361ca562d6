"""The gateway as an MCP server of the official SDK.

Requests are taken in the SDK's middleware, before it would read them into models: what passes through goes on as it
came, and what comes back is the server's own. Everything that is not passed on (the handshake, ping) stays the SDK's.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import CLIENT_CAPABILITIES_META_KEY, CLIENT_INFO_META_KEY, methods
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from .. import __version__
from ..redaction import log_failure
from ..toolset.errors import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND
from .approvals import Approvals
from .channel import Channel, Client, RequestContext
from .front import Front, Places, Pool
from .held import page_address
from .inbound import Inbound, shaped
from .link import Link
from .listening import listen
from .lists import LISTED, listed, owner_of_resource
from .rounds import OpenCall, OpenCalls
from .rules import Rules
from .states import States
from .tools import ToolCalls
from .upstream import Upstream, Upstreams
from .welcome import capabilities_of, instructions_of

__all__ = ["Gateway"]

_log = logging.getLogger("gopher_mcp_python.gateway")
_FRONT = "gopher-mcp/front"
Handler = Callable[[Inbound], Awaitable[HandlerResult]]
PRINCIPAL = "gopher_mcp.principal"  # in the scope of a request over HTTP
# A server that does not know a resource says so with one of these.
_NO_RESOURCE = (-32002, INVALID_PARAMS, METHOD_NOT_FOUND)


class Gateway:
    """An MCP server in front of others, which asks before anything is destroyed.

    Args:
        upstreams: the servers behind it.
        store: of confirmations (gopher_mcp_python.store); without it, what has to be confirmed does not run.
        rules: what is held, allowed and denied.
        ask_clients: whether a client that can show a form is asked at once.
        caller: whose the calls are where nobody signs in (stdio, a loopback address without tokens).
        confirm_seconds: how long a confirmation waits for its answer, 1 to 1,800.
        state_key: shared by gateways between which the rounds of one call may change; see `States`.
        confirm_at: address (http, https) of the page where people confirm, told to callers whose call is held.

    Raises ValueError for a `confirm_at` that is no such address, or holds a password.
    """

    def __init__(
        self,
        upstreams: Sequence[Upstream],
        store: Any,
        *,
        rules: Rules | None = None,
        ask_clients: bool = True,
        caller: str = "local",
        confirm_seconds: int = 300,
        state_key: bytes | None = None,
        confirm_at: str | None = None,
    ) -> None:
        self.upstreams = Upstreams(upstreams)
        self.rules = rules or Rules()
        self._caller = caller
        page = page_address(confirm_at) if confirm_at is not None else ""
        approvals = Approvals(store, timeout_s=confirm_seconds)
        self._tools = ToolCalls(self.rules, approvals, ask_clients=ask_clients, confirm_at=page)
        self._states = States(state_key)
        self._calls = OpenCalls()
        self._pool = Pool(self.upstreams)
        self._sessions = Places()
        self.server: Server[Any] = Server("gopher-mcp", version=__version__, lifespan=self._lifespan)
        self.server.middleware.append(self._pass)
        self._handlers: dict[str, Handler] = {
            **dict.fromkeys(LISTED, self._list),
            "tools/call": self._tools.call,
            "prompts/get": self._get_prompt,
            "resources/read": self._read_resource,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._subscribe,
            "completion/complete": self._complete,
            "logging/setLevel": self._set_level,
            "subscriptions/listen": listen,
            "server/discover": self._discover,
        }

    @asynccontextmanager
    async def _lifespan(self, server: Any) -> AsyncIterator[None]:
        try:
            yield
        finally:
            self._calls.close()
            await self._pool.close()

    # ---- from the client -------------------------------------------------------------------------------------------

    async def _pass(self, ctx: RequestContext, call_next: CallNext) -> HandlerResult:
        """The middleware: what is not the SDK's own business goes to the servers. Errors go on as they came; what is
        wrong in the gateway itself is logged, and told without its particulars."""
        try:
            return await self._passed(ctx, call_next)
        except (MCPError, ValidationError):
            raise
        except Exception as error:
            log_failure(_log, f"{ctx.method} failed in the gateway", error)
            raise MCPError(INTERNAL_ERROR, f"the gateway failed at {ctx.method}") from None

    async def _passed(self, context: RequestContext, call_next: CallNext) -> HandlerResult:
        if context.method == "initialize":
            return await self._initialize(context, await call_next(context))
        if context.request_id is None:
            await self._notified(context)
            return await call_next(context)
        handler = self._handlers.get(context.method)
        if handler is None:
            return await call_next(context)
        modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
        try:
            methods.validate_client_request(context.method, context.protocol_version, context.params)
        except KeyError:
            raise MCPError(METHOD_NOT_FOUND, "Method not found", data=context.method) from None
        if modern:
            return await self._without_session(context, handler)
        front = _connection(context).state.get(_FRONT)
        if front is None:
            raise MCPError(INVALID_PARAMS, "Invalid request parameters", data="")
        if front.client.caller != self._caller_of(context):
            raise MCPError(INVALID_PARAMS, "this session is another caller's")
        return await handler(Inbound(context, front, self._states, self._calls))

    async def _without_session(self, context: RequestContext, handler: Handler) -> HandlerResult:
        """A request of 2026-07-28, which stands for itself."""
        meta = (context.params or {}).get("_meta") or {}
        client = Client(
            self._caller_of(context),
            context.protocol_version,
            _mapping(meta.get(CLIENT_CAPABILITIES_META_KEY)),
            _mapping(meta.get(CLIENT_INFO_META_KEY)) or {"name": "unnamed", "version": "0"},
        )
        front = self._pool.take(client)
        going: OpenCall | None = None
        try:
            inbound = Inbound(context, front, self._states, self._calls)
            try:
                return await handler(inbound)
            finally:
                going = inbound.open
        finally:
            task = going.task if going is not None else None
            if task is not None and not task.done():  # a server's question is out: its session is still in use
                task.add_done_callback(lambda _: self._pool.give_back(front))
            else:
                self._pool.give_back(front)

    def _caller_of(self, context: RequestContext) -> str:
        scope = getattr(context.request, "scope", None) or {}
        principal = scope.get(PRINCIPAL)
        return str(principal.caller) if principal is not None else self._caller

    async def _initialize(self, context: RequestContext, answer: Any) -> dict[str, Any]:
        """The handshake: the servers are connected to, and what they offer is what the gateway offers."""
        result: dict[str, Any] = dict(answer)
        params = context.params or {}
        client = Client(
            self._caller_of(context),
            str(result["protocolVersion"]),
            _mapping(params.get("capabilities")),
            _mapping(params.get("clientInfo")),
        )
        connection = _connection(context)
        if _FRONT in connection.state:
            raise MCPError(INVALID_REQUEST, "this session was opened before; open another one")
        self._sessions.take(client.caller)
        connection.exit_stack.callback(self._sessions.give_back, client.caller)
        front = Front(self.upstreams, client, Channel(context.session))
        connection.exit_stack.push_async_callback(front.close)
        connection.state[_FRONT] = front
        await self._add_welcome(front, result)
        return result

    async def _add_welcome(self, front: Front, result: dict[str, Any]) -> None:
        welcomes = await front.welcomes()
        result["capabilities"] = capabilities_of(welcomes, len(self.upstreams))
        instructions = instructions_of(welcomes, prefixed=self.upstreams.prefixed)
        if instructions:
            result["instructions"] = instructions

    async def _discover(self, inbound: Inbound) -> dict[str, Any]:
        result: dict[str, Any] = {
            "resultType": "complete",
            "supportedVersions": list(MODERN_PROTOCOL_VERSIONS),
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {"io.modelcontextprotocol/serverInfo": self.server.server_info_stamp},
        }
        await self._add_welcome(inbound.front, result)
        return result

    async def _notified(self, context: RequestContext) -> None:
        front = _connection(context).state.get(_FRONT)
        if context.method == "notifications/roots/list_changed" and front is not None:
            for link in front.links:
                await link.tell(context.method, context.params)

    # ---- what is passed on -----------------------------------------------------------------------------------------

    async def _list(self, inbound: Inbound) -> dict[str, Any]:
        result = await listed(inbound.front, inbound.method, inbound.params, self.rules)
        if not self.upstreams.prefixed:
            return await inbound.shaped(inbound.front.links[0], result)
        return shaped(inbound.method, inbound.client.version, result)

    async def _get_prompt(self, inbound: Inbound) -> dict[str, Any]:
        upstream, name = self._named(str(inbound.params["name"]), "prompt")
        if (going_on := await inbound.next_round()) is not None:
            return going_on
        link = inbound.front.link(upstream)
        params = inbound.onward(name=name)
        return await inbound.deliver(link, lambda: inbound.passed(link, params))

    def _named(self, shown: str, what: str) -> tuple[Upstream, str]:
        found = self.upstreams.find(shown)
        if found is None:
            raise MCPError(INVALID_PARAMS, f"Unknown {what}: {shown}")
        return found

    async def _read_resource(self, inbound: Inbound) -> dict[str, Any]:
        if (going_on := await inbound.next_round()) is not None:
            return going_on
        return await self._at_owner(
            inbound,
            str(inbound.params["uri"]),
            lambda link: inbound.deliver(link, lambda: inbound.passed(link, inbound.onward())),
        )

    async def _subscribe(self, inbound: Inbound) -> dict[str, Any]:
        uri = str(inbound.params["uri"])
        begins = inbound.method == "resources/subscribe"

        async def subscribe(link: Link) -> dict[str, Any]:
            result = await inbound.forward(link, inbound.onward())
            link.keep("resources/subscribe", uri, {"uri": uri} if begins else None)
            return result

        return await self._at_owner(inbound, uri, subscribe)

    async def _at_owner(
        self, inbound: Inbound, uri: str, work: Callable[[Link], Awaitable[dict[str, Any]]]
    ) -> dict[str, Any]:
        """At the server that has the resource; of those that only may have it, the first that does not deny it."""
        links = await owner_of_resource(inbound.front, uri)
        if not links:
            raise MCPError(INVALID_PARAMS, "no server behind the gateway has resources")
        for link in links[:-1]:
            try:
                return await work(link)
            except MCPError as error:
                if error.error.code not in _NO_RESOURCE:
                    raise
        return await work(links[-1])

    async def _complete(self, inbound: Inbound) -> dict[str, Any]:
        reference = dict(_mapping(inbound.params.get("ref")))
        if reference.get("type") == "ref/prompt":
            upstream, name = self._named(str(reference.get("name")), "prompt")
            link = inbound.front.link(upstream)
            return await inbound.forward(link, inbound.onward(ref={**reference, "name": name}))
        return await self._at_owner(
            inbound, str(reference.get("uri")), lambda link: inbound.forward(link, inbound.onward())
        )

    async def _set_level(self, inbound: Inbound) -> dict[str, Any]:
        for link in inbound.front.links:
            if "logging" in (await link.session()).offers:
                await inbound.forward(link, inbound.onward())
                link.keep("logging/setLevel", "", {"level": inbound.params["level"]})
        return {}


def _connection(context: RequestContext) -> Connection:
    """The client's connection. The SDK's context does not name it; its session does."""
    return context.session._connection


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
