"""McpToolset as LangChain tools: elicitations at the terminal, `_meta` in the artifact.

    python frameworks_langchain.py URL [TOOL]

An agent takes the tools as `create_agent(model, tools)`; here one is called without a model.
"""

import asyncio
import sys

from gopher_mcp_python import McpToolset
from gopher_mcp_python.integrations.langchain import langchain_tools


async def main(url: str, tool: str = "get_gmail_users_get_profile") -> None:
    async with McpToolset(url, elicitation_handler={}) as toolset:
        tools = {known.name: known for known in await langchain_tools(toolset)}
        message = await tools[tool].ainvoke({"type": "tool_call", "id": "1", "name": tool, "args": {}})
        print(message.status, message.content, message.artifact)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
