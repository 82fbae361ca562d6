"""McpToolset: the tools of one MCP server for any agent framework, with everything that the server may ask its user."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, cast

from . import sdk_import, sdk_version

with sdk_version.needed_for("McpToolset"):
    sdk_import.load("gopher_mcp_python.toolset.toolset", "mcp.client.streamable_http")

from .toolset.calls import GetPrompt, ReadResource, ToolCall
from .toolset.clock import PausableClock
from .toolset.connection import ClientConnection
from .toolset.handling import asker_for
from .toolset.inputs import (
    as_connection,
    as_names,
    as_person,
    as_progress,
    as_roots,
    as_seconds,
    with_sign_in,
)
from .toolset.quiet import hush
from .toolset.results import function_response
from .toolset.toolset import Toolset

if TYPE_CHECKING:
    import mcp_types as types

    from .oauth_options import GopherAgentOAuthOptions
    from .toolset.calls import Progress, ServerRequest
    from .toolset.handling import HandlerInput
    from .toolset.inputs import ConnectionInput

__all__ = ["McpTool", "McpToolset"]

#: Seconds that connecting and listing may take; time in which a person is asked does not count.
CONNECT_SECONDS = 60.0
_LEAST_SECONDS = 0.001  # a limit that connecting has used up is over at once


class McpToolset:
    """The tools of one MCP server, for any agent framework or none.

        async with McpToolset("https://mcp.example.com/mcp", elicitation_handler=ask_my_user) as toolset:
            for tool in await toolset.list_tools():
                print(tool.name, tool.description)
            response = await toolset.call_tool("get_profile", {"user": "me"})

    `call_tool` returns a function response: `{"output": ...}`. **It is what the model sees, and what sessions and
    traces keep.** That goes for its "_meta", too, which is there whenever the result carried it, unchanged: servers put
    authorization challenges, trace ids and the like there. Take it out yourself where the model must not have it.

    Use it from one event loop of asyncio; any number of calls may be under way at the same time. It connects when it is
    first used, and again when the server has forgotten the session.

    Args:
        connection: the server: its URL; an `HttpConnection` or `StdioConnection`; an entry of a server configuration
            (a mapping with `url`, or `command` and `args`); a server of the SDK in this process; or the caller's own
            client, the SDK's `Client` or `ClientSession`, which they enter and close themselves.
        elicitation_handler: who answers what the server asks of its user: a sync or async function that takes a
            GopherAgentElicitationRequest (which says what server and what tool asks) and returns a
            GopherAgentElicitationResponse or "accept", "decline", "cancel"; one of the texts "cancel" and "decline",
            which always answers so; or elicitation options, of which `{}` is the prompt on the terminal. None: servers
            are told that nobody can be asked. A sync function runs on a thread of its own, an async one on this loop;
            both see the context variables of the caller of `call_tool`, and one that is not needed any more is
            cancelled (a thread is left behind). What it raises is told to the server as an error, and raised by the
            call.
        elicitation_complete_handler: a sync or async function that is told the elicitation id of each page that was
            asked for here and that the server calls complete.
        modes: what is declared to the server, "url", "form" or both; None: both, for a handler of your own. Another
            mode is answered with error -32602.
        elicitation_timeout: limit for one answer, in seconds, then it is "cancel"; None: none.
        timeout: limit for a call, in seconds; None: none. Time in which a person is asked does not count.
        protocol: "auto": what each tool needs (see the module `toolset.toolset`); "handshake" or "2026-07-28".
        roots: a folder or a ``file://`` address, or several, that the server is told of; none: nothing is declared.
        oauth: signing in to the server itself, where it demands a token: options as of GopherAgent; False: never.
        headers: sent with every request to a URL.
        person: who is asked, any hashable: one prompt at a time for each person, first come first served, also over
            several toolsets. None: one person for this toolset.
        name: of the server, for people; its host or command by default.

    Raises:
        ValueError: handlers together with a client of the caller's own (it has its callbacks already); a completion
            handler without an elicitation handler; a value of the wrong kind.
        AgentError: a server entry that can't be read.
    """

    def __init__(
        self,
        connection: ConnectionInput,
        *,
        elicitation_handler: HandlerInput | None = None,
        elicitation_complete_handler: Callable[[str], Any] | None = None,
        modes: Any = None,
        elicitation_timeout: float | None = None,
        timeout: float | None = None,
        protocol: Literal["auto", "handshake", "2026-07-28"] = "auto",
        roots: str | Path | Sequence[str | Path] = (),
        oauth: GopherAgentOAuthOptions | Mapping[str, Any] | Literal[False] | None = None,
        headers: Mapping[str, str] | None = None,
        person: Hashable = None,
        name: str = "",
    ) -> None:
        where = as_connection(connection, headers or {}, name)
        if isinstance(where, ClientConnection):
            _refuse_for_a_client(
                elicitation_handler=elicitation_handler,
                elicitation_complete_handler=elicitation_complete_handler,
                modes=modes,
                roots=roots or None,
            )
        if protocol not in ("auto", "handshake", "2026-07-28"):
            raise ValueError(f"protocol is {protocol!r:.40}; use auto, handshake or 2026-07-28")
        answer_limit = as_seconds(elicitation_timeout, "elicitation_timeout")
        asker = asker_for(
            elicitation_handler,
            elicitation_complete_handler,
            modes=modes,
            timeout_ms=None if answer_limit is None else answer_limit * 1000,
            person=as_person(person),
        )
        if modes is not None and asker is None:
            raise ValueError("modes say what an elicitation_handler serves; there is none")
        self._timeout = as_seconds(timeout, "timeout")
        hush()
        self._core = Toolset(
            with_sign_in(where, oauth), asker, protocol=protocol, roots=as_roots(roots)
        )

    def __repr__(self) -> str:
        return f"McpToolset({self.name!r})"

    def __del__(self) -> None:
        core = getattr(self, "_core", None)
        if core is not None and core.is_open:
            told = f"unclosed {self!r}; use it in `async with`, or await its aclose()"
            warnings.warn(told, ResourceWarning, stacklevel=2, source=self)
            core.close_soon()

    # ---- life ------------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The server's name, for people."""
        return self._core.connection.label

    async def connect(self) -> None:
        """Connects and lists the tools. Not needed: what is called first does so.

        Raises ApiKeyError, ConnectionError, TimeoutError or another AgentError, naming the server and what to do.
        """
        await self._connect(None)

    async def _connect(self, limit: float | None) -> float | None:
        """Connects on behalf of what may take `limit` seconds in all. Returns how many are left."""
        most = CONNECT_SECONDS if limit is None else min(limit, CONNECT_SECONDS)
        clock = PausableClock(most)
        await self._core.connect(clock)
        return None if limit is None else max(_LEAST_SECONDS, limit - most + (clock.remaining() or 0.0))

    async def aclose(self) -> None:
        """Takes back what is still asked and closes the connection. Idempotent. A client of your own stays open."""
        await self._core.aclose()

    async def __aenter__(self) -> McpToolset:
        try:
            await self.connect()
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    # ---- tools -----------------------------------------------------------------------------------------------------

    async def list_tools(self) -> list[McpTool]:
        """Lists the server's tools, anew each time. Raises as `connect`."""
        await self.connect()
        return [McpTool(self, tool) for tool in self._core.tools.values()]

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        on_progress: Progress | None = None,
        meta: Mapping[str, Any] | None = None,
        person: Hashable = None,
    ) -> dict[str, Any]:
        """Calls a tool and returns its function response: what the model sees, and what sessions and traces keep.

        What the server asks meanwhile is answered by the elicitation handler. Cancelling the awaiting task tells the
        server that the call was cancelled and takes back what is being asked.

        Args:
            timeout: limit in seconds, without the time in which a person is asked; None: the toolset's own.
            on_progress: a sync or async function, called with progress, total and message (the last two may be None).
            meta: sent as the request's `_meta`.
            person: who is asked, where one toolset serves several people.

        Returns:
            "output": the structured content, else the texts, one a line. Where the tool said that it failed
            (`isError`), "error" in its place, and "isError": True. "content": images, audio, resource links and all
            else that "output" does not carry, as they came. "_meta": as it came. No key without a value.

        Raises:
            ServerError: the server answered with a JSON-RPC error.
            ElicitationRequiredError: it demands (error -32042) what could not be had: declined, malformed, the same
                page again, or more than five times.
            ElicitationHandlerError: the handler failed; `__cause__` is what it raised.
            CallTimeoutError, SessionLostError, ToolsetError: the time was up, the connection ended, or else.
        """
        result, raw = await self._call(self._tool_call(name, arguments, on_progress, meta), timeout, person)
        return function_response(result, raw)

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        on_progress: Progress | None = None,
        meta: Mapping[str, Any] | None = None,
        person: Hashable = None,
    ) -> types.CallToolResult:
        """Like `call_tool`, but returns the result as the SDK has it."""
        result, _ = await self._call(self._tool_call(name, arguments, on_progress, meta), timeout, person)
        return cast("types.CallToolResult", result)

    # ---- prompts and resources -------------------------------------------------------------------------------------

    async def list_prompts(self) -> list[types.Prompt]:
        """Lists the server's prompts. Raises as `connect`."""
        return await self._core.list_prompts(PausableClock(CONNECT_SECONDS))

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
        person: Hashable = None,
    ) -> types.GetPromptResult:
        """Gets a prompt; what the server asks meanwhile is answered. Raises as `call_tool`."""
        given = as_names(arguments or {}, "arguments")
        if not all(isinstance(value, str) for value in given.values()):
            raise ValueError("arguments of a prompt must be texts")
        result, _ = await self._call(GetPrompt(name, given), timeout, person)
        return cast("types.GetPromptResult", result)

    async def list_resources(self) -> list[types.Resource]:
        """Lists the server's resources. Raises as `connect`."""
        return await self._core.list_resources(PausableClock(CONNECT_SECONDS))

    async def list_resource_templates(self) -> list[types.ResourceTemplate]:
        """Lists the templates of the server's resources. Raises as `connect`."""
        return await self._core.list_resource_templates(PausableClock(CONNECT_SECONDS))

    async def read_resource(
        self, uri: str, *, timeout: float | None = None, person: Hashable = None
    ) -> types.ReadResourceResult:
        """Reads a resource; what the server asks meanwhile is answered. Raises as `call_tool`."""
        result, _ = await self._call(ReadResource(uri), timeout, person)
        return cast("types.ReadResourceResult", result)

    # ---- within ----------------------------------------------------------------------------------------------------

    def _tool_call(
        self, name: str, arguments: Mapping[str, Any] | None, on_progress: Progress | None, meta: Any
    ) -> ToolCall:
        if not isinstance(name, str):
            raise ValueError(f"the name of a tool must be a text, not {type(name).__name__}")
        if meta and "progressToken" in meta:
            raise ValueError("meta can't hold a progressToken: on_progress has one of its own")
        told = None if on_progress is None else as_progress(on_progress)
        return ToolCall(name, as_names(arguments or {}, "arguments"), told, meta and as_names(meta, "meta"))

    async def _call(
        self, request: ServerRequest, timeout: float | None, person: Hashable
    ) -> tuple[Any, dict[str, Any]]:
        limit = as_seconds(timeout, "timeout") or self._timeout
        as_person(person)
        if not self._core.listed:
            limit = await self._connect(limit)
        return await self._core.call(request, timeout=limit, person=person)


class McpTool:
    """One tool of an `McpToolset`.

    Attributes:
        name, title, description: as the server has them; title and description may be "".
        input_schema: JSON Schema of the arguments.
        output_schema: JSON Schema of the structured content, or None.
        annotations: the server's hints (read-only, destructive, ...), or None.
        meta: the `_meta` of its listing, or None.
    """

    def __init__(self, toolset: McpToolset, tool: types.Tool) -> None:
        self._toolset = toolset
        self.name = tool.name
        self.title = tool.title or ""
        self.description = tool.description or ""
        self.input_schema: dict[str, Any] = tool.input_schema
        self.output_schema: dict[str, Any] | None = tool.output_schema
        self.annotations = tool.annotations
        self.meta: dict[str, Any] | None = tool.meta

    async def call(self, arguments: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        """Calls it; see `McpToolset.call_tool`, also for what else it takes."""
        return await self._toolset.call_tool(self.name, arguments, **more)

    async def __call__(self, /, **arguments: Any) -> dict[str, Any]:
        """Calls it with its arguments by name."""
        return await self.call(arguments)

    def __repr__(self) -> str:
        return f"McpTool({self.name!r} of {self._toolset.name!r})"


def _refuse_for_a_client(**given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"{name} can't be combined with a client of your own, which was made with its own callbacks and "
                "capabilities; give it there (see elicitation_callback), or give the server's URL here"
            )
