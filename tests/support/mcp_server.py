"""A real MCP server (the official SDK) whose tools ask their user for something in every way that the protocol knows.

    python -m tests.support.mcp_server --port 0        prints {"url": ..., "log": ..., "provider": ...} on one line
    python -m tests.support.mcp_server --stdio         speaks over its standard input and output

It serves the handshake protocols (2024-11-05 to 2025-11-25) and 2026-07-28 on one address; `--era` narrows that.
Everything that happened can be read back as a JSON list from GET /_log: {"event": "run" | "answer" | ..., ...}.
A small provider page stands at /authorize: an Allow button (a POST form) ends the flow and, where the connection can
carry it, the server sends `notifications/elicitation/complete`.
POST /_forget drops every session (as a restart does), POST /_clear empties the log.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import functools
import html
import json
import logging
import os
import secrets
import socket
import sys
import urllib.parse
from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route

from tests.support.canary import secret

Context = Any  # mcp.server.context.ServerRequestContext, whose parameters do not matter here
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
FORM = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "urgent": {"type": "boolean", "default": False}},
    "required": ["reason"],
}


class Log:
    """What happened, in order. `wait` lets a tool see a button that was pressed on the provider's page."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []

    def add(self, event: str, **fields: Any) -> None:
        self.entries.append({"event": event, **fields})
        if path := os.environ.get("SCENARIO_LOG"):
            with open(path, "a", encoding="utf-8") as out:
                out.write(json.dumps(self.entries[-1]) + "\n")


class Flow:
    """One sign-in at the provider: its state parameter, its elicitation id, whether Allow was pressed."""

    def __init__(self, base: str, flow_id: str) -> None:
        self.base = base
        # Marked as planted secrets: the canary scan (tests/support/canary.py) fails any test that leaks one.
        self.id = flow_id
        self.state, self.code = (secret(kind) + secrets.token_hex(8) for kind in ("state", "code"))
        self.done, self.complete = asyncio.Event(), None  # type: tuple[asyncio.Event, Callable[[], Awaitable[None]] | None]
        query = {
            "response_type": "code", "client_id": "scenario-client", "redirect_uri": f"{base}/callback",
            "scope": "gmail.readonly", "state": self.state,
        }
        self.url = f"{base}/authorize?{urllib.parse.urlencode(query)}"


    def again(self) -> Flow:
        """The same page under another elicitation id."""
        copy = Flow(self.base, f"el-{secrets.token_hex(6)}")
        copy.url, copy.state, copy.code, copy.done = self.url, self.state, self.code, self.done
        return copy


class Gateway:
    """What a gateway with a pending sign-in does (`--gateway`): it asks on the session's GET stream right after the
    list of tools, and what its tool does depends on the kind:

    - same-id: the call sends the same elicitation once more;
    - new-id: the call sends it with a new id and the same URL;
    - every-session: each session is asked, with one id and URL; the call relies on the session's answer;
    - withhold: as every-session, and the elicitation is sent only when the call has come, whose result waits for it.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.scenario, self.kind = scenario, scenario.options.gateway
        self.flow = scenario.new_flow("el-gateway") if self.kind else None
        self.streams: dict[str, asyncio.Event] = {}
        self.answers: dict[str, asyncio.Task[str]] = {}

    def stream(self, session: str) -> asyncio.Event:
        """Set as soon as the session has opened its GET stream."""
        return self.streams.setdefault(session, asyncio.Event())

    def listed(self, ctx: Context) -> None:
        if self.kind and self.kind != "withhold" and _session_of(ctx):
            self._ask(ctx)

    def _ask(self, ctx: Context) -> asyncio.Task[str]:
        session = _session_of(ctx)
        if session not in self.answers:
            self.answers[session] = asyncio.get_running_loop().create_task(self._on_stream(ctx, session))
        return self.answers[session]

    async def _on_stream(self, ctx: Context, session: str) -> str:
        await self.stream(session).wait()
        await asyncio.sleep(self.scenario.options.gateway_delay)
        with contextlib.suppress(MCPError):
            return await self.scenario.elicit_url(ctx, "gateway stream", flow=self.flow, related=False)
        return "error"

    async def action(self, ctx: Context) -> str:
        """The answer that the tool's call goes by."""
        if self.flow is not None and self.kind in ("same-id", "new-id"):
            if not self.scenario.options.gateway_delay:
                await self._ask(ctx)  # as in real life: that one is answered long before
            flow = self.flow if self.kind == "same-id" else self.flow.again()
            return await self.scenario.elicit_url(ctx, "gateway call", flow=flow)
        return await self._ask(ctx)


def _session_of(ctx: Context) -> str:
    return str((getattr(ctx.request, "headers", None) or {}).get("mcp-session-id", ""))


class Scenario:
    """The server's tools and pages. One instance serves every connection."""

    def __init__(self, options: argparse.Namespace, base: str) -> None:
        self.options, self.base, self.log = options, base, Log()
        self.tools = dict(TOOLS)
        self.gateway_status = 403  # of the HTTP errors in which a gateway wraps -32042
        self.flows: dict[str, Flow] = {}
        self.calls: dict[tuple[str, str], int] = {}
        self.sent: dict[str, int] = {}
        self.background: set[asyncio.Task[None]] = set()
        self.gateway = Gateway(self)
        self.server: Server[Any] = Server(
            "scenario", version="1", on_list_tools=self.list_tools, on_call_tool=self.call_tool
        )
        self.server.add_notification_handler(
            "notifications/initialized", types.NotificationParams, self.on_initialized
        )
        self.server.middleware.append(self.gate)

    # ---- protocol ------------------------------------------------------------------------------------------------

    async def gate(self, ctx: Context, call_next: Callable[[Context], Awaitable[Any]]) -> Any:
        """Logs the handshake and refuses the era that `--era` excludes."""
        era = self.options.era
        if ctx.method in ("initialize", "server/discover"):
            meta = (ctx.params or {}).get("_meta") or {}
            capabilities = (ctx.params or {}).get("capabilities")
            capabilities = capabilities or meta.get("io.modelcontextprotocol/clientCapabilities")
            self.log.add("hello", method=ctx.method, capabilities=capabilities)
        if ctx.method == "initialize" and self.options.version:
            ctx.params["protocolVersion"] = self.options.version  # what the server then answers with
        if ctx.method == "initialize" and era == "modern":
            raise MCPError(-32022, "Unsupported protocol version", {"supported": ["2026-07-28"], "requested": "?"})
        if ctx.method == "server/discover" and era == "legacy":
            raise MCPError(-32601, "Method not found", "server/discover")
        if ctx.method == "notifications/cancelled":
            self.log.add("cancelled", request=(ctx.params or {}).get("requestId"))
        return await call_next(ctx)

    async def list_tools(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        names = sorted(self.tools)
        size = self.options.page_size or len(names)
        start = int((params.cursor if params else None) or 0)
        tools = [
            types.Tool(name=name, description=self.tools[name][1], input_schema=_schema(self.tools[name][2]))
            for name in names[start : start + size]
        ]
        following = str(start + size) if start + size < len(names) else None
        self.log.add("list", cursor=params.cursor if params else None)
        if following is None:
            self.gateway.listed(ctx)
        return types.ListToolsResult(tools=tools, next_cursor=following)

    async def call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        if params.name not in self.tools:
            raise MCPError(-32602, f"Unknown tool: {params.name}")
        arguments = params.arguments or {}
        self.log.add("run", tool=params.name, arguments=arguments, version=ctx.protocol_version,
                     headers=_chosen_headers(ctx))
        try:
            result = await self.tools[params.name][0](self, ctx, arguments, params)
        except asyncio.CancelledError:
            self.log.add("tool_cancelled", tool=params.name)
            raise
        except MCPError as error:
            self.log.add("tool_error", tool=params.name, code=error.error.code, message=error.error.message)
            raise
        self.log.add("done", tool=params.name)
        return result if not isinstance(result, str) else _text(result)

    async def on_initialized(self, ctx: Context, params: types.NotificationParams | None) -> None:
        if self.options.elicit_at_start:
            task = asyncio.get_running_loop().create_task(self._elicit_at_start(ctx))
            self.background.add(task)
            task.add_done_callback(self.background.discard)

    async def _elicit_at_start(self, ctx: Context) -> None:
        await asyncio.sleep(0.1)  # the client opens its GET stream right after this notification
        with contextlib.suppress(Exception):
            await self.elicit_url(ctx, "at start", related=False)

    # ---- asking --------------------------------------------------------------------------------------------------

    def new_flow(self, flow_id: str | None = None) -> Flow:
        flow = Flow(self.base, flow_id or f"el-{secrets.token_hex(6)}")
        self.flows[flow.state] = flow
        return flow

    async def elicit_url(
        self, ctx: Context, what: str, *, flow: Flow | None = None, related: bool = True, message: str | None = None
    ) -> str:
        """Sends one URL elicitation and returns the action; a client without it is told so (MCPError)."""
        flow = flow or self.new_flow()
        message = message or "Sign in to Gmail to continue."
        asked = asyncio.get_running_loop().time()
        related_id = ctx.request_id if related else None
        flow.complete = lambda: ctx.session.send_elicit_complete(flow.id, related_request_id=related_id)
        try:
            answer = await ctx.session.elicit_url(message, flow.url, flow.id, related_request_id=related_id)
        except MCPError as error:
            self.log.add("elicit_error", what=what, id=flow.id, code=error.error.code, message=error.error.message)
            raise
        seconds = asyncio.get_running_loop().time() - asked
        self.log.add("answer", what=what, id=flow.id, mode="url", action=answer.action, content=answer.content,
                     seconds=seconds)
        return answer.action

    def count(self, ctx: Context, tool: str) -> int:
        """How often this connection has called `tool`, this call included."""
        key = (ctx.request.headers.get("mcp-session-id", "") if ctx.request is not None else "", tool)
        self.calls[key] = self.calls.get(key, 0) + 1
        return self.calls[key]

    def required(self, flows: list[Flow], message: str = "Authorization is required.") -> MCPError:
        listed = [
            {"mode": "url", "message": message, "url": flow.url, "elicitationId": flow.id} for flow in flows
        ]
        return MCPError(-32042, "URL elicitation required", {"elicitations": listed})

    # ---- pages ---------------------------------------------------------------------------------------------------

    async def authorize(self, request: Request) -> Response:
        flow = self.flows.get(request.query_params.get("state", ""))
        if flow is None:
            return HTMLResponse("<h1>Unknown request</h1>", status_code=400)
        self.log.add("page", id=flow.id)
        state = html.escape(flow.state, quote=True)
        return HTMLResponse(
            "<!doctype html><title>Provider</title><h1>Allow access to your mail profile?</h1>"
            f'<form method="post" action="/allow"><input type="hidden" name="state" value="{state}">'
            '<button id="allow">Allow</button></form>'
        )

    async def allow(self, request: Request) -> Response:
        fields = urllib.parse.parse_qs((await request.body()).decode("utf-8", "replace"))
        flow = self.flows.get((fields.get("state") or [""])[0])
        if flow is None:
            return HTMLResponse("<h1>Unknown request</h1>", status_code=400)
        flow.done.set()
        self.log.add("allowed", id=flow.id)
        if flow.complete is not None and self.options.complete:
            with contextlib.suppress(Exception):
                await flow.complete()
        return RedirectResponse(f"/callback?code={flow.code}&state={flow.state}", status_code=303)

    async def callback(self, request: Request) -> Response:
        return HTMLResponse("<h1>Done</h1><p>You can close this page and go back to the program.</p>")

    async def read_log(self, request: Request) -> Response:
        return JSONResponse(self.log.entries)

    async def clear_log(self, request: Request) -> Response:
        self.log.entries.clear()
        if self.gateway.flow is not None:
            self.gateway.flow.done.clear()
        return JSONResponse({})


def _chosen_headers(ctx: Context) -> dict[str, str]:
    headers = getattr(ctx.request, "headers", None) or {}
    wanted = ("authorization", "x-test", "user-agent")
    return {name: headers[name] for name in headers if name in wanted or name.startswith("x-gopher")}


def _schema(arguments: dict[str, str]) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": kind} for name, kind in arguments.items()}}


def _text(text: str, **fields: Any) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], **fields)


# ---- tools -------------------------------------------------------------------------------------------------------

PROFILE = {"emailAddress": "ada@example.com", "messagesTotal": 42}


async def profile(s: Scenario, ctx: Context, arguments: dict[str, Any], params: Any) -> Any:
    flow = s.gateway.flow or s.new_flow()
    action = await (s.gateway.action(ctx) if s.options.gateway else s.elicit_url(ctx, "profile", flow=flow))
    if action != "accept":
        return _text(f"Authorization was not given: {action}", is_error=True)
    if s.options.need_allow and not flow.done.is_set():
        return _text("Authorization is not complete", is_error=True)
    return json.dumps(PROFILE)


async def plain(s: Scenario, ctx: Context, arguments: dict[str, Any], params: Any) -> Any:
    return f"plain: {arguments.get('text', 'ok')}"


async def slow(s: Scenario, ctx: Context, arguments: dict[str, Any], params: Any) -> Any:
    seconds = float(arguments.get("seconds", 2))
    await asyncio.sleep(seconds)
    return f"slow: {seconds}"


async def decline_aware(s: Scenario, ctx: Context, arguments: dict[str, Any], params: Any) -> Any:
    return f"action: {await s.elicit_url(ctx, 'decline_aware')}"


async def elicit_then_slow(s: Scenario, ctx: Context, arguments: dict[str, Any], params: Any) -> Any:
    action = await s.elicit_url(ctx, "elicit_then_slow")
    await asyncio.sleep(float(arguments.get("seconds", 2)))
    return f"action: {action}"


async def form_tool(s: Scenario, ctx: Context, arguments: dict[str, Any], params: Any) -> Any:
    try:
        answer = await ctx.session.elicit_form(
            "Why is this needed?", arguments.get("schema") or FORM, related_request_id=ctx.request_id
        )
    except MCPError as error:
        s.log.add("elicit_error", what="form", code=error.error.code, message=error.error.message)
        return f"form refused: {error.error.code}"
    s.log.add("answer", what="form", mode="form", action=answer.action, content=answer.content)
    return f"form: {answer.action} {json.dumps(answer.content)}"


async def elicit_twice(s: Scenario, ctx: Context, arguments: dict[str, Any], params: Any) -> Any:
    first = await s.elicit_url(ctx, "first")
    second = await s.elicit_url(ctx, "second")
    return f"actions: {first} {second}"


async def elicit_same_id(s: Scenario, ctx: Context, arguments: dict[str, Any], params: Any) -> Any:
    flow = s.new_flow()
    first = await s.elicit_url(ctx, "first", flow=flow)
    second = await s.elicit_url(ctx, "second", flow=flow)
    return f"actions: {first} {second}"


async def elicit_same_id_at_once(s: Scenario, ctx: Context, arguments: dict[str, Any], params: Any) -> Any:
    flow = s.new_flow()
    actions = await asyncio.gather(*(s.elicit_url(ctx, what, flow=flow) for what in ("first", "second")))
    return f"actions: {' '.join(actions)}"


async def elicit_parallel(s: Scenario, ctx: Context, arguments: dict[str, Any], params: Any) -> Any:
    whats = [f"parallel {i}" for i in range(int(arguments.get("count", 2)))]
    actions = await asyncio.gather(*(s.elicit_url(ctx, what, message=what) for what in whats))
    return f"actions: {' '.join(actions)}"


async def raw_elicit(s: Scenario, ctx: Context, arguments: dict[str, Any], params: Any) -> Any:
    """Sends elicitation/create with the parameters given, whatever they are, and reports the raw answer."""

    class Raw(types.Request[Any, Any]):
        method: str = "elicitation/create"
        params: Any = None

    class Anything(types.Result):
        model_config = {**types.Result.model_config, "extra": "allow"}

    related = types_metadata(ctx.request_id)
    try:
        answer = await ctx.session.send_request(Raw(params=arguments["params"]), Anything, metadata=related)
    except MCPError as error:
        s.log.add("elicit_error", what="raw", code=error.error.code, message=error.error.message)
        return f"error {error.error.code}: {error.error.message}"
    dumped = answer.model_dump(mode="json", by_alias=True, exclude_none=True)
    s.log.add("answer", what="raw", **dumped)
    return json.dumps(dumped)


def types_metadata(request_id: Any) -> Any:
    from mcp.shared.message import ServerMessageMetadata

    return ServerMessageMetadata(related_request_id=request_id)


async def error_32042(s: Scenario, ctx: Context, arguments: dict[str, Any], params: Any) -> Any:
    """Refuses with -32042 as often as `rounds` says (1), with `urls` different URLs a round (1), then succeeds."""
    if s.count(ctx, params.name) <= int(arguments.get("rounds", 1)):
        flows = [s.new_flow() for _ in range(int(arguments.get("urls", 1)))]
        for flow in flows:
            flow.complete = functools.partial(ctx.session.send_elicit_complete, flow.id)
        raise s.required(flows)
    return json.dumps(PROFILE)


async def error_32042_forever(s: Scenario, ctx: Context, arguments: dict[str, Any], params: Any) -> Any:
    flow = next((f for f in s.flows.values() if f.id == "el-forever"), None) or s.new_flow("el-forever")
    raise s.required([flow])


async def error_32042_endless(s: Scenario, ctx: Context, arguments: dict[str, Any], params: Any) -> Any:
    raise s.required([s.new_flow()])


async def error_32042_malformed(s: Scenario, ctx: Context, arguments: dict[str, Any], params: Any) -> Any:
    good = s.new_flow()
    data: Any = {
        "missing": {}, "none": None, "null": {"elicitations": None}, "empty": {"elicitations": []},
        "not_a_list": {"elicitations": {"url": good.url}}, "not_objects": {"elicitations": ["x"]},
        "snake": {"elicitations": [{"mode": "url", "message": "m", "url": good.url, "elicitation_id": good.id}]},
        "blank_id": {"elicitations": [{"mode": "url", "message": "m", "url": good.url, "elicitationId": " "}]},
        "blank_url": {"elicitations": [{"mode": "url", "message": "m", "url": "", "elicitationId": good.id}]},
        "form": {"elicitations": [{"mode": "form", "message": "m", "requestedSchema": FORM, "elicitationId": good.id}]},
    }[arguments.get("kind", "missing")]
    raise MCPError(-32042, "URL elicitation required", data)


async def auth_url_text(s: Scenario, ctx: Context, arguments: dict[str, Any], params: Any) -> Any:
    """Answers with nothing but the provider's authorization URL until Allow was pressed (or the second call)."""
    flow = next((f for f in s.flows.values() if f.id == "text"), None) or s.new_flow("text")
    if flow.done.is_set() or s.count(ctx, "auth_url_text") > 1:
        return json.dumps(PROFILE)
    return flow.url


async def withhold(s: Scenario, ctx: Context, arguments: dict[str, Any], params: Any) -> Any:
    """Asks, and ends its stream only a good while after the answer: the answer must be posted at once."""
    started = asyncio.get_running_loop().time()
    action = await s.elicit_url(ctx, "withhold")
    s.log.add("withheld", seconds=round(asyncio.get_running_loop().time() - started, 3))
    await asyncio.sleep(0.2)
    return f"action: {action}"


async def get_stream(s: Scenario, ctx: Context, arguments: dict[str, Any], params: Any) -> Any:
    """Asks on the session's own stream (GET) instead of the call's."""
    return f"action: {await s.elicit_url(ctx, 'get_stream', related=False)}"


async def dropped(s: Scenario, ctx: Context, arguments: dict[str, Any], params: Any) -> Any:
    """Its HTTP stream is torn down right after the question has left (see DropStream)."""
    return f"action: {await s.elicit_url(ctx, 'dropped')}"


async def dies(s: Scenario, ctx: Context, arguments: dict[str, Any], params: Any) -> Any:
    """Its process ends while the question is open."""
    asyncio.get_running_loop().call_later(0.1, os._exit, 1)
    return f"action: {await s.elicit_url(ctx, 'dies')}"


async def tool_error(s: Scenario, ctx: Context, arguments: dict[str, Any], params: Any) -> Any:
    return _text("the tool failed: no such label", is_error=True)


async def protocol_error(s: Scenario, ctx: Context, arguments: dict[str, Any], params: Any) -> Any:
    raise MCPError(-32603, "the server broke")


async def images(s: Scenario, ctx: Context, arguments: dict[str, Any], params: Any) -> Any:
    content: list[Any] = [
        types.TextContent(type="text", text="an image"),
        types.ImageContent(type="image", data=base64.b64encode(PNG).decode(), mime_type="image/png"),
        types.ResourceLink(type="resource_link", name="report", uri="file:///report.txt"),
    ]
    return types.CallToolResult(content=content)


async def structured(s: Scenario, ctx: Context, arguments: dict[str, Any], params: Any) -> Any:
    return _text(json.dumps(PROFILE), structured_content=dict(PROFILE))


async def with_meta(s: Scenario, ctx: Context, arguments: dict[str, Any], params: Any) -> Any:
    return _text("meta", _meta={"example.com/trace": {"id": 7, "tags": ["a", None]}})


async def input_required(s: Scenario, ctx: Context, arguments: dict[str, Any], params: Any) -> Any:
    """2026-07-28: asks through its result. `entries` questions a round, `rounds` rounds, then the answers."""
    state = json.loads(params.request_state) if params.request_state else {"round": 0, "answers": []}
    if state["round"]:
        for key in sorted(params.input_responses or {}):
            answer = (params.input_responses or {})[key]
            dumped = answer.model_dump(mode="json", by_alias=True, exclude_none=True)
            s.log.add("answer", what=key, mode="url", action=dumped.get("action"), content=dumped.get("content"))
            state["answers"].append(dumped.get("action"))
    if state["round"] >= int(arguments.get("rounds", 1)):
        return f"actions: {' '.join(state['answers'])}"
    asked: dict[str, Any] = {}
    for i in range(int(arguments.get("entries", 1))):
        flow = s.new_flow()
        asked[f"q{state['round']}_{i}"] = types.ElicitRequest(
            params=types.ElicitRequestURLParams(message=f"question {i}", url=flow.url)
        )
    state["round"] += 1
    return types.InputRequiredResult(input_requests=asked, request_state=json.dumps(state))


async def input_required_form(s: Scenario, ctx: Context, arguments: dict[str, Any], params: Any) -> Any:
    if params.input_responses:
        answer = params.input_responses["form"].model_dump(mode="json", by_alias=True, exclude_none=True)
        return f"form: {answer.get('action')} {json.dumps(answer.get('content'))}"
    request = types.ElicitRequest(
        params=types.ElicitRequestFormParams(message="Why?", requested_schema=arguments.get("schema") or FORM)
    )
    return types.InputRequiredResult(input_requests={"form": request})


Tool = tuple[Callable[[Scenario, Context, dict[str, Any], Any], Awaitable[Any]], str, dict[str, str]]
TOOLS: dict[str, Tool] = {
    "get_gmail_users_get_profile": (profile, "The Gmail profile of the signed-in user.", {}),
    "plain": (plain, "Answers at once.", {"text": "string"}),
    "slow": (slow, "Answers after a number of seconds.", {"seconds": "number"}),
    "decline_aware": (decline_aware, "Asks for a sign-in and reports the action.", {}),
    "elicit_then_slow": (elicit_then_slow, "Asks, then takes its time.", {"seconds": "number"}),
    "form_tool": (form_tool, "Asks with a form.", {"schema": "object"}),
    "elicit_twice": (elicit_twice, "Asks twice, one after the other.", {}),
    "elicit_same_id": (elicit_same_id, "Sends one elicitation twice.", {}),
    "elicit_same_id_at_once": (elicit_same_id_at_once, "Sends one elicitation twice at the same time.", {}),
    "elicit_parallel": (elicit_parallel, "Asks several questions at the same time.", {"count": "integer"}),
    "raw_elicit": (raw_elicit, "Sends elicitation/create as given.", {"params": "object"}),
    "error_32042": (error_32042, "Requires URLs to be visited first.", {"rounds": "integer", "urls": "integer"}),
    "error_32042_forever": (error_32042_forever, "Requires the same URL for ever.", {}),
    "error_32042_endless": (error_32042_endless, "Requires a new URL each time.", {}),
    "error_32042_malformed": (error_32042_malformed, "Requires URLs in a broken way.", {"kind": "string"}),
    "error_32042_wrapped": (error_32042, "As error_32042, inside an HTTP error.", {"rounds": "integer"}),
    "auth_url_text": (auth_url_text, "Answers with an authorization URL as text.", {}),
    "withhold": (withhold, "Keeps its stream open after the answer.", {}),
    "get_stream": (get_stream, "Asks on the session's own stream.", {}),
    "dropped": (dropped, "Loses its stream while the question is open.", {}),
    "dies": (dies, "Ends with its server while the question is open.", {}),
    "tool_error": (tool_error, "Fails as a tool.", {}),
    "protocol_error": (protocol_error, "Fails as a request.", {}),
    "images": (images, "Answers with text, an image and a link.", {}),
    "structured": (structured, "Answers with structured content.", {}),
    "with_meta": (with_meta, "Answers with _meta.", {}),
    "input_required": (input_required, "Asks through its result.", {"rounds": "integer", "entries": "integer"}),
    "input_required_form": (input_required_form, "Asks with a form through its result.", {"schema": "object"}),
}


# ---- HTTP --------------------------------------------------------------------------------------------------------


class HttpEdge:
    """What sits before a server in real life: authentication, a gateway that wraps errors, a connection that drops."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.manager = self.new_manager()
        self.stack = contextlib.AsyncExitStack()

    def new_manager(self) -> StreamableHTTPSessionManager:
        return StreamableHTTPSessionManager(
            app=self.scenario.server, json_response=self.scenario.options.json_response,
            stateless=self.scenario.options.stateless,
        )

    async def forget(self, request: Request) -> Response:
        for session_id, transport in list(self.manager._server_instances.items()):
            await self.manager._discard_session(session_id, transport)
        return JSONResponse({})

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        options = self.scenario.options
        headers = {name.decode().lower(): value.decode() for name, value in scope["headers"]}
        if options.status:
            await Response("refused", status_code=options.status)(scope, receive, send)
            return
        if options.token and headers.get("authorization") != f"Bearer {options.token}":
            reply = Response("", status_code=401, headers={"WWW-Authenticate": "Bearer"})
            await reply(scope, receive, send)
            return
        if scope["method"] == "POST":
            receive, body = await _peek(receive)
            if b'"dropped"' in body and b'"tools/call"' in body:
                send = _dropping(send)
            elif b"error_32042_wrapped" in body:  # a tool, a prompt or a resource of that name
                send = _wrapping(send, self.scenario.gateway_status)
        elif scope["method"] == "GET" and (session := headers.get("mcp-session-id")):
            asyncio.get_running_loop().call_later(0.02, self.scenario.gateway.stream(session).set)
        elif scope["method"] == "DELETE":
            self.scenario.log.add("deleted")
        await self.manager.handle_request(scope, receive, send)


async def _peek(receive: Any) -> tuple[Any, bytes]:
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    given = False

    async def again() -> Any:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again, body


def _dropping(send: Any) -> Any:
    async def wrapped(message: Any) -> None:
        await send(message)
        if b"elicitation/create" in message.get("body", b""):
            await asyncio.sleep(0.05)
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    return wrapped


def _wrapping(send: Any, status: int) -> Any:
    """Sends a -32042 of the server as the body of an HTTP error, as some gateways do."""
    start: list[Any] = []

    async def wrapped(message: Any) -> None:
        if message["type"] == "http.response.start":
            start.append(message)
            return
        body = message.get("body", b"")
        if start and b"-32042" in body:
            found = next(line for line in body.decode().replace("\r", "").split("\n") if "-32042" in line)
            payload = found.removeprefix("data: ").encode()
            head = [(b"content-type", b"application/json"), (b"content-length", str(len(payload)).encode())]
            start.clear()
            await send({"type": "http.response.start", "status": status, "headers": head})
            await send({"type": "http.response.body", "body": payload, "more_body": False})
            raise asyncio.CancelledError
        if start:
            await send(start.pop())
        await send(message)

    return wrapped


def build_app(scenario: Scenario) -> Starlette:
    edge, older = HttpEdge(scenario), SseEdge(scenario)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> Any:
        async with edge.manager.run():
            yield

    return Starlette(
        routes=[
            Route("/authorize", scenario.authorize),
            Route("/allow", scenario.allow, methods=["POST"]),
            Route("/callback", scenario.callback),
            Route("/_log", scenario.read_log),
            Route("/_clear", scenario.clear_log, methods=["POST"]),
            Route("/_forget", edge.forget, methods=["POST"]),
            Route("/mcp", _Endpoint(edge)),
            Route("/sse", _Endpoint(older.stream)),
            Mount("/messages/", _Endpoint(older.transport.handle_post_message)),
            Mount("/", _Endpoint(edge)),
        ],
        lifespan=lifespan,
    )


class SseEdge:
    """The older HTTP transport: a stream at /sse, messages to /messages/."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario, self.transport = scenario, SseServerTransport("/messages/")

    async def stream(self, scope: Any, receive: Any, send: Any) -> None:
        if self.scenario.options.status:
            await Response("refused", status_code=self.scenario.options.status)(scope, receive, send)
            return
        server = self.scenario.server
        async with self.transport.connect_sse(scope, receive, send) as (read, write):
            await server.run(read, write, server.create_initialization_options())


class _Endpoint:
    """Starlette takes a class instance with __call__ as a raw ASGI endpoint."""

    def __init__(self, edge: Callable[[Any, Any, Any], Awaitable[None]]) -> None:
        self.edge = edge

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.edge(scope, receive, send)


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A real MCP server with scenario tools.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--stdio", action="store_true")
    parser.add_argument("--era", choices=["both", "legacy", "modern"], default="both")
    parser.add_argument("--version", help="the protocol version that the handshake ends with")
    parser.add_argument("--token", help="require this bearer token (401 otherwise)")
    parser.add_argument("--status", type=int, help="answer every MCP request with this HTTP status")
    parser.add_argument("--page-size", type=int, default=0, help="tools per page of tools/list (0: all)")
    parser.add_argument("--need-allow", action="store_true", help="accept counts only after Allow was pressed")
    parser.add_argument("--no-complete", dest="complete", action="store_false", help="send no completion notification")
    parser.add_argument("--elicit-at-start", action="store_true", help="ask on the GET stream when a session starts")
    parser.add_argument("--gateway", choices=["same-id", "new-id", "every-session", "withhold"],
                        help="a pending sign-in is asked on the GET stream after the list of tools (see Gateway)")
    parser.add_argument("--gateway-delay", type=float, default=0.0, help="seconds between the list and the question")
    parser.add_argument("--json-response", action="store_true", help="JSON instead of event streams")
    parser.add_argument("--stateless", action="store_true", help="no sessions, hence no way to ask in a handshake era")
    return parser.parse_args(argv)


async def serve_http(options: argparse.Namespace) -> None:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", options.port))
    listener.listen(128)  # before the address is told: whoever reads it may connect at once
    base = f"http://127.0.0.1:{listener.getsockname()[1]}"
    scenario = Scenario(options, base)
    config = uvicorn.Config(build_app(scenario), log_level="critical", timeout_graceful_shutdown=1, lifespan="on")
    print(json.dumps({"url": f"{base}/mcp", "log": f"{base}/_log", "provider": f"{base}/authorize"}), flush=True)
    await uvicorn.Server(config).serve(sockets=[listener])


async def serve_stdio(options: argparse.Namespace) -> None:
    from mcp.server.stdio import stdio_server

    scenario = Scenario(options, "http://127.0.0.1:9")
    async with stdio_server() as (read, write):
        await scenario.server.run(read, write, scenario.server.create_initialization_options())


def main(argv: list[str] | None = None) -> int:
    options = parse(argv)
    logging.disable(logging.CRITICAL)  # some scenarios are errors that the SDK would print with a traceback
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve_stdio(options) if options.stdio else serve_http(options))
    return 0


if __name__ == "__main__":
    sys.exit(main())
