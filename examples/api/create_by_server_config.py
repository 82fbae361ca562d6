"""The same servers as create_by_json.py through the factory that takes the JSON text itself, with options.

    python create_by_server_config.py FILE ["query"]

Environment: GOPHER_MCP_PROVIDER, GOPHER_MCP_MODEL.
"""

import os
import sys
from pathlib import Path

from gopher_mcp_python import AgentError, GopherAgent, GopherAgentCreateOptions

QUERY = "get mail profile, using get_gmail_users_get_profile"


def main() -> int:
    if len(sys.argv) < 2:
        print("usage: create_by_server_config.py FILE [QUERY]", file=sys.stderr)
        return 2
    options = GopherAgentCreateOptions(headers={"X-Request-Source": "examples"})
    try:
        with GopherAgent.create_with_server_config(
            os.environ.get("GOPHER_MCP_PROVIDER", "DirectProvider"),
            os.environ.get("GOPHER_MCP_MODEL", "direct"),
            Path(sys.argv[1]).read_text(encoding="utf-8"),
            options,
        ) as agent:
            print(agent.run(sys.argv[2] if len(sys.argv) > 2 else QUERY))
    except (AgentError, OSError) as error:
        print(f"create_by_server_config: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
