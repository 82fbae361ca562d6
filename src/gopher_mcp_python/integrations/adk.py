"""`McpToolset` as a toolset of Google's Agent Development Kit (google-adk 2.13).

    toolset = McpToolset("https://mcp.example.com/mcp", elicitation_handler=ask_my_user)
    agent = LlmAgent(name="agent", model="gemini-2.5-flash", tools=[AdkToolset(toolset)])

Whoever keeps ADK's own McpToolset gives it `elicitation_callback`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .extras import needs_extra
from .for_models import FOR_THE_MODEL

with needs_extra("adk", "google-adk"):
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.base_toolset import BaseToolset
    from google.genai.types import FunctionDeclaration

if TYPE_CHECKING:
    from ..mcp_toolset import McpTool, McpToolset

__all__ = ["AdkTool", "AdkToolset"]


class AdkToolset(BaseToolset):
    """The tools of one MCP server for an agent of ADK. Use it from one event loop; ADK closes it with its runner.

    Args:
        toolset: the server and its handlers.
        tool_filter: names of the tools to offer (in any collection; an empty one: none), or ADK's own predicate; None:
            all.
        tool_name_prefix: put before the tools' names, for the model.

    Raises ValueError for a filter of another kind.
    """

    def __init__(
        self,
        toolset: McpToolset,
        *,
        tool_filter: Iterable[str] | Callable[..., bool] | None = None,
        tool_name_prefix: str | None = None,
    ) -> None:
        super().__init__(tool_filter=_predicate(tool_filter), tool_name_prefix=tool_name_prefix)
        self._toolset = toolset

    async def get_tools(self, readonly_context: Any = None) -> list[BaseTool]:
        """Lists the server's tools. Raises as `McpToolset.list_tools`."""
        tools = [AdkTool(tool) for tool in await self._toolset.list_tools()]
        return [tool for tool in tools if self._is_tool_selected(tool, readonly_context)]

    async def close(self) -> None:
        """Closes the toolset."""
        await self._toolset.aclose()


class AdkTool(BaseTool):
    """One tool. Its result is the function response of `McpToolset.call_tool`, "_meta" included: the model sees it, and
    ADK keeps it in the session."""

    def __init__(self, tool: McpTool) -> None:
        super().__init__(name=tool.name, description=tool.description)
        self._tool = tool

    def _get_declaration(self) -> FunctionDeclaration:
        return FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=self._tool.input_schema
        )

    async def run_async(self, *, args: Mapping[str, Any], tool_context: Any) -> dict[str, Any]:
        """Calls the tool. A refusal of the server's or of the person's is an "error" for the model; what else fails is
        raised, as by `McpToolset.call_tool`."""
        try:
            return await self._tool.call(args)
        except FOR_THE_MODEL as error:
            return {"error": error.message}


def _predicate(tool_filter: Iterable[str] | Callable[..., bool] | None) -> Callable[..., bool] | None:
    """ADK reads lists only, and an empty one as "all"."""
    if tool_filter is None or callable(tool_filter):
        return tool_filter
    names = frozenset(tool_filter) if isinstance(tool_filter, Iterable) else frozenset([tool_filter])
    if isinstance(tool_filter, str) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"tool_filter is a {type(tool_filter).__name__}; give names of tools as a list, or a function")

    def selected(tool: BaseTool, readonly_context: Any = None) -> bool:
        return tool.name in names

    return selected
