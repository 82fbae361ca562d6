"""A small real server of the SDK whose tools ask, wait and end when the test says so; in memory, or over stdio.

    python -m tests.support.small_server

A gate is an event with a name: a tool waits until somebody has opened it. `seen` holds what asking came to, as the
server has it: an action, or an error's code, text and data.
"""

from __future__ import annotations

import asyncio
import os
import warnings
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.exceptions import MCPError

FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


class SmallServer:
    """The server, its gates, and how many of its sessions have ended."""

    def __init__(self, name: str = "small") -> None:
        self.gates: dict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.seen: list[Any] = []
        self.ended = 0
        self.sdk: MCPServer[Any] = MCPServer(name, lifespan=self._lifespan)
        for tool in (self.ask, self.page, self.stubborn, self.later, self.wait, self.roots, self.die, self.plain):
            self.sdk.add_tool(tool)
        self.sdk.add_tool(selfish)
        self._background: set[asyncio.Task[Any]] = set()

    @asynccontextmanager
    async def _lifespan(self, server: Any) -> AsyncIterator[None]:
        try:
            yield
        finally:
            self.ended += 1

    async def _form(self, ctx: Context[Any, Any], message: str = "Your name?") -> str:
        try:
            answer = await ctx.session.elicit_form(message, FORM, related_request_id=ctx.request_id)
        except MCPError as error:
            self.seen.append((error.error.code, error.error.message, error.error.data))
            raise
        self.seen.append(answer.action)
        return f"{answer.action} {(answer.content or {}).get('name')}"

    async def ask(self, ctx: Context[Any, Any], gate: str = "", opens: str = "", after: str = "") -> str:
        """Opens a gate, waits for another, asks, then opens and waits likewise (`after`: "opened waited-for")."""
        if opens:
            self.gates[opens].set()
        if gate:
            await self.gates[gate].wait()
        told = await self._form(ctx)
        opened, _, awaited = after.partition(" ")
        self.gates[opened].set()
        if awaited:
            await self.gates[awaited].wait()
        return told

    async def page(self, ctx: Context[Any, Any], url: str, complete: bool = False) -> str:
        """Asks for a page under the id "1", and says meanwhile that it is complete."""
        asking = asyncio.ensure_future(ctx.session.elicit_url("Sign in.", url, "1", related_request_id=ctx.request_id))
        if complete:
            await self.gates["complete"].wait()
            await ctx.session.send_elicit_complete("1", related_request_id=ctx.request_id)
        return str((await asking).action)

    async def stubborn(self, ctx: Context[Any, Any], gate: str) -> str:
        """Goes on although its call was cancelled, and asks when the gate is opened."""
        with anyio.CancelScope(shield=True):
            self.gates["stubborn"].set()
            await self.gates[gate].wait()
            return await self._form(ctx, "of the call that was given up")

    async def later(self, ctx: Context[Any, Any]) -> str:
        """Asks when its call has ended."""

        async def asking() -> None:
            await self.gates["later"].wait()
            try:
                await ctx.session.elicit_form("later", FORM)
            except MCPError as error:
                self.seen.append(error.error.code)
            self.gates["asked"].set()

        task = asyncio.create_task(asking())
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return "later"

    async def wait(self, gate: str, opens: str = "") -> str:
        if opens:
            self.gates[opens].set()
        await self.gates[gate].wait()
        return "waited"

    async def roots(self, ctx: Context[Any, Any]) -> str:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return " ".join(str(root.uri) for root in (await ctx.session.list_roots()).roots)

    async def plain(self, opens: str = "") -> str:
        if opens:
            self.gates[opens].set()
        return "ok"

    async def die(self) -> str:
        os._exit(3)


async def selfish(self: str) -> str:
    return self


if __name__ == "__main__":
    SmallServer().sdk.run("stdio")
