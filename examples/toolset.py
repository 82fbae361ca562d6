"""Tools for an agent of your own: McpToolset lists and calls them, and asks your user what their server asks.

    python toolset.py URL

Calls one tool of the demo's server. Pages are shown by their link: type "done" when you are through with one, "cancel"
to leave it. Forms are asked field by field; an empty line leaves a field as it is.
"""

import asyncio
import json
import sys

from gopher_mcp_python import (
    AgentError,
    GopherAgentElicitationRequest,
    GopherAgentElicitationResponse,
    McpToolset,
)
from gopher_mcp_python.forms import MISSING, read_form

TOOL = "get_gmail_users_get_profile"


def typed(question: str) -> str:
    """A line from the person. In your program: a web socket, a chat, a dialog."""
    print(question, flush=True)
    line = sys.stdin.readline()
    return line.strip() if line else "cancel"


def ask_my_user(request: GopherAgentElicitationRequest) -> GopherAgentElicitationResponse:
    """Called on a thread of its own, which may wait, while the event loop goes on. It may be `async` instead."""
    print(f"{request.server} asks in {request.tool}: {request.message}", file=sys.stderr)
    if request.mode == "form":
        return fill_in(request)
    # The URL holds a secret (its state): give it to the person who asked, and to nobody's log.
    said = typed(f"PLEASE OPEN {request.url}")
    return GopherAgentElicitationResponse("accept" if said == "done" else "cancel")


def fill_in(request: GopherAgentElicitationRequest) -> GopherAgentElicitationResponse:
    content = {}
    for field in read_form(request.requested_schema).fields:
        choices = ", ".join(option.title for option in field.options)
        question = f"{field.title or field.name}{'' if field.required else ' (optional)'}"
        while field.name not in content:
            said = typed(f"{question}: {choices}")
            if said == "cancel":
                return GopherAgentElicitationResponse("cancel")
            try:
                value = field.parse(said)
            except ValueError as error:  # says what is wrong, for people
                print(error, file=sys.stderr)
                continue
            if value is MISSING:
                break
            content[field.name] = value
    return GopherAgentElicitationResponse("accept", content)


async def main() -> int:
    if len(sys.argv) != 2:
        print("usage: toolset.py URL", file=sys.stderr)
        return 2
    try:
        async with McpToolset(sys.argv[1], elicitation_handler=ask_my_user) as toolset:
            for tool in await toolset.list_tools():
                print(f"{tool.name}: {tool.description}", file=sys.stderr)
            # A function response: what a model sees, and what sessions and traces keep.
            print(json.dumps(await toolset.call_tool(TOOL)))
    except AgentError as error:
        print(f"toolset: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
