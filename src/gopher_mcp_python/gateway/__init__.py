"""An MCP server in front of other MCP servers that asks before anything is destroyed (`gopher-mcp gateway`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .rules import Rule, Rules
from .upstream import Upstream, read_upstream

if TYPE_CHECKING:
    from .server import Gateway

__all__ = ["Gateway", "Rule", "Rules", "Upstream", "read_upstream"]


def __getattr__(name: str) -> Any:
    """What needs the SDK's server is imported on first use."""
    if name == "Gateway":
        from .server import Gateway

        return Gateway
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
