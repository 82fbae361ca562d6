"""One MCP server, reached by its URL. If it asks for a sign-in during a tool call, you are asked; no code for that.

    gopher-mcp demo --serve --port 8808          # in another terminal: a server to try it with
    python create_by_url.py ["query"]

Environment: GOPHER_MCP_URL (default http://127.0.0.1:8808/mcp), GOPHER_MCP_PROVIDER (default DirectProvider),
GOPHER_MCP_MODEL, GOPHER_ACCESS_TOKEN (if the server itself needs one).
"""

import os
import sys

from gopher_mcp_python import AgentError, GopherAgent

QUERY = "get mail profile, using get_gmail_users_get_profile"


def main() -> int:
    url = os.environ.get("GOPHER_MCP_URL", "http://127.0.0.1:8808/mcp")
    provider = os.environ.get("GOPHER_MCP_PROVIDER", "DirectProvider")
    model = os.environ.get("GOPHER_MCP_MODEL", "direct")
    query = sys.argv[1] if len(sys.argv) > 1 else QUERY
    try:
        with GopherAgent.create_with_url(provider, model, url) as agent:
            print(agent.run(query))
    except AgentError as error:
        print(f"create_by_url: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
