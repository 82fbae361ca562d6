"""The list by which a call is judged: asked for after the call came, shared by those who wait, lost by nobody's end."""

from __future__ import annotations

import asyncio
from typing import Any

from gopher_mcp_python.gateway.channel import Client
from gopher_mcp_python.gateway.link import Link
from gopher_mcp_python.gateway.upstream import Upstream
from gopher_mcp_python.toolset.connection import MemoryConnection
from tests.support.gateways import Vault, run


class _Slow(Vault):
    """Lists its tools when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()

    async def _list_tools(self, ctx: Any, params: Any) -> Any:
        found = await super()._list_tools(ctx, params)
        self.begun.set()
        await self.go_on.wait()
        return found


async def _told(method: str, params: Any) -> None:
    return None


def _link(vault: Vault) -> Link:
    client = Client("ada", "2025-11-25", {}, {"name": "t", "version": "1"})
    return Link(Upstream("vault", MemoryConnection(vault.sdk)), client, None, _told)


def test_whoever_comes_while_a_list_is_on_its_way_gets_a_later_one() -> None:
    async def body() -> None:
        vault = _Slow()
        link = _link(vault)
        first = asyncio.ensure_future(link.tools_now())
        await vault.begun.wait()
        vault.hints["new"] = None
        later = [asyncio.ensure_future(link.tools_now()) for _ in range(5)]
        await asyncio.sleep(0)
        del vault.hints["erase"]
        vault.go_on.set()
        lists = await asyncio.gather(*later)
        await first
        assert all("new" in found and "erase" not in found for found in lists)
        assert vault.listed == 4, "two lists of two pages each: those who wait share one"
        await link.close()

    run(body())


def test_a_list_that_is_given_up_keeps_nobody_waiting() -> None:
    async def body() -> None:
        vault = _Slow()
        link = _link(vault)
        first = asyncio.ensure_future(link.tools_now())
        await vault.begun.wait()
        later = asyncio.ensure_future(link.tools_now())
        await asyncio.sleep(0)
        first.cancel()
        vault.go_on.set()
        assert "erase" in await later and "erase" in await link.tools_now()
        assert first.cancelled()
        await link.close()

    run(body())
