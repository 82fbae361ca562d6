"""What the gateway's tests need: a real server of the SDK with tools that can destroy, and a gateway in front of it.

    python -m tests.support.gateways upstream PORT RUNS         the server; each run of `erase` is a line in RUNS
    python -m tests.support.gateways gateway PORT URL STORE KEYS [POINT]
        a gateway that kills itself (SIGKILL) at a point: before-consume, after-consume, before-complete, after-complete
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import mcp_types as types
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError

from gopher_mcp_python.gateway import Gateway, Rules, Upstream, read_upstream
from gopher_mcp_python.gateway.held import META_KEY
from gopher_mcp_python.gateway.http import create_app
from gopher_mcp_python.store.core import Store
from gopher_mcp_python.store.keys import KeyRing
from gopher_mcp_python.store.memory import MemoryBackend
from gopher_mcp_python.toolset.connection import MemoryConnection
from tests.support import children
from tests.support.hosting import Hosted

T = TypeVar("T")
FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
LIMIT = 150  # seconds for the body of one test; nothing here takes long on a machine that has time
SCHEMA: dict[str, Any] = {"type": "object"}
HINTS: dict[str, Any] = {
    "erase": types.ToolAnnotations(destructive_hint=True),
    "peek": types.ToolAnnotations(destructive_hint=False),
    "look": types.ToolAnnotations(read_only_hint=True),
    "both": types.ToolAnnotations(read_only_hint=True, destructive_hint=True),
    "bare": None,
    "dispatch": types.ToolAnnotations(destructive_hint=True),
    "guarded": types.ToolAnnotations(destructive_hint=True),
    "rounds": types.ToolAnnotations(destructive_hint=True),
}
PLAIN = ("meta", "progress", "slow", "ask", "page", "fail", "structured", "say", "asks_in_rounds")


class Vault:
    """The server behind the gateway.

    Attributes:
        runs: what ran, (tool, arguments) each.
        hints: each tool's annotations; a test may change them.
        gates: events that a tool waits for, or sets.
    """

    def __init__(self, name: str = "vault", on_run: Callable[[str], None] | None = None) -> None:
        self.runs: list[tuple[str, dict[str, Any]]] = []
        self.hints = {**HINTS, **dict.fromkeys(PLAIN, types.ToolAnnotations(destructive_hint=False))}
        self.gates: dict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.listed = 0
        self.refusals = 0
        self.sessions: list[Any] = []
        self.levels: list[str] = []
        self.subscribed: list[str] = []
        self.cancelled: list[str] = []
        self._on_run = on_run
        self.bus = InMemorySubscriptionBus()
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # logging/setLevel is a deprecated one
            self.sdk: Server[Any] = Server(
                name,
                version="7",
                instructions=f"This is {name}.",
                on_list_tools=self._list_tools,
                on_call_tool=self._call_tool,
                on_list_prompts=self._list_prompts,
                on_get_prompt=self._get_prompt,
                on_list_resources=self._list_resources,
                on_list_resource_templates=self._list_templates,
                on_read_resource=self._read_resource,
                on_subscribe_resource=self._subscribe,
                on_completion=self._complete,
                on_set_logging_level=self._set_level,
                on_subscriptions_listen=ListenHandler(self.bus),
            )
        options = NotificationOptions(tools_changed=True, prompts_changed=True, resources_changed=True)
        create = self.sdk.create_initialization_options
        self.sdk.create_initialization_options = lambda *a, **k: create(options)  # type: ignore[method-assign]

    async def _list_tools(self, ctx: Any, params: Any) -> types.ListToolsResult:
        self.listed += 1
        tools = [types.Tool(name=name, input_schema=SCHEMA, annotations=hints) for name, hints in self.hints.items()]
        half = len(tools) // 2  # two pages, so that nobody gets by with the first
        if params is not None and params.cursor:
            return types.ListToolsResult(tools=tools[half:])
        return types.ListToolsResult(tools=tools[:half], next_cursor="rest")

    async def _call_tool(self, ctx: Any, params: types.CallToolRequestParams) -> Any:
        arguments = dict(params.arguments or {})
        self.sessions.append(ctx.session)
        if params.name not in self.hints:
            raise MCPError(-32602, f"Unknown tool: {params.name}")
        work = getattr(self, f"_{params.name}", None)
        if work is not None:
            result = await work(ctx, arguments, params)
            if not isinstance(result, str):
                return result
            return _text(result)
        self.runs.append((params.name, arguments))
        if self._on_run is not None:
            self._on_run(json.dumps([params.name, arguments]))
        self.gates["ran"].set()
        if "wait" in arguments:
            await self.gates[arguments["wait"]].wait()
        return _text(f"{params.name} done")

    # ---- tools that destroy nothing --------------------------------------------------------------------------------

    async def _meta(self, ctx: Any, arguments: Any, params: Any) -> Any:
        meta = {key: value for key, value in (ctx.params.get("_meta") or {}).items() if key.startswith("test/")}
        return types.CallToolResult(content=[], _meta={"test/echo": meta, "test/answer": [1, 1.5, None, "x"]})

    async def _progress(self, ctx: Any, arguments: Any, params: Any) -> str:
        for at in (1, 2, 3):
            await ctx.session.report_progress(at, 3, f"step {at}")
        return "done"

    async def _slow(self, ctx: Any, arguments: Any, params: Any) -> str:
        self.gates["slow"].set()
        try:
            await self.gates["never"].wait()
        except asyncio.CancelledError:
            self.cancelled.append("slow")
            self.gates["cancelled"].set()
            raise
        return "done"

    async def _ask(self, ctx: Any, arguments: Any, params: Any) -> str:
        answer = await ctx.session.elicit_form(f"Name of {arguments.get('of')}?", FORM, ctx.request_id)
        return f"{answer.action} {(answer.content or {}).get('name')}"

    async def _page(self, ctx: Any, arguments: Any, params: Any) -> str:
        answer = await ctx.session.elicit_url("Sign in.", "https://login.example/x", "page-1", ctx.request_id)
        await ctx.session.send_elicit_complete("page-1", ctx.request_id)
        return str(answer.action)

    async def _fail(self, ctx: Any, arguments: Any, params: Any) -> str:
        raise MCPError(arguments.get("code", -32050), "it failed so", data=arguments.get("data"))

    async def _structured(self, ctx: Any, arguments: Any, params: Any) -> Any:
        return types.CallToolResult(content=[], structured_content={"n": 1, "list": [{"a": None}]}, is_error=True)

    async def _say(self, ctx: Any, arguments: Any, params: Any) -> str:
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            await ctx.session.send_log_message("info", "said", "vault", ctx.request_id)
        return "said"

    async def _guarded(self, ctx: Any, arguments: Any, params: Any) -> str:
        """Refuses until its page was visited (-32042)."""
        if self.refusals == 0:
            self.refusals += 1
            page = {"mode": "url", "elicitationId": "1", "url": "https://login.example/", "message": "Sign in."}
            raise MCPError(-32042, "URL elicitation required", data={"elicitations": [page]})
        self.runs.append(("guarded", arguments))
        return "guarded done"

    async def _rounds(self, ctx: Any, arguments: Any, params: Any) -> Any:
        return self._in_rounds(params, "rounds")

    async def _asks_in_rounds(self, ctx: Any, arguments: Any, params: Any) -> Any:
        return self._in_rounds(params, "asks_in_rounds")

    def _in_rounds(self, params: Any, name: str) -> Any:
        """Asks through its result, once."""
        if not params.input_responses:
            question = types.ElicitRequest(
                params=types.ElicitRequestFormParams(message="Which?", requested_schema=FORM)
            )
            return types.InputRequiredResult(input_requests={"which": question}, request_state="vault's own")
        self.runs.append((name, dict(params.arguments or {})))
        given = params.input_responses["which"]
        return f"{params.request_state}: {given.action} {(given.content or {}).get('name')}"

    # ---- everything else -------------------------------------------------------------------------------------------

    async def _list_prompts(self, ctx: Any, params: Any) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[types.Prompt(name="greet")])

    async def _get_prompt(self, ctx: Any, params: Any) -> types.GetPromptResult:
        text = types.TextContent(type="text", text=f"{params.name} {(params.arguments or {}).get('who')}")
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=text)])

    async def _list_resources(self, ctx: Any, params: Any) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[types.Resource(name="a", uri=f"{self.sdk.name}://a")])

    async def _list_templates(self, ctx: Any, params: Any) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(name="t", uri_template=f"{self.sdk.name}://t/{{id}}")
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def _read_resource(self, ctx: Any, params: Any) -> types.ReadResourceResult:
        if not params.uri.startswith(f"{self.sdk.name}://"):
            raise MCPError(-32002, "no such resource")
        text = f"{params.uri} of {self.sdk.name}"
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=params.uri, text=text)])

    async def _subscribe(self, ctx: Any, params: Any) -> types.EmptyResult:
        self.subscribed.append(params.uri)
        self.sessions.append(ctx.session)
        return types.EmptyResult()

    async def _complete(self, ctx: Any, params: Any) -> types.CompleteResult:
        found = types.Completion(values=[f"{params.ref.name}:{params.argument.value}"])
        return types.CompleteResult(completion=found)

    async def _set_level(self, ctx: Any, params: Any) -> types.EmptyResult:
        self.levels.append(params.level)
        return types.EmptyResult()

    async def tools_changed(self) -> None:
        """Tells every way there is."""
        await self.bus.publish(ToolsListChanged())
        await self.sessions[-1].send_tool_list_changed()


def _text(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


# ---- in one process ----------------------------------------------------------------------------------------------


def memory_store(**options: Any) -> Store:
    return Store(MemoryBackend(), KeyRing.generate(), **options)


class Person:
    """A client's person: answers confirmations with `confirm`, other forms with a name, pages with accept."""

    def __init__(self, confirm: str = "accept") -> None:
        self.confirm = confirm
        self.asked: list[Any] = []

    @property
    def confirmations(self) -> list[Any]:
        return [asked for asked in self.asked if META_KEY in (asked.meta or {})]

    async def __call__(self, context: Any, params: Any) -> types.ElicitResult:
        self.asked.append(params)
        if META_KEY in (params.meta or {}):
            return types.ElicitResult(action=self.confirm, content={} if self.confirm == "accept" else None)
        content = {"name": "Bob"} if params.mode == "form" else None
        return types.ElicitResult(action="accept", content=content)


class House:
    """A vault, its gateway and their store."""

    def __init__(self, *vaults: Vault, store: Any = None, **options: Any) -> None:
        self.vaults = vaults or (Vault(),)
        self.vault = self.vaults[0]
        self.store = store or memory_store()
        upstreams = [Upstream(vault.sdk.name, MemoryConnection(vault.sdk)) for vault in self.vaults]
        self.gateway = Gateway(upstreams, self.store, **options)

    @asynccontextmanager
    async def client(self, person: Person | None = None, *, modern: bool = False, **more: Any) -> AsyncIterator[Client]:
        """The SDK's own client in front of the gateway."""
        mode = "auto" if modern else "legacy"
        async with Client(self.gateway.server, mode=mode, elicitation_callback=person, **more) as client:
            yield client


def run(body: Coroutine[Any, Any, T]) -> T:
    """One event loop a test, bounded."""
    return asyncio.run(asyncio.wait_for(body, LIMIT))


def status_of(result: Any) -> str:
    """What the gateway says of a call that it did not run."""
    assert result.is_error and META_KEY in (result.meta or {}), result
    return str(result.meta[META_KEY]["status"])


def id_of(result: Any) -> str:
    return str(result.meta[META_KEY]["id"])


def text_of(result: Any) -> str:
    assert not result.is_error, result
    return str(result.content[0].text)


async def soon(condition: Callable[[], Any]) -> Any:
    """Waits until something holds."""
    while not (found := condition()):
        await asyncio.sleep(0.005)
    return found


class OverHttp:
    """A vault and its gateway, each behind a real HTTP server on a thread of its own.

    Args:
        authenticators: of the gateway; none: everybody on this machine may call.
    """

    def __init__(self, *authenticators: Any, **options: Any) -> None:
        self.vault = Vault()
        self.store = options.pop("store", None) or memory_store()
        self.behind = Hosted(self.vault.sdk.streamable_http_app(), "vault")
        self.upstream_url = f"{self.behind.base}/mcp"
        gateway = Gateway([read_upstream(f"vault={self.upstream_url}")], self.store, **options)
        app = create_app(gateway, authenticators, anonymous=not authenticators)
        self.front = Hosted(app, "gateway")
        self.url = f"{self.front.base}/mcp"

    def restart_vault(self) -> None:
        """The server is there again, at the same address, and knows no session of before."""
        port = int(self.behind.base.rpartition(":")[2])
        self.behind.close()
        self.behind = self.vault_at(port)

    def vault_at(self, port: int) -> Hosted:
        return Hosted(self.vault.sdk.streamable_http_app(), "vault", port)

    def close(self) -> None:
        self.front.close()
        self.behind.close()
        self.store.close()

    @asynccontextmanager
    async def client(
        self, person: Person | None = None, *, token: str = "", modern: bool = False, **more: Any
    ) -> AsyncIterator[Client]:
        """The SDK's own client, over HTTP."""
        headers = {"authorization": f"Bearer {token}"} if token else {}
        async with httpx2.AsyncClient(headers=headers, timeout=LIMIT) as http:
            transport = streamable_http_client(self.url, http_client=http)
            mode = "auto" if modern else "legacy"
            async with Client(transport, mode=mode, elicitation_callback=person, **more) as client:
                yield client


# ---- processes ---------------------------------------------------------------------------------------------------

ME = [sys.executable, "-m", "tests.support.gateways"]


@contextmanager
def started(*argv: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server of this module and its URL; killed at the end if it still runs."""
    process, told = children.start_server([*ME, *argv])
    try:
        yield process, f"http://127.0.0.1:{told['port']}/mcp"
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


class _Killing:
    """A store that ends its process at a point, of calls with {"killed": point} among their arguments."""

    def __init__(self, store: Store, point: str) -> None:
        self._store = store
        self._point = point
        self._meant: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def consume(self, caller: str, id: str, **kwargs: Any) -> Any:
        if kwargs["arguments"].get("killed") == self._point:
            self._meant.add(id)
        self._at("before-consume", id)
        state = self._store.consume(caller, id, **kwargs)
        if state == "consumed":
            self._at("after-consume", id)
        return state

    def complete(self, caller: str, id: str) -> None:
        self._at("before-complete", id)
        self._store.complete(caller, id)
        self._at("after-complete", id)

    def _at(self, point: str, id: str) -> None:
        if self._point == point and id in self._meant:
            os.kill(os.getpid(), signal.SIGKILL)


def _serve(app: Any, port: int) -> None:
    from gopher_mcp_python.gateway.serving import HttpServer
    from gopher_mcp_python.serve.server import bind

    listener = bind("127.0.0.1", port)
    print(json.dumps({"port": listener.getsockname()[1]}), flush=True)
    HttpServer(app).serve_on(listener)


def main(argv: list[str]) -> None:
    if argv[0] == "upstream":
        port, file = argv[1:]

        def note(line: str) -> None:
            with Path(file).open("a") as out:
                out.write(line + "\n")

        _serve(Vault(on_run=note).sdk.streamable_http_app(), int(port))
        return
    from gopher_mcp_python.serve.opening import open_backend
    from gopher_mcp_python.store.keys import FileKeys

    port, url, spec, keys, point = (*argv[1:], "")[:5]
    store: Any = _Killing(Store(open_backend(spec), FileKeys(keys), rate=None), point)
    gateway = Gateway([read_upstream(f"vault={url}")], store, rules=Rules())
    _serve(create_app(gateway, [], anonymous=True), int(port))


if __name__ == "__main__":
    main(sys.argv[1:])
