"""A host without a terminal (a web back end, a chat bot): its own handler passes the link to a person and waits.

    python custom_handler.py URL ["query"]

Here "passing on" is a line on standard output, and the person's answer is a line on standard input; in your program the
first is a message to the user and the second an HTTP request that calls `Inbox.answer`.
"""

import queue
import sys
import threading

from gopher_mcp_python import (
    AgentError,
    GopherAgent,
    GopherAgentElicitationOptions,
    GopherAgentElicitationRequest,
    GopherAgentElicitationResponse,
)

QUERY = "get mail profile, using get_gmail_users_get_profile"


class Inbox:
    """Open questions and their answers. The handler is called on a thread that may wait; it must not be async."""

    def __init__(self) -> None:
        self._answers: queue.Queue[str] = queue.Queue()

    def ask(self, request: GopherAgentElicitationRequest) -> GopherAgentElicitationResponse:
        if request.mode != "url" or not request.url:
            return GopherAgentElicitationResponse("decline")
        # The URL holds a secret (its state): give it to the person who asked, and to nobody's log.
        print(f"PLEASE OPEN {request.url}", flush=True)
        return GopherAgentElicitationResponse(self._answers.get())

    def answer(self, action: str) -> None:
        self._answers.put(action)


def main() -> int:
    if len(sys.argv) < 2:
        print("usage: custom_handler.py URL [QUERY]", file=sys.stderr)
        return 2
    inbox = Inbox()

    def read_answers() -> None:
        for line in sys.stdin:
            inbox.answer("accept" if line.strip() == "done" else "cancel")
        inbox.answer("cancel")

    threading.Thread(target=read_answers, daemon=True).start()
    # The time limit covers the whole answer: after it the server gets "cancel", whatever the handler is doing.
    elicitation = GopherAgentElicitationOptions(handler=inbox.ask, timeout_ms=110_000)
    try:
        with GopherAgent.create_with_url(
            "DirectProvider", "direct", sys.argv[1], {"elicitation": elicitation}
        ) as agent:
            print(agent.run(sys.argv[2] if len(sys.argv) > 2 else QUERY))
    except AgentError as error:
        print(f"custom_handler: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
