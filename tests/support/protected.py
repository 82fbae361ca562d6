"""MCP servers (the official SDK) that take only tokens of a test's identity provider (tests/support/idp.py).

    server = ProtectedServer(idp)         streamable HTTP at server.url, the older SSE at server.sse_url

Tokens are looked at by the SDK's own bearer authentication, with the audience (RFC 8707), and sessions belong to who
opened them. What a refusal says and which protected-resource metadata (RFC 9728) exist is set by `server.settings`.
What happened stands in `server.log`: "unauthorized", "forbidden", "call" with the number of the token that was used.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend
from mcp.server.auth.provider import AccessToken
from mcp.server.lowlevel import Server
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from tests.support.canary import secret
from tests.support.hosting import Hosted
from tests.support.idp import IdentityProvider

RESOURCE = "/.well-known/oauth-protected-resource"
_PLACES = {"path": RESOURCE + "/mcp", "root": RESOURCE, "custom": "/about/this/resource"}


@dataclass
class Settings:
    """What the server says and asks for from now on."""

    challenge: str = "metadata"  # WWW-Authenticate: "metadata" (with resource_metadata), "bare", "none" (no header)
    challenge_header: str | None = None  # the whole WWW-Authenticate of a 401; "{metadata}" stands for the address
    challenge_scope: str | None = None  # the scope in a 401
    stream: bool = True  # whether a session has a stream of its own (GET); False: 405, as the specification allows
    open: tuple[str, ...] = ()  # messages (JSON-RPC methods, HTTP methods) that need no token
    metadata_at: tuple[str, ...] = ("path",)  # "path", "root", "custom" (found by the challenge only); () for none
    scopes_supported: tuple[str, ...] | None = None
    resource: str | None = None  # another resource than this server
    authorization_servers: tuple[str, ...] | None = None  # others than this server's provider
    audience: bool = True  # whether a token must be for this server
    admin_scope: str = "admin"  # what needs_admin needs
    admin_satisfiable: bool = True  # False: needs_admin is refused whatever the token holds
    # A refusal of needs_admin names all scopes that the token needs, or only the missing one.
    names_all_scopes: bool = False
    refuse_all: bool = False  # 401 for every token, however good
    forbid_all: str | None = None  # 403 without a challenge that anybody could meet: the error code


@dataclass
class Seen:
    """One HTTP request to the MCP endpoint."""

    method: str  # of JSON-RPC, or of HTTP
    tool: str | None = None


class ProtectedServer:
    """One server. `idp` issues its tokens; with `legacy` that provider's endpoints stand at this server's own origin
    (specification 2025-03-26: no protected-resource metadata). The tools' names end in `suffix`."""

    def __init__(
        self, idp: IdentityProvider, *, legacy: bool = False, suffix: str = "", port: int = 0, **settings: Any
    ) -> None:
        self.idp, self.legacy, self.suffix = idp, legacy, suffix
        self.settings = Settings(**settings)
        self.log: list[dict[str, Any]] = []
        self._actions: dict[str, Callable[[], Any]] = {}
        self._server: Server[Any] = Server(
            "protected", version="1", on_list_tools=self._list_tools, on_call_tool=self._call_tool
        )
        self._manager = StreamableHTTPSessionManager(app=self._server)
        self._sse = SseServerTransport("/messages/")
        self._hosted = Hosted(self._app(), "test protected server", port)
        self.base = self._hosted.base
        self.url, self.sse_url = f"{self.base}/mcp", f"{self.base}/sse"

    def __enter__(self) -> ProtectedServer:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._hosted.close()

    # ---- for tests ---------------------------------------------------------------------------------------------------

    def reset(self, **settings: Any) -> ProtectedServer:
        self.settings = Settings(**settings)
        self.log.clear()
        self._actions.clear()
        return self

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        return [entry for entry in list(self.log) if entry["event"] in kinds]

    def count(self, *kinds: str) -> int:
        return len(self.events(*kinds))

    def wait_goodbye(self, count: int) -> None:
        """Returns once so many sessions were ended: an agent says so after its dispose() has returned."""
        end = time.monotonic() + 5
        while self.count("goodbye") < count and time.monotonic() < end:
            time.sleep(0.005)

    def refusals(self) -> int:
        """How many messages were refused for want of a good token. A session's stream and its goodbye are none: they
        come when they come."""
        return sum(entry["method"] not in ("GET", "DELETE") for entry in self.events("unauthorized"))

    def calls(self) -> list[tuple[str, int]]:
        """Tool calls that were let through: the tool, and the number of the token."""
        return [(entry["tool"], entry["token"]) for entry in self.events("call")]

    def before(self, what: str, action: Callable[[], Any]) -> None:
        """Runs `action` once, when the next request for this tool (or JSON-RPC method) arrives: before its token is
        looked at. `server.before("plain", idp.expire_access_tokens)` lets a token expire in the middle of a run."""
        self._actions[what] = action

    # ---- the MCP server ----------------------------------------------------------------------------------------------

    async def _list_tools(self, ctx: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        tools = []
        for name, (_, text, properties) in _TOOLS.items():
            schema = {"type": "object", "properties": properties}
            tools.append(types.Tool(name=name + self.suffix, description=text, input_schema=schema))
        return types.ListToolsResult(tools=tools)

    async def _call_tool(self, ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        name = params.name.removesuffix(self.suffix)
        if name not in _TOOLS:
            raise MCPError(-32602, f"Unknown tool: {params.name}")
        token = ctx.request.scope["token"]
        self.log.append({"event": "call", "tool": name, "subject": token.subject, "token": token.claims["n"]})
        text = await _TOOLS[name][0](self, ctx, params.arguments or {})
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)])

    # ---- HTTP --------------------------------------------------------------------------------------------------------

    def _app(self) -> Starlette:
        @contextlib.asynccontextmanager
        async def lifespan(app: Starlette) -> Any:
            async with self._manager.run():
                yield

        well_known = [Route(path, self._metadata) for path in (*_PLACES.values(), RESOURCE + "/sse")]
        own = [Route(path, self.idp.handle, methods=["GET", "POST"])
               for path in ("/authorize", "/decide", "/token", "/register", "/revoke",
                            "/.well-known/oauth-authorization-server")] if self.legacy else []  # fmt: skip
        return Starlette(
            routes=[
                *well_known,
                *own,
                Route("/mcp", _Guard(self, self._manager.handle_request)),
                Route("/sse", _Guard(self, self._sse_stream)),
                Mount("/messages", _Guard(self, self._sse.handle_post_message)),
            ],
            lifespan=lifespan,
        )

    async def _sse_stream(self, scope: Any, receive: Any, send: Any) -> None:
        async with self._sse.connect_sse(scope, receive, send) as (read, write):
            await self._server.run(read, write, self._server.create_initialization_options())

    def resource(self, connection: HTTPConnection) -> str:
        """This server's own name, by the address that it was asked at."""
        path = "/sse" if connection.url.path.startswith(("/sse", "/messages", RESOURCE + "/sse")) else "/mcp"
        return f"http://{connection.headers['host']}{path}"

    async def _metadata(self, request: Request) -> Response:
        settings, path = self.settings, request.url.path.replace("/sse", "/mcp")
        self.log.append({"event": "metadata", "path": request.url.path})
        if self.legacy or path not in [_PLACES[place] for place in settings.metadata_at]:
            return Response("not found", 404)
        document = {
            "resource": settings.resource or self.resource(request),
            "authorization_servers": settings.authorization_servers or [self.idp.issuer],
            "scopes_supported": settings.scopes_supported,
            "bearer_methods_supported": ["header"],
            "resource_name": "The protected test server",
        }
        return JSONResponse({name: value for name, value in document.items() if value is not None})

    def run_action(self, seen: Seen) -> None:
        for what in (seen.tool, seen.method):
            if what in self._actions:
                self._actions.pop(what)()

    def refusal(self, seen: Seen, connection: HTTPConnection, scopes: tuple[str, ...] | None) -> Response | None:
        """What is answered instead of serving the request; `scopes` are those of a good token, None without one."""
        settings = self.settings
        if seen.method in settings.open:
            return None
        if scopes is None or settings.refuse_all:
            presented = "authorization" in connection.headers
            self.log.append({"event": "unauthorized", "method": seen.method, "tool": seen.tool, "presented": presented})
            error = "invalid_token" if presented else None
            return self._challenge(401, connection, error, settings.challenge_scope)
        if settings.forbid_all:
            self.log.append({"event": "forbidden", "method": seen.method, "tool": seen.tool})
            return self._challenge(403, connection, settings.forbid_all, None)
        enough = settings.admin_scope in scopes and settings.admin_satisfiable
        if seen.tool == "needs_admin" and not enough:
            self.log.append({"event": "forbidden", "method": seen.method, "tool": seen.tool})
            wanted = (*scopes, settings.admin_scope) if settings.names_all_scopes else (settings.admin_scope,)
            return self._challenge(403, connection, "insufficient_scope", " ".join(dict.fromkeys(wanted)))
        return None

    def _challenge(self, status: int, connection: HTTPConnection, error: str | None, scope: str | None) -> Response:
        settings = self.settings
        address = None
        if settings.metadata_at and not self.legacy:
            place = _PLACES[settings.metadata_at[0]]
            if self.resource(connection).endswith("/sse"):
                place = place.replace("/mcp", "/sse")
            address = f"http://{connection.headers['host']}{place}"
        parts = [f'error="{error}"'] if error else []
        if scope:
            parts.append(f'scope="{scope}"')
        if settings.challenge == "metadata" and address:
            parts.append(f'resource_metadata="{address}"')
        header = " ".join(["Bearer", ", ".join(parts)]).strip()
        if settings.challenge_header is not None and status == 401:
            header = settings.challenge_header.replace("{metadata}", str(address))
        body = {"error": error or "unauthorized", "error_description": "A token is needed."}
        reply = JSONResponse(body, status)
        if settings.challenge != "none":
            reply.headers["WWW-Authenticate"] = header
        return reply


class _Guard:
    """What stands before an MCP endpoint: the SDK's bearer authentication, and this server's refusals."""

    def __init__(self, server: ProtectedServer, app: Callable[[Any, Any, Any], Awaitable[None]]) -> None:
        self.server, self.app = server, AuthContextMiddleware(app)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        connection, seen = HTTPConnection(scope), Seen(scope["method"])
        if scope["method"] == "POST":
            receive, seen = await _peek(receive)
        self.server.run_action(seen)
        if seen.method == "DELETE":
            self.server.log.append({"event": "goodbye"})
        if seen.method == "GET" and not self.server.settings.stream:
            await Response("no stream here", 405)(scope, receive, send)
            return
        resource = AnyHttpUrl(self.server.resource(connection)) if self.server.settings.audience else None
        found = await BearerAuthBackend(self, resource_server_url=resource).authenticate(connection)
        scopes = tuple(found[0].scopes) if found else None
        refusal = self.server.refusal(seen, connection, scopes)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        if found is not None:
            scope["token"] = found[1].access_token
            if not self.server.settings.open:  # sessions belong to who opened them; nobody did, of an open one
                scope["auth"], scope["user"] = found
        await self.app(scope, receive, send)

    async def verify_token(self, token: str) -> AccessToken | None:
        """Introspection (the SDK's TokenVerifier)."""
        issued = self.server.idp.introspect(token)
        if issued is None:
            return None
        grant = issued.grant
        return AccessToken(
            token=token, client_id=grant.client.client_id, scopes=list(grant.scopes), resource=grant.resource,
            subject=grant.subject, claims={"iss": grant.issuer, "n": issued.number},
        )  # fmt: skip


async def _peek(receive: Any) -> tuple[Any, Seen]:
    """The request's body, told again, and what it is about."""
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    told = False

    async def again() -> Any:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    with contextlib.suppress(ValueError, AttributeError):
        message = json.loads(body)
        parameters = message.get("params") or {}
        tool = parameters.get("name") if message.get("method") == "tools/call" else None
        return again, Seen(message.get("method") or "answer", tool)
    return again, Seen("POST")


# ---- tools -----------------------------------------------------------------------------------------------------------


async def _whoami(server: ProtectedServer, ctx: Any, arguments: dict[str, Any]) -> str:
    token = ctx.request.scope["token"]
    return json.dumps({"subject": token.subject, "scopes": token.scopes, "issuer": token.claims["iss"]})


async def _plain(server: ProtectedServer, ctx: Any, arguments: dict[str, Any]) -> str:
    return f"plain: {arguments.get('text', 'ok')}"


async def _slow(server: ProtectedServer, ctx: Any, arguments: dict[str, Any]) -> str:
    seconds = float(arguments.get("seconds", 1))
    await asyncio.sleep(seconds)
    return f"slow: {seconds}"


async def _needs_admin(server: ProtectedServer, ctx: Any, arguments: dict[str, Any]) -> str:
    return f"admin: {' '.join(ctx.request.scope['token'].scopes)}"


async def _ask(server: ProtectedServer, ctx: Any, arguments: dict[str, Any]) -> str:
    url = f"{server.base}/elsewhere?state={secret('elicitedstate')}"
    answer = await ctx.session.elicit_url("Please allow access.", url, "el-1", related_request_id=ctx.request_id)
    return f"action: {answer.action}"


_Tool = tuple[Callable[[ProtectedServer, Any, dict[str, Any]], Awaitable[str]], str, dict[str, Any]]
_TOOLS: dict[str, _Tool] = {
    "whoami": (_whoami, "Tells whose token this is.", {}),
    "plain": (_plain, "Answers at once.", {"text": {"type": "string"}}),
    "slow": (_slow, "Answers after a number of seconds.", {"seconds": {"type": "number"}}),
    "needs_admin": (_needs_admin, "Answers only to administrators.", {}),
    "ask": (_ask, "Asks its user to open a page.", {}),
}
