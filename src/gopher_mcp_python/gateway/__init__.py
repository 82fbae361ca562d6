"""An MCP server in front of other MCP servers that asks before anything is destroyed (`gopher-mcp gateway`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazily import names_of

if TYPE_CHECKING:
    from .rules import Rule, Rules
    from .server import Gateway
    from .upstream import Upstream, read_upstream

__all__ = ["Gateway", "Rule", "Rules", "Upstream", "read_upstream"]

_get, __dir__ = names_of(
    __name__, {"rules": ("Rule", "Rules"), "server": ("Gateway",), "upstream": ("Upstream", "read_upstream")}
)


def __getattr__(name: str) -> object:
    """What needs the SDK's server is imported on first use."""
    if name == "Gateway":
        from ..sdk_import import load_whole

        load_whole()
    return _get(name)
