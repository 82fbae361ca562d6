"""langchain-mcp-adapters (with mcp 1.x), whose elicitations are answered at the terminal.

    python frameworks_langchain_mcp_adapters.py URL [TOOL]
"""

import asyncio
import sys

from langchain_mcp_adapters.callbacks import Callbacks
from langchain_mcp_adapters.client import MultiServerMCPClient

from gopher_mcp_python import elicitation_callback


async def main(url: str, tool: str = "get_gmail_users_get_profile") -> None:
    servers = {"mail": {"transport": "streamable_http", "url": url}}
    client = MultiServerMCPClient(servers, callbacks=Callbacks(on_elicitation=elicitation_callback()))
    tools = {known.name: known for known in await client.get_tools()}
    print(await tools[tool].ainvoke({}))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
