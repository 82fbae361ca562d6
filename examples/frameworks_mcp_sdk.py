"""The client of the MCP SDK (mcp 2.x), whose elicitations are answered at the terminal.

    python frameworks_mcp_sdk.py URL [TOOL]
"""

import asyncio
import sys

from mcp import Client

from gopher_mcp_python import elicitation_callback


async def main(url: str, tool: str = "get_gmail_users_get_profile") -> None:
    callback = elicitation_callback(server="the server of this example")
    # "legacy" is the handshake that a server needs to ask during a call; on_message ends the prompt when it is done.
    async with Client(url, elicitation_callback=callback, message_handler=callback.on_message, mode="legacy") as client:
        print((await client.call_tool(tool)).content)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
