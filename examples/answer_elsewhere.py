"""A program without a person before it: what servers ask is stored, and answered on a page, by whoever has the token.

    python answer_elsewhere.py URL FOLDER [QUERY]

and in another terminal, where the page's address and its token are shown:

    gopher-mcp token add ada --scope answer
    gopher-mcp serve --store sqlite:FOLDER/elicitations.db --keys FOLDER/keys

Calls one tool of the demo's server. Where this program has a window, a notebook or a terminal, put the handler behind
them: HandlerChain(store=StoreElicitationHandler(...)).
"""

import sys
from contextvars import ContextVar
from pathlib import Path

from gopher_mcp_python import AgentError, GopherAgent
from gopher_mcp_python.store import FileKeys, SqliteBackend, Store, StoredElicitation, StoreElicitationHandler

QUERY = "get mail profile, using get_gmail_users_get_profile"
# Whom a run is for. A web program sets it where it has looked at who is signed in.
USER: ContextVar[str] = ContextVar("user")


def notify(asked: StoredElicitation) -> None:
    """Says that there is something to answer. In your program: a mail, a chat message. It names the question, and
    leaves what is asked, which may hold a secret, to the page."""
    print(f"ASKED {asked.caller} {asked.id}", flush=True)


def main() -> int:
    if len(sys.argv) < 3:
        print("usage: answer_elsewhere.py URL FOLDER [QUERY]", file=sys.stderr)
        return 2
    folder = Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    USER.set("ada")
    try:
        with Store(SqliteBackend(folder / "elicitations.db"), FileKeys(folder / "keys")) as store:
            handler = StoreElicitationHandler(
                store, caller=lambda request: USER.get(), timeout_s=600, on_created=notify
            )
            with GopherAgent.create_with_url(
                "DirectProvider", "direct", sys.argv[1], {"elicitation": {"handler": handler}}
            ) as agent:
                print(agent.run(sys.argv[3] if len(sys.argv) > 3 else QUERY))
    except AgentError as error:
        print(f"answer_elsewhere: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
