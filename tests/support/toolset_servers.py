"""Real SDK servers for the toolset, in the test's own process: in memory, or over HTTP on a thread.

`Scenario` is the one of tests/support/mcp_server.py with more tools, and with each tool also as a prompt
(`prompts/get` with the tool's name) and as a resource (`scenario://<tool>?<arguments>`), so that what a tool may ask
of its user, these may too. A server speaks one protocol version, as `--version` and `--era` of the scenario have it.
"""

from __future__ import annotations

import asyncio
import base64
import json
import threading
import time
import urllib.parse
import warnings
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, TypeVar

import mcp_types as types

from gopher_mcp_python import McpToolset
from tests.support import mcp_server
from tests.support.hosting import Hosted
from tests.support.mcp_server import PNG, Context, build_app, parse

VERSIONS = ("2025-06-18", "2025-11-25", "2026-07-28")
HANDSHAKE, MODERN = VERSIONS[:2], VERSIONS[2]
BOTH = "both"  # a server of both generations, as those of the SDK are
T = TypeVar("T")
PICTURE = base64.b64encode(PNG).decode()


class Scenario(mcp_server.Scenario):
    """The scenario server at one protocol version (or BOTH), with prompts, resources and the tools below."""

    def __init__(self, version: str, base: str = "http://127.0.0.1:9", *options: str) -> None:
        era = {MODERN: ["--era", "modern"], BOTH: []}.get(version, ["--era", "legacy", "--version", version])
        super().__init__(parse([*era, *options]), base)
        self.version = version
        self.tools.update(MORE)
        self.released = threading.Event()
        self.states: dict[str, list[str | None]] = {}
        for method, params, handler in (
            ("prompts/list", types.PaginatedRequestParams, self.list_prompts),
            ("prompts/get", types.GetPromptRequestParams, self.get_prompt),
            ("resources/list", types.PaginatedRequestParams, self.list_resources),
            ("resources/read", types.ReadResourceRequestParams, self.read_resource),
        ):
            self.server.add_request_handler(method, params, handler)

    def clear(self) -> None:
        """Forgets what happened, so that the next test finds a new server."""
        for kept in (self.log.entries, self.flows, self.calls, self.sent, self.states):
            kept.clear()  # type: ignore[attr-defined]
        self.released.clear()
        self.gateway_status = 403

    # ---- what happened -------------------------------------------------------------------------------------------

    def logged(self, event: str) -> list[dict[str, Any]]:
        return [entry for entry in list(self.log.entries) if entry["event"] == event]

    def runs(self) -> list[str]:
        return [entry["tool"] for entry in self.logged("run")]

    def actions(self) -> list[str]:
        return [entry["action"] for entry in self.logged("answer")]

    async def wait_for(self, event: str, count: int = 1, seconds: float = 10) -> list[dict[str, Any]]:
        end = time.monotonic() + seconds
        while len(found := self.logged(event)) < count:
            assert time.monotonic() < end, f"no {count} x {event!r} within {seconds} s, only {self.log.entries}"
            await asyncio.sleep(0.01)
        return found

    # ---- more of the protocol ------------------------------------------------------------------------------------

    async def gate(self, ctx: Context, call_next: Callable[[Context], Awaitable[Any]]) -> Any:
        """A tool named raw_result answers with its argument, as it is: nothing of the SDK shapes it. What that asks
        for comes back as the text of the next result, as it is."""
        if ctx.method == "tools/call" and (ctx.params or {}).get("name") == "raw_result":
            if "inputResponses" not in ctx.params:
                return ctx.params["arguments"]["result"]
            text = json.dumps(ctx.params["inputResponses"])
            return {"content": [{"type": "text", "text": text}], "resultType": "complete"}
        return await super().gate(ctx, call_next)

    async def list_prompts(self, ctx: Context, params: Any) -> types.ListPromptsResult:
        found = [types.Prompt(name=name, description=entry[1]) for name, entry in sorted(self.tools.items())]
        return types.ListPromptsResult(prompts=found)

    async def list_resources(self, ctx: Context, params: Any) -> types.ListResourcesResult:
        found = [types.Resource(name=name, uri=f"scenario://{name}") for name in sorted(self.tools)]
        return types.ListResourcesResult(resources=found)

    async def get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> Any:
        result = await self._as_tool(ctx, params.name, params.arguments, params)
        if not isinstance(result, str):
            return result
        message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=result))
        return types.GetPromptResult(messages=[message])

    async def read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> Any:
        parts = urllib.parse.urlsplit(params.uri)
        result = await self._as_tool(ctx, parts.netloc, dict(urllib.parse.parse_qsl(parts.query)), params)
        if not isinstance(result, str):
            return result
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=params.uri, text=result)])

    async def _as_tool(self, ctx: Context, name: str, arguments: dict[str, str] | None, params: Any) -> Any:
        """The tool's text, or what it asks for through its result. The log does not tell it from a tool."""
        self.log.add("request", method=ctx.method, id=ctx.request_id)
        given = SimpleNamespace(
            name=name, arguments=arguments, input_responses=params.input_responses, request_state=params.request_state
        )
        result = await self.call_tool(ctx, given)  # type: ignore[arg-type]
        return result.content[0].text if isinstance(result, types.CallToolResult) else result  # type: ignore[union-attr]


# ---- tools -------------------------------------------------------------------------------------------------------


async def kind(s: Scenario, ctx: Context, arguments: dict[str, Any], params: Any) -> Any:
    """A result of one content kind (or several, in a list) with the `_meta` given, if any."""
    text = types.TextContent(type="text", text="hello")
    blocks: dict[str, list[Any]] = {
        "text": [text], "error": [text], "structured": [text], "empty": [],
        "image": [types.ImageContent(type="image", data=PICTURE, mime_type="image/png")],
        "audio": [types.AudioContent(type="audio", data="UklGRg==", mime_type="audio/wav")],
        "resource_link": [types.ResourceLink(type="resource_link", name="report", uri="file:///report.txt")],
        "embedded": [types.EmbeddedResource(
            type="resource", resource=types.TextResourceContents(uri="file:///a.txt", text="inside"))],
    }  # fmt: skip
    fields: dict[str, Any] = {"_meta": arguments["meta"]} if "meta" in arguments else {}
    if arguments["kind"] == "structured":
        fields["structured_content"] = {"temperature": 22.5}
    if arguments["kind"] == "error":
        fields["is_error"] = True
    return types.CallToolResult(content=blocks[arguments["kind"]], **fields)


async def roots(s: Scenario, ctx: Context, arguments: dict[str, Any], params: Any) -> Any:
    """The client's roots, asked for on the way back (handshake) or through the result (2026-07-28)."""
    if ctx.protocol_version == MODERN:
        if not params.input_responses:
            return types.InputRequiredResult(input_requests={"roots": types.ListRootsRequest()})
        found = params.input_responses["roots"]
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = await ctx.session.list_roots()
    return json.dumps([str(root.uri) for root in found.roots])


async def progress(s: Scenario, ctx: Context, arguments: dict[str, Any], params: Any) -> Any:
    for step in range(1, 4):
        await ctx.session.report_progress(step, 3, f"step {step}")
    return "done"


async def until_released(s: Scenario, ctx: Context, arguments: dict[str, Any], params: Any) -> Any:
    """Asks a question whose completion is told by the test (`released`), then reports the action."""
    flow = s.new_flow()
    asking = asyncio.ensure_future(s.elicit_url(ctx, "until_released", flow=flow))
    for other in ("no-such-id", "el-finished"):
        await ctx.session.send_elicit_complete(other, related_request_id=ctx.request_id)
    while not s.released.is_set():
        await asyncio.sleep(0.01)
    for _ in range(2):
        await ctx.session.send_elicit_complete(flow.id, related_request_id=ctx.request_id)
    return f"action: {await asking}"


async def in_rounds(s: Scenario, ctx: Context, arguments: dict[str, Any], params: Any) -> Any:
    """2026-07-28: one round for each of the scenario's `states` of that name, the requestState that is sent (None:
    none), with `forms` forms; then the answers. Each round is logged as it came."""
    name = arguments.get("name", "")
    states = s.states[name]
    answers = {key: _wire(value) for key, value in (params.input_responses or {}).items()}
    number = s.sent[name] = s.sent.get(name, -1) + 1
    s.log.add("round", name=name, id=ctx.request_id, state=params.request_state, answers=answers)
    if number >= len(states):
        return json.dumps([entry["answers"] for entry in s.logged("round") if entry["name"] == name][1:])
    asked: dict[str, Any] = {}
    for at in range(int(arguments.get("forms", 1))):
        schema = {"type": "object", "properties": {"n": {"type": "integer", "default": at}}}
        asked[f"{name}{number}.{at}"] = types.ElicitRequest(
            params=types.ElicitRequestFormParams(message=f"{name} {number} {at}", requested_schema=schema)
        )
    return types.InputRequiredResult(input_requests=asked or None, request_state=states[number])


def _wire(value: Any) -> Any:
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


MORE: dict[str, Any] = {
    "kind": (kind, "A result of one kind.", {"kind": "string", "meta": "object"}),
    "roots": (roots, "The client's roots.", {}),
    "progress": (progress, "Tells how far it is.", {}),
    "until_released": (until_released, "Asks, and tells when it is done.", {}),
    "in_rounds": (in_rounds, "Asks in rounds.", {"name": "string", "forms": "integer"}),
    "raw_result": (kind, "Answers with its argument.", {"result": "object"}),
}


# ---- where they run ----------------------------------------------------------------------------------------------


class Place:
    """A scenario server and what a toolset is connected to: the server itself, or its address."""

    def __init__(self, transport: str, version: str, *options: str) -> None:
        self.transport, self.version = transport, version
        self.scenario = Scenario(version, "http://127.0.0.1:9", *options)
        self._hosted: Hosted | None = None
        self.connection: Any = self.scenario.server
        if transport == "http":
            self._hosted = Hosted(build_app(self.scenario), f"scenario-{version}")
            self.scenario.base = self._hosted.base
            self.connection = f"{self._hosted.base}/mcp"

    @property
    def protocol(self) -> str:
        """In memory nothing is tried out: the stream's first message decides what it speaks."""
        return MODERN if self.version == MODERN and self.transport == "memory" else "auto"

    def close(self) -> None:
        if self._hosted is not None:
            self._hosted.close()

    def run(self, body: Callable[[McpToolset], Awaitable[T]], *, limit: float = 20, **options: Any) -> T:
        """Runs `body` with a connected toolset on an event loop of its own, for at most `limit` seconds."""
        return using(self.connection, body, limit=limit, protocol=self.protocol, **options)

    def text(self, name: str, arguments: dict[str, Any] | None = None, **options: Any) -> str:
        """Calls one tool and returns its output."""

        async def body(toolset: McpToolset) -> str:
            return str((await toolset.call_tool(name, arguments))["output"])

        return self.run(body, **options)


def using(connection: Any, body: Callable[[McpToolset], Awaitable[T]], *, limit: float = 20, **options: Any) -> T:
    """Runs `body` with a connected toolset on an event loop of its own, for at most `limit` seconds."""

    async def run() -> T:
        async with McpToolset(connection, **options) as toolset:
            return await body(toolset)

    return asyncio.run(asyncio.wait_for(run(), limit))
