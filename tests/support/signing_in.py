"""Asks for a sign-in on the terminal that it is started on and prints how it went, for tests that look through a pty.

    python -m tests.support.signing_in '{"state": "...", "redirect_uri": null, ...}'

Keys: state; code (the one that is expected); page (the authorization endpoint); redirect_uri; options (arguments of
`ask_to_sign_in`); cancel_after (seconds); count (so many at the same time); read_line (read one more line of stdin at
the end); hang_up (the terminal will be gone); debug (asyncio's debug mode, its log and ours on stderr).
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import termios
import threading
import time
from typing import Any
from urllib.parse import urlencode

from gopher_mcp_python.oauth.errors import SignInError
from gopher_mcp_python.oauth.loopback import Callback
from gopher_mcp_python.oauth.person import ask_to_sign_in

PAGE = "https://accounts.example.test/authorize"


async def sign_in(given: dict[str, Any]) -> dict[str, Any]:
    options = {"server": "mail.example.com", "open_browser": False, "timeout": 60, "elsewhere": False}
    options |= given.get("options", {})
    facts: dict[str, Any] = {"reason": None}
    async with await Callback.listen(given.get("redirect_uri")) as callback:
        facts["uri"] = callback.redirect_uri
        query = {"response_type": "code", "client_id": "app", "redirect_uri": callback.redirect_uri}
        url = f"{given.get('page', PAGE)}?{urlencode(query | {'state': given['state']})}"
        try:
            redirect = await ask_to_sign_in(url, callback, given["state"], **options)
        except SignInError as error:
            facts |= {"reason": error.reason, "text": str(error)}
            await callback.finish(False, str(error))
        else:
            facts["code"] = redirect.code == given.get("code")
            await callback.finish(True, "You are signed in to mail.example.com.")
    return facts


async def main(given: dict[str, Any]) -> list[dict[str, Any]]:
    tasks = [asyncio.ensure_future(sign_in(given)) for _ in range(given.get("count", 1))]
    if "cancel_after" in given:
        await asyncio.sleep(given["cancel_after"])
        for task in tasks:
            task.cancel()
    done = await asyncio.gather(*tasks, return_exceptions=True)
    return [{"raised": type(one).__name__} if isinstance(one, BaseException) else one for one in done]


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    if given.get("debug"):
        logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)
    on_terminal = sys.stdin.isatty()
    mode = termios.tcgetattr(0) if on_terminal else None
    before = descriptors()
    facts: dict[str, Any] = {}
    try:
        facts["ends"] = asyncio.run(main(given), debug=bool(given.get("debug")))
    except KeyboardInterrupt:
        facts["interrupted"] = True
    end = time.monotonic() + 2
    while descriptors() > before and time.monotonic() < end:
        time.sleep(0.02)
    facts["descriptors"] = descriptors() - before
    facts["threads"] = [one.name for one in threading.enumerate() if "prompt" in one.name]
    if on_terminal and not given.get("hang_up"):
        facts["restored"] = termios.tcgetattr(0) == mode
    if given.get("read_line"):
        facts["line"] = sys.stdin.readline()
    print("RESULT " + json.dumps(facts), flush=True)
