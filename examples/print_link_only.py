"""Never opens a browser: the link is printed, you open it wherever you like (another machine, another profile).

python print_link_only.py URL ["query"]
"""

import sys

from gopher_mcp_python import AgentError, GopherAgent

QUERY = "get mail profile, using get_gmail_users_get_profile"


def main() -> int:
    if len(sys.argv) < 2:
        print("usage: print_link_only.py URL [QUERY]", file=sys.stderr)
        return 2
    try:
        with GopherAgent.create_with_url(
            "DirectProvider", "direct", sys.argv[1], {"elicitation": {"open_browser": False}}
        ) as agent:
            print(agent.run(sys.argv[2] if len(sys.argv) > 2 else QUERY))
    except AgentError as error:
        print(f"print_link_only: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
