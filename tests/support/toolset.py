"""The session layer under test: an asker that answers as told, and one event loop a test."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from gopher_mcp_python.elicitation import GopherAgentElicitationRequest, GopherAgentElicitationResponse
from gopher_mcp_python.toolset import HttpConnection
from gopher_mcp_python.toolset.connection import Connection
from gopher_mcp_python.toolset.elicitation import IN_A_CALL, Occasion
from gopher_mcp_python.toolset.toolset import Toolset

T = TypeVar("T")
Answer = Callable[[GopherAgentElicitationRequest], Awaitable[Any]]


class ToldAsker:
    """Answers every request with `answer`: an action, a response, or an async function of the request."""

    def __init__(self, answer: str | GopherAgentElicitationResponse | Answer = "accept", modes: str = "url") -> None:
        self.modes = frozenset(modes.split())
        self.requests: list[GopherAgentElicitationRequest] = []
        self.completions: list[str] = []
        self.withdrawn = 0
        self._answer = answer

    async def ask(
        self, request: GopherAgentElicitationRequest, occasion: Occasion = IN_A_CALL
    ) -> GopherAgentElicitationResponse:
        self.requests.append(request)
        try:
            given = await self._answer(request) if callable(self._answer) else self._answer
        except asyncio.CancelledError:
            self.withdrawn += 1
            raise
        return given if isinstance(given, GopherAgentElicitationResponse) else GopherAgentElicitationResponse(given)

    def completed(self, elicitation_id: str, source: object = None) -> None:
        self.completions.append(elicitation_id)


def with_toolset(
    where: str | Connection,
    asker: ToldAsker | None,
    body: Callable[[Toolset], Awaitable[T]],
    *,
    protocol: Any = "auto",
    limit: float = 20,
) -> T:
    """Runs `body` with a connected toolset on an event loop of its own, for at most `limit` seconds."""

    async def run() -> T:
        connection = HttpConnection(where) if isinstance(where, str) else where
        toolset = Toolset(connection, asker, protocol=protocol)
        try:
            await toolset.connect()
            return await body(toolset)
        finally:
            await toolset.aclose()

    async def bounded() -> T:
        return await asyncio.wait_for(run(), limit)

    return asyncio.run(bounded())


async def text_of(toolset: Toolset, name: str, arguments: dict[str, Any] | None = None, **more: Any) -> str:
    """Calls a tool and returns the text of its first content block."""
    result = await toolset.call_tool(name, arguments, **more)
    return str(result.content[0].text)  # type: ignore[union-attr]
