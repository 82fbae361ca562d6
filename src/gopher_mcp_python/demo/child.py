"""Starts the demo's server in a process of its own and ends it again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from types import TracebackType
from typing import final

from ..sdk_version import require

START_SECONDS = 30.0
END_SECONDS = 5.0


@final
class DemoServer:
    """The running server; `url` is its MCP address. Leaves with the `with` block, or when this process ends."""

    def __init__(self, port: int = 0) -> None:
        self._port = port
        self._process: subprocess.Popen[str] | None = None
        self.url = ""

    def __enter__(self) -> DemoServer:
        require("the demo")
        # A session of its own: Ctrl-C in the terminal is for the agent, which still has an answer to send.
        # It ends with its standard input, so it can't outlive this process, however that ends.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "gopher_mcp_python.demo.server", "--port", str(self._port)],
            env={**os.environ, "GOPHER_MCP_ENGINE": "embedded"},  # a server runs no agent: what it lacks is no news
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            # The server takes a second to import the SDK, and so will the agent: both at the same time.
            import_module("mcp")
            self.url = self._read_url(self._process)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None and process.stdout is not None
        process.stdin.close()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()

    def wait(self) -> None:
        """Until the server ends (or Ctrl-C)."""
        assert self._process is not None
        self._process.wait()

    def _read_url(self, process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            # It has said why on standard error.
            raise OSError(f"the demo's server did not start (exit code {process.wait(START_SECONDS)})")
        return str(json.loads(line)["url"])
