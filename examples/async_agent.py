"""A program that lives in an event loop (a web back end, a chat bot): agents are made and run with await, the link goes
to the person and the answer comes back on the loop, and whoever tires of waiting cancels.

    python async_agent.py URL [SECONDS]

Here the person is at the terminal: type "done" when you are through with the page, "cancel" to leave it. After SECONDS
(default 120) the sign-in is given up: the server is told "cancel".
"""

import asyncio
import contextlib
import sys
import threading

from gopher_mcp_python import AgentError, GopherAgent, GopherAgentElicitationRequest

QUERY = "get mail profile, using get_gmail_users_get_profile"


class Person:
    """Somebody who is reached through the event loop. In your program: a web socket, a chat, a push message."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._answers: asyncio.Queue[str] = asyncio.Queue()

    def answer(self, action: str) -> None:
        """From any thread; nothing happens when the loop has ended."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._answers.put_nowait, action)

    async def ask(self, url: str) -> str:
        # The URL holds a secret (its state): give it to the person who asked, and to nobody's log.
        print(f"PLEASE OPEN {url}", flush=True)
        return await self._answers.get()

    def handler(self, request: GopherAgentElicitationRequest) -> str:
        """Called on a thread of its own, which may wait, while the loop goes on. It must not be async itself."""
        if request.mode != "url" or not request.url:
            return "decline"
        return asyncio.run_coroutine_threadsafe(self.ask(request.url), self._loop).result()


async def answer(url: str, person: Person, seconds: float) -> str:
    options = {"elicitation": {"handler": person.handler}}
    async with await GopherAgent.create_with_url_async("DirectProvider", "direct", url, options) as agent:
        return await asyncio.wait_for(agent.run_async(QUERY), seconds)


async def main() -> int:
    if len(sys.argv) < 2:
        print("usage: async_agent.py URL [SECONDS]", file=sys.stderr)
        return 2
    person = Person()

    def read_answers() -> None:
        for line in sys.stdin:
            person.answer("accept" if line.strip() == "done" else "cancel")
        person.answer("cancel")

    threading.Thread(target=read_answers, daemon=True).start()
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 120
    try:
        print(await answer(sys.argv[1], person, seconds))
    except asyncio.TimeoutError:
        print(f"async_agent: nobody signed in within {seconds:g} s", file=sys.stderr)
        return 1
    except AgentError as error:
        print(f"async_agent: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
