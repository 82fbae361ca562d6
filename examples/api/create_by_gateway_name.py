"""The MCP servers behind one gateway of the account, by the gateway's name.

    GOPHER_API_KEY=... python create_by_gateway_name.py NAME "query"

Environment: GOPHER_API_KEY, GOPHER_MCP_PROVIDER, GOPHER_MCP_MODEL and the key of the model's vendor
(ANTHROPIC_API_KEY, OPENAI_API_KEY).
"""

import os
import sys

from gopher_mcp_python import AgentError, GopherAgent


def main() -> int:
    api_key = os.environ.get("GOPHER_API_KEY")
    if not api_key or len(sys.argv) != 3:
        print("usage: GOPHER_API_KEY=... create_by_gateway_name.py NAME QUERY", file=sys.stderr)
        return 2
    gateway_name, query = sys.argv[1:]
    provider = os.environ.get("GOPHER_MCP_PROVIDER", "DirectProvider")
    model = os.environ.get("GOPHER_MCP_MODEL", "direct")
    try:
        with GopherAgent.create_with_gateway_name(provider, model, api_key, gateway_name) as agent:
            print(agent.run(query))
    except AgentError as error:
        print(f"create_by_gateway_name: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
