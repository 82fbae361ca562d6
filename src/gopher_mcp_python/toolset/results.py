"""A tool's result as text and as a function response: for models, for people, for sessions and traces."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import mcp_types as types

_NO_JSON = object()

def function_response(result: types.CallToolResult, raw: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A tool's result as the function response that models get.

    Args:
        result: as the SDK has it.
        raw: as it came; what it holds goes on unchanged. Without it, the SDK's own view stands in.

    Returns:
        "output": the structured content, or the texts, one a line ("error" instead, and "isError", where the tool said
        so); "content": the blocks that it does not carry, as they came; "_meta": as it came. No key without a value.
    """
    wire = raw if raw else result.model_dump(mode="json", by_alias=True, exclude_none=True)
    blocks = [block for block in wire.get("content") or () if isinstance(block, Mapping)]
    structured = wire.get("structuredContent")
    output = "\n".join(_text(block) for block in blocks if _is_plain(block)) if structured is None else structured
    response: dict[str, Any] = {"error": output, "isError": True} if wire.get("isError") else {"output": output}
    rest = [dict(block) for block in blocks if not _is_carried(block, structured)]
    if rest:
        response["content"] = rest
    if wire.get("_meta") is not None:
        response["_meta"] = wire["_meta"]
    return response


def _text(block: Mapping[str, Any]) -> str:
    return str(block.get("text", ""))


def _is_plain(block: Mapping[str, Any]) -> bool:
    return block.get("type") == "text"


def _is_carried(block: Mapping[str, Any], structured: Any) -> bool:
    """Whether "output" says all that a block says. Servers repeat structured content as text, for older clients; the
    SDK's wraps what is no object as {"result": ...} and repeats it bare."""
    if not _is_plain(block) or not block.keys() <= {"type", "text"}:
        return False
    if structured is None:
        return True
    said = _text(block)
    bare = structured["result"] if isinstance(structured, Mapping) and structured.keys() == {"result"} else structured
    return said == bare or _parsed(said) in (structured, bare)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _NO_JSON


def result_text(result: types.CallToolResult) -> str:
    """The texts of a result, one a line; other content is named. Structured content stands in when there is no text."""
    parts = [_block_text(block) for block in result.content]
    text = "\n".join(part for part in parts if part)
    if not text and result.structured_content is not None:
        return json.dumps(result.structured_content, ensure_ascii=False)
    return text


def _block_text(block: Any) -> str:
    if block.type == "text":
        return str(block.text)
    if block.type in ("image", "audio"):
        return f"[{block.type}: {block.mime_type}, {len(block.data) * 3 // 4} bytes]"
    if block.type == "resource_link":
        return f"[resource: {block.name} {block.uri}]"
    embedded = getattr(block, "resource", None)
    if embedded is not None:
        return str(getattr(embedded, "text", None) or f"[resource: {embedded.uri}]")
    return f"[{block.type}]"
