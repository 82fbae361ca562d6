"""server-everything, the protocol's own reference server (npm), as a child process. Nobody of this project wrote it."""

from __future__ import annotations

import os
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from gopher_mcp_python.toolset import HttpConnection, StdioConnection
from tests.support import children, hosting, npm

SCRIPT = Path("node_modules/@modelcontextprotocol/server-everything/dist/index.js")
START_SECONDS = 60.0


def command(transport: str) -> list[str]:
    """The command line of the server; the test fails where it can't be installed."""
    try:
        installed = npm.installed(Path(__file__).parent, "everything", SCRIPT, what="the server server-everything")
    except npm.Unusable as why:
        pytest.fail(str(why), pytrace=False)
    return installed.command(SCRIPT, transport)


def stdio() -> StdioConnection:
    program, *arguments = command("stdio")
    return StdioConnection(program, arguments, name="everything")


class Everything:
    """The server behind a port. `transport` is "streamableHttp" or "sse", as its command line has it."""

    def __init__(self, transport: str, log: Path) -> None:
        port = hosting.closed_port()
        self._log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command(transport), env=children.environment({"PORT": str(port)}), stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip
        self.base = f"http://{hosting.LOOPBACK}:{port}"
        self._wait_until_it_answers()
        older = transport == "sse"
        self.connection = HttpConnection(
            self.base + ("/sse" if older else "/mcp"), name="everything",
            transport="sse" if older else "streamable-http",
        )  # fmt: skip

    def output(self) -> str:
        """What the server has printed so far."""
        return self._log.read_text(errors="replace")

    def close(self) -> None:
        children.stop(self._process)

    def _wait_until_it_answers(self) -> None:
        end = time.monotonic() + START_SECONDS
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        while True:
            try:
                opener.open(self.base + "/nowhere", timeout=5).close()
            except urllib.error.HTTPError as answer:  # a web server, then
                answer.close()
                return
            except OSError:
                assert self._process.poll() is None, f"the server ended:{os.linesep}{self.output()}"
                assert time.monotonic() < end, f"the server does not start:{os.linesep}{self.output()}"
                time.sleep(0.05)
