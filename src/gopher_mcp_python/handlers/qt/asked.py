"""What a dialog was asked, whoever's parameters said so, and the answer in the same types."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from ... import sdk_import
from ...display import safe_line
from ...elicitation import GopherAgentElicitationRequest
from ...integrations.sdk_types import types_of, wire_params

__all__ = ["Asked", "sdk_types"]


@dataclass(frozen=True)
class Asked:
    """One request. `types` are the types of the MCP SDK in which it is answered; None: of the installed one."""

    server: str
    tool: str | None
    mode: str
    message: str = field(repr=False)
    url: str = field(repr=False)
    schema: Mapping[str, Any] | None = field(repr=False)
    types: ModuleType | None = field(repr=False)

    @staticmethod
    def of(server_id: str, params: Any, tool: str | None = None) -> Asked:
        """Reads a request. Raises TypeError for what is neither the SDK's parameters nor a request of this package."""
        if isinstance(params, GopherAgentElicitationRequest):
            server, tool = server_id or params.server or "", tool or params.tool
            return Asked(
                server, tool, params.mode, params.message or "", params.url or "", params.requested_schema, None
            )
        types, came = types_of(params), wire_params(params)
        message, url = (str(came.get(key) or "") for key in ("message", "url"))
        return Asked(server_id, tool, came["mode"], message, url, came.get("requestedSchema"), types)

    @property
    def asker(self) -> str:
        """Who asks, harmless and on one line."""
        name, tool = safe_line(self.server) or "An MCP server", safe_line(self.tool or "")
        return f"{name} ({tool})" if tool else name

    @property
    def is_url(self) -> bool:
        return self.mode == "url"

    def result(self, action: str, content: Mapping[str, Any] | None) -> Any:
        """The answer as an `ElicitResult` of the SDK."""
        answer: dict[str, Any] = {"action": action}
        if content is not None:
            answer["content"] = dict(content)
        return (self.types or sdk_types()).ElicitResult.model_validate(answer)


def sdk_types() -> ModuleType:
    """The types of the installed MCP SDK, of either generation."""
    sdk_import.load("mcp.types")
    return sys.modules["mcp.types"]
