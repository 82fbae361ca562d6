"""All MCP servers of the account that an API key belongs to.

    GOPHER_API_KEY=... python create_by_api_key.py "query"

Environment: GOPHER_API_KEY, GOPHER_MCP_PROVIDER, GOPHER_MCP_MODEL and the key of the model's vendor
(ANTHROPIC_API_KEY, OPENAI_API_KEY).
"""

import os
import sys

from gopher_mcp_python import AgentError, GopherAgent, GopherAgentConfig


def main() -> int:
    api_key = os.environ.get("GOPHER_API_KEY")
    if not api_key or len(sys.argv) < 2:
        print("usage: GOPHER_API_KEY=... create_by_api_key.py QUERY", file=sys.stderr)
        return 2
    config = (
        GopherAgentConfig.builder()
        .provider(os.environ.get("GOPHER_MCP_PROVIDER", "DirectProvider"))
        .model(os.environ.get("GOPHER_MCP_MODEL", "direct"))
        .api_key(api_key)
        .build()
    )
    try:
        with GopherAgent.create(config) as agent:
            print(agent.run(sys.argv[1]))
    except AgentError as error:
        print(f"create_by_api_key: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
