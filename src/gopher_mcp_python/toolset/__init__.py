"""The session layer over the official MCP SDK: connect, list, call, and answer what servers ask.

The embedded engine stands on it. Importing this module is cheap; `toolset.toolset` and `toolset.session` bring the SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazily import names_of

if TYPE_CHECKING:
    from .connection import Connection, HttpConnection, StdioConnection
    from .errors import (
        CallTimeoutError,
        ElicitationHandlerError,
        ElicitationRequiredError,
        ServerError,
        SessionLostError,
        ToolsetError,
        UnsendableError,
    )

__all__ = [
    "CallTimeoutError",
    "Connection",
    "ElicitationHandlerError",
    "ElicitationRequiredError",
    "HttpConnection",
    "ServerError",
    "SessionLostError",
    "StdioConnection",
    "ToolsetError",
    "UnsendableError",
]

__getattr__, __dir__ = names_of(
    __name__,
    {
        "connection": ("Connection", "HttpConnection", "StdioConnection"),
        "errors": (
            "CallTimeoutError",
            "ElicitationHandlerError",
            "ElicitationRequiredError",
            "ServerError",
            "SessionLostError",
            "ToolsetError",
            "UnsendableError",
        ),
    },
)
