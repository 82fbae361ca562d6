"""Asks on the terminal that it is started on and prints each answer, for tests that look at it through a pty.

    python -m tests.support.asking '{"url": "https://...", "timeout_ms": 500, ...}'

Keys: url, message, server, tool, options (elicitation options), limit (seconds that the engine leaves),
withdraw_after and complete_after (seconds after the prompt began to wait), thread (ask on a thread of its own), raw
(put the terminal into raw mode before), before (seconds to wait before asking), count (ask so often at the same
time), form (a schema: ask for a form instead of a page), read_stdin (read and print the rest of stdin at the end),
read_line (read one more line of stdin at the end), result (a file for the output; a hang-up is survived).
"""

from __future__ import annotations

import json
import signal
import sys
import termios
import threading
import time
import tty
from collections.abc import Mapping
from typing import Any

from gopher_mcp_python import GopherAgentElicitationOptions, GopherAgentElicitationRequest
from gopher_mcp_python.elicitation_runtime import Elicitor


class Asked:
    """A pending request as an engine has it."""

    def __init__(self, given: dict[str, Any], number: int) -> None:
        message = given.get("message", "Sign in")
        if given.get("count", 1) > 1:
            message += f" number {number}"
        if "form" in given:
            self.request = GopherAgentElicitationRequest(
                "form", None, message, server=given.get("server"), requested_schema=given["form"]
            )
        else:
            self.request = GopherAgentElicitationRequest(
                "url", f"id-{number}", message, given["url"], server=given.get("server"), tool=given.get("tool")
            )
        self.answers: list[int | str] = []
        self.content: Any = None
        self.withdrawn_at = 0.0
        self._end = time.monotonic() + given["limit"] if "limit" in given else None

    def answer(self, action: int | str, content: Mapping[str, Any] | None = None) -> bool:
        self.answers.append(action)
        self.content = content
        return True

    def is_open(self) -> bool:
        return not self.withdrawn_at

    def remaining_ms(self) -> int | None:
        if self.withdrawn_at:
            return 0  # as both engines say when it is over
        return None if self._end is None else max(0, round((self._end - time.monotonic()) * 1000))


def main(given: dict[str, Any]) -> dict[str, Any]:
    time.sleep(given.get("before", 0))
    if given.get("result"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    on_terminal = sys.stdin.isatty()
    if given.get("raw"):
        tty.setraw(0)
    before = termios.tcgetattr(0) if on_terminal else None
    facts = ask(given)
    if on_terminal and not given.get("result"):
        facts["restored"] = termios.tcgetattr(0) == before
    if given.get("read_line"):
        facts["line"] = sys.stdin.readline()
    if given.get("read_stdin"):
        facts["stdin"] = sys.stdin.read()
    return facts


def ask(given: dict[str, Any]) -> dict[str, Any]:
    elicitor = Elicitor(GopherAgentElicitationOptions(**given.get("options", {"open_browser": False})))
    asked = [Asked(given, number) for number in range(given.get("count", 1))]
    _later(given.get("withdraw_after"), lambda: setattr(asked[0], "withdrawn_at", time.monotonic()))
    completed: list[float] = []
    _later(given.get("complete_after"), lambda: (completed.append(time.monotonic()), elicitor.completed("id-0")))
    threads, interrupted = [], False
    try:
        if given.get("thread") or len(asked) > 1:
            for one in asked:
                threads.append(elicitor.answer_on_helper(one))
                time.sleep(0.02)
            for thread in threads:
                thread.join()
        else:
            elicitor.answer(asked[0])
    except KeyboardInterrupt:
        interrupted = True
    ended = time.monotonic()
    facts: dict[str, Any] = {"answers": [one.answers for one in asked], "interrupted": interrupted}
    if "form" in given:
        facts["content"] = asked[0].content
    if asked[0].withdrawn_at:
        facts["noticed_after"] = ended - asked[0].withdrawn_at
    if completed:
        facts["noticed_after"] = ended - completed[0]
    return facts


def _later(seconds: float | None, action: Any) -> None:
    if seconds is not None:
        timer = threading.Timer(seconds, action)
        timer.daemon = True
        timer.start()


if __name__ == "__main__":
    argument = json.loads(sys.argv[1])
    line = "RESULT " + json.dumps(main(argument))
    if argument.get("result"):
        with open(argument["result"], "w", encoding="utf-8") as out:
            out.write(line)
    else:
        sys.stdout.write(line + "\r\n")
        sys.stdout.flush()
