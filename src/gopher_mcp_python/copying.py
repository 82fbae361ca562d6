"""Copies of what came as JSON, for who may change what it gets."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .elicitation import GopherAgentElicitationRequest

__all__ = ["copied", "for_handler"]


def for_handler(request: GopherAgentElicitationRequest) -> GopherAgentElicitationRequest:
    """The request as a handler gets it: what it does to a form's schema changes nothing of what checks its answer."""
    if not isinstance(request.requested_schema, dict):
        return request
    own = copy.copy(request)
    own.requested_schema = copied(request.requested_schema)
    return own


def copied(data: dict[str, Any]) -> dict[str, Any]:
    """With every dict and list in it anew, at any depth; other values are kept: those of JSON can't be changed."""
    result = dict(data)
    seen: dict[int, dict[Any, Any] | list[Any]] = {id(data): result}
    todo: list[dict[Any, Any] | list[Any]] = [result]
    while todo:
        holder: Any = todo.pop()
        for key, value in list(holder.items() if isinstance(holder, dict) else enumerate(holder)):
            if not isinstance(value, (dict, list)):
                continue
            if id(value) not in seen:
                seen[id(value)] = dict(value) if isinstance(value, dict) else list(value)
                todo.append(seen[id(value)])
            holder[key] = seen[id(value)]
    return result
