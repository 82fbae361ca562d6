"""`McpToolset` as a toolset of Google's Agent Development Kit (google-adk 2.13).

    toolset = McpToolset("https://mcp.example.com/mcp", elicitation_handler=ask_my_user)
    agent = LlmAgent(name="agent", model="gemini-2.5-flash", tools=[AdkToolset(toolset)])

Whoever keeps ADK's own McpToolset gives it `elicitation_callback`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..toolset.errors import ServerError
from .extras import needs_extra

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
        tool_filter: names of the tools to offer, or ADK's own predicate; None: all.
        tool_name_prefix: put before the tools' names, for the model.
    """

    def __init__(
        self,
        toolset: McpToolset,
        *,
        tool_filter: Sequence[str] | Callable[..., bool] | None = None,
        tool_name_prefix: str | None = None,
    ) -> None:
        chosen = list(tool_filter) if isinstance(tool_filter, Sequence) else tool_filter
        super().__init__(tool_filter=chosen, tool_name_prefix=tool_name_prefix)
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
        """Calls the tool. The server's own refusal is an "error" for the model, which may do better with other
        arguments; what else fails is raised, as by `McpToolset.call_tool`."""
        try:
            return await self._tool.call(args)
        except ServerError as error:
            return {"error": error.message}
