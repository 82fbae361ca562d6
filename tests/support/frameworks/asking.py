"""What the cases of all frameworks share: the scenario server's address, handlers that keep what they were asked.

The cases run with pytest in an environment of their framework (see __init__.py), the server in that of the tests
(tests/support/mcp_server.py).
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from gopher_mcp_python import GopherAgentElicitationRequest, GopherAgentElicitationResponse

T = TypeVar("T")
URL = os.environ.get("SCENARIO_URL", "")
PLANTED = "canary-planted-in-a-handlers-error"


def run(body: Coroutine[Any, Any, T], seconds: float = 60) -> T:
    """Runs a case on an event loop of its own."""
    return asyncio.run(asyncio.wait_for(body, seconds))


class Person:
    """A sync handler: accepts pages, fills forms with `content`, and keeps what was asked and on which thread."""

    def __init__(self, content: dict[str, Any] | None = None, action: str = "accept") -> None:
        self.requests: list[GopherAgentElicitationRequest] = []
        self.threads: list[str] = []
        self._content, self._action = content, action

    def __call__(self, request: GopherAgentElicitationRequest) -> GopherAgentElicitationResponse:
        self.requests.append(request)
        self.threads.append(threading.current_thread().name)
        return GopherAgentElicitationResponse(self._action, self._content if request.mode == "form" else None)

    @property
    def modes(self) -> list[str]:
        return [request.mode for request in self.requests]


def fails(request: GopherAgentElicitationRequest) -> str:
    raise RuntimeError(f"https://user:{PLANTED}@example.com/?token={PLANTED}")


async def later(request: GopherAgentElicitationRequest) -> str:
    """An async handler."""
    await asyncio.sleep(0.01)
    return "accept"


async def never(request: GopherAgentElicitationRequest) -> str:
    await asyncio.sleep(3600)
    return "accept"


def example(name: str) -> subprocess.CompletedProcess[str]:
    """Runs an example in this environment, without a terminal: its person is shown the page and can't answer."""
    script = Path(__file__).parents[3] / "examples" / f"frameworks_{name}.py"
    done = subprocess.run(
        [sys.executable, str(script), URL], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
        check=False, start_new_session=True,
    )  # fmt: skip
    shown = "asks you to open a page in your browser" in done.stderr and "/authorize?" in done.stderr
    assert shown, f"nobody was asked: {done.stderr[-3000:]}"
    return done


def log(event: str) -> list[dict[str, Any]]:
    """What the server has seen, of one kind."""
    with urllib.request.urlopen(URL.rsplit("/", 1)[0] + "/_log", timeout=10) as reply:
        return [entry for entry in json.loads(reply.read()) if entry["event"] == event]


def clear() -> None:
    urllib.request.urlopen(URL.rsplit("/", 1)[0] + "/_clear", b"", timeout=10).close()
