"""`McpToolset` as tools of LangChain (langchain-core 1.x).

    async with McpToolset("https://mcp.example.com/mcp", elicitation_handler=ask_my_user) as toolset:
        agent = create_agent(model, tools=await langchain_tools(toolset))

Whoever keeps langchain-mcp-adapters gives it `Callbacks(on_elicitation=elicitation_callback(...))`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Union

from .extras import needs_extra
from .for_models import FOR_THE_MODEL

with needs_extra("langchain", "langchain-core"):
    from langchain_core.tools import StructuredTool, ToolException

if TYPE_CHECKING:
    from ..mcp_toolset import McpTool, McpToolset

__all__ = ["McpToolException", "langchain_tools"]

Content = Union[str, "list[dict[str, Any]]"]


class McpToolException(ToolException):
    """A tool said that it failed, its server refused the call, or the person did (see `for_models`).

    Attributes:
        artifact: as of a result; LangChain gives it to nobody where it makes a message of the error.
    """

    artifact: dict[str, Any] | None = None


async def langchain_tools(toolset: McpToolset, *, handle_tool_error: bool = True) -> list[StructuredTool]:
    """The tools of a server, to be used on the event loop of its toolset (`ainvoke`).

    A tool's content is text, or a list of content blocks where its result holds images, audio, files. The artifact of
    its message, which the model does not see, holds "structured_content" and "_meta" as they came; None without either.

    Args:
        toolset: the server and its handlers.
        handle_tool_error: True: a failed tool is a message with status "error" for the model. False: it raises
            McpToolException. What else fails (the connection, a handler) is raised in either case.

    Raises as `McpToolset.list_tools`.
    """
    return [_tool(tool, handle_tool_error) for tool in await toolset.list_tools()]


class _Tool(StructuredTool):
    """LangChain's own puts its config and its run manager in place of arguments of these names."""

    async def _arun(self, /, *args: Any, **arguments: Any) -> Any:
        assert self.coroutine is not None
        return await self.coroutine(*args, **arguments)


def _tool(tool: McpTool, handle_tool_error: bool) -> StructuredTool:
    async def call(**arguments: Any) -> tuple[Content, dict[str, Any] | None]:
        try:
            response = await tool.call(arguments)
        except FOR_THE_MODEL as error:
            raise McpToolException(error.message) from error
        return _result(response)

    return _Tool(
        name=tool.name,
        description=tool.description,
        args_schema=_with_properties(tool.input_schema),
        coroutine=call,
        response_format="content_and_artifact",
        handle_tool_error=handle_tool_error,
        metadata=_metadata(tool),
    )


def _with_properties(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A tool without arguments may leave them out; LangChain wants to find them."""
    return {"type": "object", "properties": {}, **schema}


def _metadata(tool: McpTool) -> dict[str, Any] | None:
    hints = tool.annotations.model_dump(by_alias=True, exclude_none=True) if tool.annotations is not None else {}
    found = {**hints, **({"_meta": tool.meta} if tool.meta is not None else {})}
    return found or None


def _result(response: Mapping[str, Any]) -> tuple[Content, dict[str, Any] | None]:
    """Content and artifact of a function response. Raises McpToolException where the tool said that it failed."""
    failed = bool(response.get("isError"))
    output = response["error" if failed else "output"]
    artifact: dict[str, Any] = {} if isinstance(output, str) else {"structured_content": output}
    if "_meta" in response:
        artifact["_meta"] = response["_meta"]
    text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
    if failed:
        error = McpToolException(text or "the tool failed and said nothing")
        error.artifact = artifact or None
        raise error
    others = [_block(block) for block in response.get("content", ())]
    content: Content = [*([{"type": "text", "text": text}] if text else []), *others] if others else text
    return content, artifact or None


def _block(block: Mapping[str, Any]) -> dict[str, Any]:
    """A content block of MCP as one of LangChain's."""
    kind = block.get("type")
    if kind in ("image", "audio"):
        return {"type": kind, "base64": block.get("data"), "mime_type": block.get("mimeType")}
    if kind == "resource_link":
        return _file(block.get("mimeType"), url=block.get("uri"))
    resource = block.get("resource")
    if isinstance(resource, Mapping) and "blob" in resource:
        return _file(resource.get("mimeType"), base64=resource["blob"])
    if isinstance(resource, Mapping):
        return {"type": "text", "text": str(resource.get("text", ""))}
    return {"type": "text", "text": str(block.get("text", f"[{kind}]"))}


def _file(mime_type: Any, **where: Any) -> dict[str, Any]:
    kind = "image" if str(mime_type).startswith("image/") else "file"
    return {"type": kind, **where, **({"mime_type": mime_type} if mime_type else {})}
