"""The `elicitation_handler` of FastMCP's client, and of pydantic-ai, whose MCP client is FastMCP's.

    Client(url, elicitation_handler=fastmcp_elicitation_handler(ask_my_user))              # fastmcp
    MCPToolset(url, elicitation_handler=fastmcp_elicitation_handler(ask_my_user))          # pydantic_ai.mcp
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from .callback import CallbackInput, ElicitationCallback, elicitation_callback
from .sdk_types import types_of

__all__ = ["FastMcpElicitationHandler", "fastmcp_elicitation_handler"]


def fastmcp_elicitation_handler(
    options: CallbackInput = None,
    *,
    complete: Callable[[str], Any] | None = None,
    server: str | None = None,
    modes: Any = None,
    timeout_ms: float | None = None,
    person: Hashable = None,
) -> FastMcpElicitationHandler:
    """The handler `async (message, response_type, params, context) -> ElicitResult` that FastMCP's client takes.

    What FastMCP makes of it: an error, for an undeclared mode too, reaches the server with code -32603, as FastMCP has
    no way to another; its text is ours.

    Args: see `elicitation_callback`. Raises ValueError for options of the wrong kind.
    """
    return FastMcpElicitationHandler(
        elicitation_callback(
            options, complete=complete, server=server, modes=modes, timeout_ms=timeout_ms, person=person
        )
    )


class FastMcpElicitationHandler:
    """Made by `fastmcp_elicitation_handler`.

    Attributes:
        callback: the SDK's callback that it stands on.
    """

    def __init__(self, callback: ElicitationCallback) -> None:
        self.callback = callback

    async def __call__(self, message: str, response_type: Any, params: Any, context: Any) -> Any:
        """Answers one request; FastMCP's own reading of it (`message`, `response_type`) is left alone. Raises
        RefusedElicitation, whose text FastMCP sends to the server."""
        return types_of(params).ElicitResult.model_validate(await self.callback.answer(context, params))

    async def on_message(self, message: Any) -> None:
        """For the client's `message_handler`; see `ElicitationCallback.on_message`."""
        await self.callback.on_message(message)

    def __copy__(self) -> FastMcpElicitationHandler:
        return self

    def __deepcopy__(self, memo: Any) -> FastMcpElicitationHandler:
        return self
