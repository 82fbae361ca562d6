"""People, and handlers that fail, for the tests of what goes wrong around a handler."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from gopher_mcp_python import GopherAgentElicitationRequest as Request
from gopher_mcp_python import GopherAgentElicitationResponse as Response
from gopher_mcp_python import McpToolset

USER: ContextVar[str] = ContextVar("user", default="nobody")


def failing(error: BaseException, kind: str) -> Callable[[Request], Any]:
    def sync(request: Request) -> str:
        raise error

    async def later(request: Request) -> str:
        raise error

    return sync if kind == "sync" else later


async def of_user(toolset: McpToolset, user: str, name: str, arguments: dict[str, Any] | None = None) -> Any:
    """Calls a tool as that person, in a context of theirs."""
    USER.set(user)
    return (await toolset.call_tool(name, arguments, person=user))["output"]["result"]


def as_user(toolset: McpToolset, user: str, name: str, arguments: dict[str, Any] | None = None) -> asyncio.Task[Any]:
    return asyncio.create_task(of_user(toolset, user, name, arguments))


async def asked_for_a_call_that_was_given_up(toolset: McpToolset, handler: WhoIsAsked) -> None:
    """Bob's call is given up, its tool goes on and asks while only Ada's is under way: the question is nobody's."""
    given_up = as_user(toolset, "bob", "stubborn", {"gate": "go on"})
    await toolset.call_tool("wait", {"gate": "stubborn"})
    given_up.cancel()
    ada = as_user(toolset, "ada", "wait", {"gate": "end", "opens": "go on"})
    while not handler.asked:
        await asyncio.sleep(0.01)
    await toolset.call_tool("plain", {"opens": "end"})
    assert await ada == "waited" and handler.asked == [(None, "nobody")]


class WhoIsAsked:
    """A handler that answers with the user in whose context it runs."""

    def __init__(self) -> None:
        self.asked: list[tuple[str | None, str]] = []

    async def __call__(self, request: Request) -> Response:
        self.asked.append((request.tool, USER.get()))
        return Response("accept", {"name": USER.get()})
