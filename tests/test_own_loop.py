"""Event loops of this package's threads, and loops of programs on which no connection can be made."""

from __future__ import annotations

import asyncio

import pytest

from gopher_mcp_python import McpToolset
from gopher_mcp_python.own_loop import new_loop, why_no_sockets
from gopher_mcp_python.toolset.errors import ToolsetError


class QtsOwn(asyncio.SelectorEventLoop):
    __module__ = "PySide6.QtAsyncio.events"


def test_a_loop_of_our_own_makes_connections() -> None:
    loop = new_loop()
    try:
        assert why_no_sockets(loop) is None
    finally:
        loop.close()


def test_a_toolset_on_a_loop_without_connections_is_refused_at_once() -> None:
    async def body() -> None:
        toolset = McpToolset("http://127.0.0.1:9/mcp")
        with pytest.raises(ToolsetError, match="qasync"):
            await toolset.connect()
        await toolset.aclose()

    loop = QtsOwn()
    try:
        loop.run_until_complete(body())
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()
