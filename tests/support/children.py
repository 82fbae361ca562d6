"""Child processes of the tests: servers that print one JSON line, Python programs that are run to their end.

Every byte that a child writes goes through the canary scan (tests/support/canary.py).
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# Variables of the machine that would lead a child to another engine, library, model or proxy than the test wants, and
# those in which pytest-xdist tells its workers a terminal's size: a child on a pty has its own.
_OURS = ("GOPHER_MCP_ENGINE", "GOPHER_MCP_PYTHON_LIBRARY_PATH", "GOPHER_ORCH_LIBRARY_PATH", "GOPHER_MCP_OPENSSL11_PATH",
         "GOPHER_MCP_LOG_LEVEL", "GOPHER_ACCESS_TOKEN", "DEBUG", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "BROWSER",
         "HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "DISPLAY", "WAYLAND_DISPLAY",
         "COLUMNS", "LINES", "GOPHER_MCP_DEBUG", "NO_COLOR", "FORCE_COLOR")  # fmt: skip


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without what would steer the product, with the project folder importable."""
    clean = {name: value for name, value in os.environ.items() if name not in _OURS}
    inherited = clean.get("PYTHONPATH")
    clean["PYTHONPATH"] = str(ROOT) + (os.pathsep + inherited if inherited else "")
    # Python's own colours (since 3.13) would be between the words that tests look for.
    return {**clean, "PYTHONFAULTHANDLER": "1", "PYTHON_COLORS": "0", **(extra or {})}


@dataclass(frozen=True)
class Ended:
    """How a child ended. A negative code is a signal."""

    code: int
    out: str
    err: str
    seconds: float

    def check(self) -> Ended:
        assert self.code == 0, f"exit code {self.code}\n--- stdout\n{self.out[-3000:]}\n--- stderr\n{self.err[-6000:]}"
        return self


def run(
    argv: Sequence[str], *, env: Mapping[str, str] | None = None, timeout: float = 120, stdin: str | None = None
) -> Ended:
    """Runs a program to its end, in the project folder. Past `timeout` seconds it is killed and the test fails."""
    begin = time.monotonic()
    given: dict[str, Any] = {"input": stdin} if stdin is not None else {"stdin": subprocess.DEVNULL}
    given |= {"capture_output": True, "text": True, "errors": "replace", "timeout": timeout}
    try:
        done = subprocess.run(argv, check=False, env=environment(env), cwd=ROOT, **given)
    except subprocess.TimeoutExpired as late:
        parts = (late.stdout, late.stderr)
        texts = [part.decode(errors="replace") if isinstance(part, bytes) else "" for part in parts]
        shown = f"--- stdout\n{texts[0][-2000:]}\n--- stderr\n{texts[1][-4000:]}"
        raise AssertionError(f"not ended after {timeout} s: {argv}\n{shown}") from None
    return Ended(done.returncode, done.stdout, done.stderr, time.monotonic() - begin)


def python(code: str, *arguments: str, env: Mapping[str, str] | None = None, timeout: float = 120) -> Ended:
    """Runs Python source in a fresh interpreter."""
    return run([sys.executable, "-c", code, *arguments], env=env, timeout=timeout)


def start_server(
    argv: Sequence[str], *, env: Mapping[str, str] | None = None, timeout: float = 60
) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    """Starts a server and waits for the JSON line that it prints. Its stderr is the test run's own."""
    process = subprocess.Popen(
        argv, env=environment(env), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    if not select.select([process.stdout], [], [], timeout)[0]:
        stop(process)
        raise AssertionError(f"no line from {argv} within {timeout} s")
    line = process.stdout.readline()
    if not line:
        stop(process)
        raise AssertionError(f"{argv} ended at once, exit code {process.returncode}")
    return process, json.loads(line)


def stop(process: subprocess.Popen[str]) -> None:
    """Ends a server; kills it when it takes more than five seconds."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if process.stdout is not None:
        process.stdout.close()


def at_the_same_time(code: str, names: str, env: Mapping[str, str]) -> None:
    """Runs a program once for each letter, its argument. Each says "ready" on a line and then waits for one, which all
    get together; every one of them has to succeed."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(env),
            cwd=ROOT,
        )
        for name in names
    ]
    for one in started:
        assert one.stdout is not None and one.stdout.readline() == "ready\n"
    for one in started:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    errors = [one.communicate(timeout=120)[1] for one in started]
    assert [one.returncode for one in started] == [0] * len(started), errors
