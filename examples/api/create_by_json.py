"""Several MCP servers from a JSON configuration.

    python create_by_json.py ["query"]

Environment: GOPHER_MCP_CONFIG (a file; without it the configuration below), GOPHER_MCP_PROVIDER, GOPHER_MCP_MODEL.
"""

import json
import os
import sys
from pathlib import Path

from gopher_mcp_python import AgentError, GopherAgent, GopherAgentConfig

QUERY = "get mail profile, using get_gmail_users_get_profile"

# The form that the native library takes; the embedded engine takes it too, and local programs ("transport": "stdio").
SERVERS = {
    "succeeded": True,
    "code": 200000000,
    "message": "success",
    "data": {
        "servers": [
            {
                "version": "2025-01-09",
                "serverId": "1",
                "name": "mail",
                "transport": "http_sse",
                "config": {"url": "http://127.0.0.1:8808/mcp", "headers": {}},
                "connectTimeout": 5000,
                "requestTimeout": 30000,
            }
        ]
    },
}


def main() -> int:
    file = os.environ.get("GOPHER_MCP_CONFIG")
    servers = Path(file).read_text(encoding="utf-8") if file else json.dumps(SERVERS)
    config = (
        GopherAgentConfig.builder()
        .provider(os.environ.get("GOPHER_MCP_PROVIDER", "DirectProvider"))
        .model(os.environ.get("GOPHER_MCP_MODEL", "direct"))
        .server_config(servers)
        .build()
    )
    try:
        with GopherAgent.create(config) as agent:
            print(agent.run(sys.argv[1] if len(sys.argv) > 1 else QUERY))
    except AgentError as error:
        print(f"create_by_json: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
