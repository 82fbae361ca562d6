"""FastMCP's client, whose elicitations are answered at the terminal.

    python frameworks_fastmcp.py URL [TOOL]
"""

import asyncio
import sys

from fastmcp import Client

from gopher_mcp_python.integrations.fastmcp import fastmcp_elicitation_handler


async def main(url: str, tool: str = "get_gmail_users_get_profile") -> None:
    handler = fastmcp_elicitation_handler(server="the server of this example")
    async with Client(url, elicitation_handler=handler, message_handler=handler.on_message, mode="legacy") as client:
        print((await client.call_tool(tool, raise_on_error=False)).content)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
