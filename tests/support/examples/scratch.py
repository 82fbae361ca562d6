"""A folder in which examples run as a reader runs them: a home of its own, and the package's commands on the PATH."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support import children, stores
from tests.support.canary import Canary
from tests.support.examples.program import Programs

SECONDS = 60.0  # the longest that anything here may take
CLICK = "import sys; from gopher_mcp_python.demo.click import click; click(sys.argv[1])"
_COMMANDS = {  # what each is, as arguments of Python
    "bin/gopher-mcp": "-m gopher_mcp_python",
    "bin/python": "",
    ".venv/bin/python": "",
    ".venv/bin/gopher-mcp": "-m gopher_mcp_python",
    "bin/browser": f"-c '{CLICK}'",  # it opens the page and presses Allow, as a person would
}


@dataclass
class Server:
    """A server that runs in the background. `said`: what it has printed so far; `url`: the first address in it."""

    said: str
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        found = re.search(r"https?://[^\s\")]+", self.said)
        assert found, self.said
        return found[0]


class Scratch:
    """The folder. `env` are the variables of everything that runs in it."""

    def __init__(self, folder: Path, canary: Canary, programs: Programs | None = None) -> None:
        self.folder, self._programs, self._canary = folder, programs, canary
        for name, arguments in _COMMANDS.items():
            self.command(name, arguments)
        path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        self.env = children.environment(stores.variables(folder) | {"PATH": path, "PYTHONUNBUFFERED": "1"})

    def command(self, name: str, arguments: str) -> None:
        """Makes a command that runs Python with these arguments, and its own."""
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
        file.chmod(0o755)

    def python(self, source: str, env: Mapping[str, str] | None = None) -> children.Ended:
        """Runs Python source to its end, which must be a good one."""
        assert self._programs is not None
        ended: children.Ended = self._programs.run(source, self.folder, {**self.env, **(env or {})})
        self._canary.check_stream("an example's output", ended.out + ended.err)
        return ended.check()

    def sh(self, script: str, env: Mapping[str, str] | None = None) -> children.Ended:
        """Runs a shell script to its end."""
        variables = {**self.env, **(env or {})}
        done = subprocess.run(["sh", "-ec", script], env=variables, cwd=self.folder, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=2 * SECONDS, check=False)  # fmt: skip
        return children.Ended(done.returncode, done.stdout, done.stderr, 0)

    @contextmanager
    def server(self, command: str, env: Mapping[str, str] | None = None) -> Iterator[Server]:
        """Runs a command in the background, until it has told its address; ends it with Ctrl-C, and well."""
        with (self.folder / "server.err").open("w+") as errors:
            process = subprocess.Popen(
                ["sh", "-c", f"exec {command}"], env={**self.env, **(env or {})}, cwd=self.folder,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, start_new_session=True, bufsize=0,
            )  # fmt: skip
            try:
                yield Server(_said(process), process)
                process.send_signal(signal.SIGINT)
                assert process.wait(SECONDS) in (0, 130, -signal.SIGINT), (self.folder / "server.err").read_text()
            finally:
                if process.poll() is None:
                    process.kill()
                    process.wait()
                assert process.stdout is not None
                process.stdout.close()


def _said(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout is not None
    said, end = "", time.monotonic() + SECONDS
    while not re.search(r"https?://\S+\s", said):
        ready = select.select([process.stdout], [], [], max(0, end - time.monotonic()))[0]
        piece = os.read(process.stdout.fileno(), 1 << 16) if ready else b""
        assert piece, f"it tells no address: {said}"
        said += piece.decode()
    return said


def commands(script: str) -> list[str]:
    """The commands of a script, one by one; a backslash at a line's end joins it to the next."""
    joined = re.sub(r"\\\n\s*", " ", script)
    return [line for line in joined.splitlines() if line.strip()]
