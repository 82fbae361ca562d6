"""The demo's mail server: a real MCP server (official SDK, streamable HTTP) on the loopback interface.

    python -m gopher_mcp_python.demo.server [--port 0]

prints one JSON line `{"url": "http://127.0.0.1:PORT/mcp"}` and serves until its standard input ends or it is stopped.
"""

from __future__ import annotations

import argparse
import json
import socket
import sys
import threading
from collections.abc import Sequence
from typing import Any

import anyio
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ElicitRequest, ElicitRequestURLParams, ElicitResult, InputRequiredResult
from starlette.applications import Starlette

from ..cli.options import port
from . import ACCOUNT
from .provider import Authorization, Provider

FINISH_SECONDS = 300.0
"""How long the tool waits for the page after the client has accepted."""

_MESSAGE = "Demo Mail needs your permission to read your mail profile."
_PROFILE = {"emailAddress": ACCOUNT, "messagesTotal": 1815, "threadsTotal": 1203, "historyId": "418815"}
_EMBEDDED_REQUESTS = "2026-07-28"  # first protocol whose tools/call carries requests in its result


class MailServer:
    """One tool behind a provider's sign-in; a session that was allowed once stays allowed."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._provider = Provider()
        self._allowed: set[str] = set()
        self._server = MCPServer("demo-mail", log_level="ERROR")
        self._server.tool(
            name="get_gmail_users_get_profile",
            description="The mail profile of the signed-in user: address, number of messages and threads.",
            structured_output=False,
        )(self._get_profile)

    def app(self) -> Starlette:
        """The whole web application: /mcp, the provider's pages and the way back."""
        app = self._server.streamable_http_app()
        app.router.routes.extend(self._provider.routes())
        return app

    async def _get_profile(self, ctx: Context[Any, Any]) -> str | InputRequiredResult:
        session = (ctx.headers or {}).get("mcp-session-id")
        if session is None or session not in self._allowed:
            waiting = await self._authorize(ctx)
            if waiting is not None:
                return waiting
            if session is not None:
                self._allowed.add(session)
        return json.dumps(_PROFILE)

    async def _authorize(self, ctx: Context[Any, Any]) -> InputRequiredResult | None:
        elicitation = ctx.client_capabilities.elicitation if ctx.client_capabilities else None
        if elicitation is None or elicitation.url is None:
            raise ToolError("Not signed in, and this client can't ask its user (it declares no URL elicitation).")
        if (ctx.protocol_version or "") >= _EMBEDDED_REQUESTS:
            return await self._authorize_in_result(ctx)
        started = self._provider.begin()
        try:
            await self._authorize_by_request(ctx, started)
        finally:
            self._provider.forget(started)
        return None

    async def _authorize_by_request(self, ctx: Context[Any, Any], started: Authorization) -> None:
        """Up to 2025-11-25: a request of the server's own, and a notice when the page is done."""
        request = ctx.request_context

        async def tell_when_done() -> None:
            await started.wait()
            await request.session.send_elicit_complete(started.elicitation_id, request.request_id)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(tell_when_done)
            url = self._provider.url(self._base, started)
            answer = await ctx.elicit_url(_MESSAGE, url, started.elicitation_id)
            if answer.action == "accept":
                await _page_done(started)
            if started.verdict is None:
                tasks.cancel_scope.cancel()
        _require(answer.action, started)

    async def _authorize_in_result(self, ctx: Context[Any, Any]) -> InputRequiredResult | None:
        """2026-07-28: the request travels in the tool's result, the answer in the next call."""
        started = self._provider.find(ctx.request_state)
        if started is None:
            started = self._provider.begin()
            params = ElicitRequestURLParams(message=_MESSAGE, url=self._provider.url(self._base, started))
            return InputRequiredResult(
                input_requests={"sign-in": ElicitRequest(params=params)}, request_state=started.state
            )
        answer = (ctx.input_responses or {}).get("sign-in")
        action = answer.action if isinstance(answer, ElicitResult) else "cancel"
        try:
            if action == "accept":
                await _page_done(started)
            _require(action, started)
        finally:
            self._provider.forget(started)
        return None


async def _page_done(started: Authorization) -> None:
    """The client may accept before the page is finished: hold the tool until it is."""
    with anyio.move_on_after(FINISH_SECONDS):
        await started.wait()


def _require(action: str, started: Authorization) -> None:
    if action != "accept":
        raise ToolError(f"Not signed in: the authorization request was answered with {action!r}.")
    if started.verdict == "deny":
        raise ToolError("Not signed in: access was denied on the provider's page.")
    if started.verdict is None:
        raise ToolError(f"Not signed in: the provider's page was not finished within {FINISH_SECONDS:.0f} seconds.")


def listen(port: int = 0) -> socket.socket:
    """A listening socket on 127.0.0.1; port 0 takes a free one.

    Raises:
        OSError: The port is taken.
    """
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if sys.platform != "win32":
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind(("127.0.0.1", port))
    made.listen(64)
    return made


def serve(listening: socket.socket, base: str) -> None:
    """Serve until the process is stopped or its standard input ends (so that it never outlives its starter)."""
    config = uvicorn.Config(
        MailServer(base).app(), log_level="error", lifespan="on", timeout_graceful_shutdown=1, access_log=False
    )
    server = uvicorn.Server(config)

    def stop_at_end_of_input() -> None:
        while sys.stdin.buffer.read(4096):
            pass
        server.should_exit = True

    threading.Thread(target=stop_at_end_of_input, daemon=True, name="demo-stdin").start()
    server.run(sockets=[listening])


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of `python -m gopher_mcp_python.demo.server`."""
    parser = argparse.ArgumentParser(prog="gopher_mcp_python.demo.server", description="the demo's MCP server, alone")
    parser.add_argument("--port", type=port, default=0, help="port on 127.0.0.1; 0 takes a free one (default)")
    args = parser.parse_args(argv)
    try:
        listening = listen(args.port)
    except OSError as error:
        print(f"port {args.port} can't be used: {error.strerror}. Take another one with --port.", file=sys.stderr)
        return 1
    base = f"http://127.0.0.1:{listening.getsockname()[1]}"
    print(json.dumps({"url": f"{base}/mcp"}), flush=True)
    try:
        serve(listening, base)
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
