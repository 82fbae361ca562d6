"""A tool's result as text: for models, for people, for `AgentResult`."""

from __future__ import annotations

import json
from typing import Any

import mcp_types as types


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
