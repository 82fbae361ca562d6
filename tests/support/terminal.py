"""A program in a real terminal (a pty): what a person sees and types. Everything shown goes through the canary scan."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

import pexpect

from tests.support.children import ROOT, environment


class Terminal:
    """Starts a program on a pty; use as a context manager. Times are in seconds."""

    eof, timed_out = pexpect.EOF, pexpect.TIMEOUT

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        timeout: float = 40,
        size: tuple[int, int] = (40, 200),  # lines, columns
    ) -> None:
        self.child = pexpect.spawn(
            argv[0], list(argv[1:]), env=environment({"TERM": "xterm", **(env or {})}), cwd=str(ROOT), timeout=timeout,
            encoding="utf-8", codec_errors="replace", dimensions=size, echo=False,
        )  # fmt: skip

    @classmethod
    def python(cls, *arguments: str, **more: Any) -> Terminal:
        return cls([sys.executable, *arguments], **more)

    def expect(self, pattern: str, timeout: float = -1) -> str:
        """Waits until a regular expression is shown; returns what was shown up to and with it."""
        self.child.expect(pattern, timeout=timeout)
        return str(self.child.before) + str(self.child.after)

    def send(self, text: str) -> None:
        self.child.send(text)

    def line(self, text: str = "") -> None:
        self.child.sendline(text)

    def interrupt(self) -> None:
        """Types Ctrl-C."""
        self.child.sendintr()

    def end(self, timeout: float = -1) -> tuple[int, str]:
        """Waits for the program's end: exit code (negative: signal) and the rest of what it showed."""
        self.child.expect(pexpect.EOF, timeout=timeout)
        rest = str(self.child.before)
        self.child.close()
        code = -self.child.signalstatus if self.child.signalstatus else self.child.exitstatus
        assert code is not None
        return int(code), rest

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.child.close(force=True)
