"""The scenario MCP server (tests/support/mcp_server.py) as a child process, and a person's click on its page."""

from __future__ import annotations

import json
import re
import sys
import time
import urllib.parse
import urllib.request
from typing import Any

from tests.support import children


class McpServer:
    """One server with a log of its own. `options` are the server's command line options."""

    def __init__(self, *options: str) -> None:
        argv = [sys.executable, "-m", "tests.support.mcp_server", "--port", "0", *options]
        self._process, line = children.start_server(argv)
        self.url, self._log, self.provider = line["url"], line["log"], line["provider"]

    def log(self, event: str | None = None) -> list[dict[str, Any]]:
        """What happened since the last clear(), or that of one kind."""
        entries: list[dict[str, Any]] = json.loads(_fetch(self._log))
        return [entry for entry in entries if event is None or entry["event"] == event]

    def actions(self) -> list[str]:
        """The answers to elicitations as they came over the wire, in order."""
        return [entry["action"] for entry in self.log("answer")]

    def tools_run(self) -> list[str]:
        return [entry["tool"] for entry in self.log("run")]

    def wait_for(self, event: str, count: int = 1, seconds: float = 10) -> list[dict[str, Any]]:
        """The entries of one kind, once there are `count` of them."""
        end = time.monotonic() + seconds
        while len(found := self.log(event)) < count:
            assert time.monotonic() < end, f"no {count} x {event!r} within {seconds} s, only {self.log()}"
            time.sleep(0.05)
        return found

    def clear(self) -> McpServer:
        _fetch(self._log.replace("/_log", "/_clear"), b"")
        return self

    def close(self) -> None:
        children.stop(self._process)


def click_allow(url: str) -> None:
    """Opens a provider's page and presses its Allow button, as a person in a browser does."""
    page = _fetch(url)
    state = re.search(r'name="state" value="([^"]*)"', page)
    action = re.search(r'action="([^"]*)"', page)
    assert state and action, "no Allow button on the page"
    _fetch(urllib.parse.urljoin(url, action[1]), urllib.parse.urlencode({"state": state[1]}).encode())


def _fetch(url: str, data: bytes | None = None) -> str:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, data, timeout=10) as reply:
        return str(reply.read().decode())
