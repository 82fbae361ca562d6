"""The types of the MCP SDK in whichever generation is installed: 1.x (`mcp.types`) or 2.x (`mcp_types`)."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

__all__ = ["COMPLETE", "completed_id", "protocol_version", "types_of", "wire_params"]

COMPLETE = "notifications/elicitation/complete"
# What an SDK speaks that does not tell (1.x): both modes, with an elicitationId.
_OLDER = "2025-11-25"


def types_of(params: object) -> ModuleType:
    """The module with the SDK's types, of the generation that these parameters are of: an answer must be of the same. A
    program may have both, as mcp-types stays when mcp is downgraded."""
    for kind in type(params).__mro__:
        package = kind.__module__.partition(".")[0]
        if package in ("mcp_types", "mcp"):
            return import_module("mcp_types" if package == "mcp_types" else "mcp.types")
    raise TypeError(f"{type(params).__name__} is no parameter type of the MCP SDK")


def wire_params(params: Any) -> dict[str, Any]:
    """The parameters of `elicitation/create` as they came, with their mode."""
    came: dict[str, Any] = params.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return {**came, "mode": params.mode}


def protocol_version(context: Any) -> str:
    """The version that a session has negotiated."""
    version = getattr(getattr(context, "session", None), "protocol_version", None)
    return version if isinstance(version, str) else _OLDER


def completed_id(message: Any) -> str | None:
    """The elicitation id of a completion notification; None for any other message of a session."""
    notification = getattr(message, "root", message)  # 1.x puts it into a model of its own
    if getattr(notification, "method", None) != COMPLETE:
        return None
    params = notification.params
    found = getattr(params, "elicitation_id", None) or getattr(params, "elicitationId", None)
    return found if isinstance(found, str) else None
