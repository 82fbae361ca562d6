"""pydantic-ai's MCPToolset, whose elicitations are answered at the terminal.

    python frameworks_pydantic_ai.py URL [TOOL]

An agent takes the toolset as `Agent(model, toolsets=[toolset])`; here a tool is called without a model.
"""

import asyncio
import sys

from fastmcp import Client
from pydantic_ai import ModelRetry
from pydantic_ai.mcp import MCPToolset

from gopher_mcp_python.integrations.fastmcp import fastmcp_elicitation_handler


async def main(url: str, tool: str = "get_gmail_users_get_profile") -> None:
    handler = fastmcp_elicitation_handler(server="the server of this example")
    async with MCPToolset(Client(url, elicitation_handler=handler, mode="legacy")) as toolset:
        try:
            print(await toolset.direct_call_tool(tool, {}))
        except ModelRetry as failed:  # what the model of an agent would be told
            print(failed)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
