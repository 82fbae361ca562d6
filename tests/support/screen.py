"""A form on a full terminal, for tests: a program or a thread that asks, and what is seen of it (a pty and pyte).

    python -m tests.support.screen '{"form": {...}, "server": "mail.test", ...}'

Keys of the program's argument: form, message, server, tool; lasting (what `Watch.lasting` offers), limit_ms; withdrawn
(a file: when it is there, nobody wants the answer any more); loop (ask on a thread beside a running event loop), inside
(on the very thread of a running loop); raw (a raw terminal before), read_line (read a line of stdin at the end), url (a
page instead of a form), open_browser, result (a file for the output; a hang-up is survived).
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def set_size(terminal: int, columns: int, lines: int) -> None:
    import fcntl
    import struct
    import termios

    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))


class _Seen:
    """What a person sees. Times are in seconds."""

    def __init__(self, size: tuple[int, int]) -> None:
        import pyte

        self._screen = pyte.Screen(*size)
        self._stream = pyte.Stream(self._screen)
        self.raw = ""  # everything that came

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self._screen.display]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def cursor(self) -> tuple[int, int]:
        """Row and column."""
        return self._screen.cursor.y, self._screen.cursor.x

    def marked(self) -> list[str]:
        """What is shown in reverse, line by line, without the first line and the last one."""
        rows = range(1, self._screen.lines - 1)
        cells = [[cell for _, cell in sorted(self._screen.buffer[row].items()) if cell.reverse] for row in rows]
        return [text for row in cells if (text := "".join(cell.data for cell in row).strip())]

    def keys(self, *keys: str) -> Any:
        """Types them; what the form reads at once counts as typed at once."""
        for key in keys:
            self._send(key)
        return self

    def until(self, pattern: str | Callable[[Any], bool], timeout: float = 40) -> str:
        """Waits until the screen shows something (a regular expression, over its lines); returns the screen."""
        end = time.monotonic() + timeout
        while not (pattern(self) if callable(pattern) else re.search(pattern, self.text, re.M)):
            assert time.monotonic() < end, f"not shown: {pattern!r}\n{self.text}"
            assert self._read(0.5) or self._is_alive(), f"ended before it showed {pattern!r}\n{self.text}"
        return self.text

    def _take(self, data: str) -> None:
        self.raw += data
        self._stream.feed(data)

    def _send(self, text: str) -> None:
        raise NotImplementedError

    def _read(self, seconds: float) -> bool:
        """Whether something came."""
        raise NotImplementedError

    def _is_alive(self) -> bool:
        raise NotImplementedError


class Screen(_Seen):
    """A program on a pty and the screen it draws; use as a context manager."""

    def __init__(self, argv: list[str], size: tuple[int, int] = (80, 24), env: dict[str, str] | None = None) -> None:
        from tests.support.terminal import Terminal

        super().__init__(size)
        self.terminal = Terminal(argv, env={"LC_ALL": "C.UTF-8", **(env or {})}, size=(size[1], size[0]))
        self.child = self.terminal.child

    @classmethod
    def asking(
        cls, form: Any, size: tuple[int, int] = (80, 24), env: dict[str, str] | None = None, **more: Any
    ) -> Screen:
        given = {"form": form, "server": "mail.test", **more}
        return cls([sys.executable, "-m", "tests.support.screen", json.dumps(given)], size, env)

    def __enter__(self) -> Screen:
        return self

    def __exit__(self, *_: object) -> None:
        self.child.close(force=True)

    def answered(self) -> dict[str, Any]:
        """Waits for the program's result."""
        end = time.monotonic() + 40
        while not re.search(r"RESULT \{.*\}", self.raw):
            assert time.monotonic() < end, f"no result\n{self.text}"
            if not self._read(0.5) and not self._is_alive() and not self._read(0.5):
                break
        found = re.search(r"RESULT (\{.*\})", self.raw)
        assert found is not None, f"no result\n{self.text}\n{self.raw[-2000:]}"
        facts: dict[str, Any] = json.loads(found[1])
        return facts

    def ended(self) -> None:
        """Waits for the program's end."""
        end = time.monotonic() + 40
        while self._read(0.1) or self._is_alive():
            assert time.monotonic() < end, f"not ended\n{self.text}"

    def _send(self, text: str) -> None:
        self.child.send(text)

    def _is_alive(self) -> bool:
        return bool(self.child.isalive())

    def _read(self, seconds: float) -> bool:
        import pexpect

        try:
            data = self.child.read_nonblocking(1 << 16, seconds)
        except (pexpect.TIMEOUT, pexpect.EOF):
            return False
        self._take(data)
        return True


class Here(_Seen):
    """A form that a thread of this process asks on a pty; use as a context manager."""

    def __init__(self, form: Any, size: tuple[int, int] = (80, 24), watch: Any = None, **fields: Any) -> None:
        import codecs
        import pty

        from gopher_mcp_python import GopherAgentElicitationRequest
        from gopher_mcp_python.handlers.form import FormModel
        from gopher_mcp_python.handlers.watch import Watch

        super().__init__(size)
        self._ours, self.theirs = pty.openpty()
        self.resize(*size)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        fields = {"server": "mail.test", "message": "Who are you?", **fields}
        request = GopherAgentElicitationRequest("form", requested_schema=form, **fields)
        self.watch = Watch() if watch is None else watch
        self.shown = threading.Event()
        self.watch.on_shown = self.shown.set
        self._answers: list[Any] = []
        self._thread = threading.Thread(target=self._ask, args=(FormModel(form), request))
        self._thread.start()

    def _ask(self, model: Any, request: Any) -> None:
        from gopher_mcp_python.handlers.screen.opening import ask_on_screen
        from gopher_mcp_python.handlers.terminal import asker_of

        terminal = os.open(os.ttyname(self.theirs), os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        try:
            self._answers.append(ask_on_screen(terminal, model, request, asker_of(request), self.watch))
        except BaseException as error:
            self._answers.append(error)
        finally:
            os.close(terminal)

    def __enter__(self) -> Here:
        return self

    def __exit__(self, *_: object) -> None:
        self.watch.is_open = lambda: False
        while self._thread.is_alive():
            self._read(0.05)
        for descriptor in (self._ours, self.theirs):
            os.close(descriptor)

    def resize(self, columns: int, lines: int) -> None:
        self._screen.resize(lines, columns)
        set_size(self.theirs, columns, lines)

    def answer(self) -> Any:
        """Waits for the answer."""
        end = time.monotonic() + 40
        while self._thread.is_alive():
            assert time.monotonic() < end, f"no answer\n{self.text}"
            self._read(0.05)
        while self._read(0.0):
            pass
        if isinstance(self._answers[0], BaseException):
            raise self._answers[0]
        return self._answers[0]

    def _send(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def _is_alive(self) -> bool:
        return self._thread.is_alive()

    def _read(self, seconds: float) -> bool:
        if not select.select([self._ours], [], [], seconds)[0]:
            return False
        self._take(self._decoder.decode(os.read(self._ours, 1 << 16)))
        return True


# ---- the program that asks ------------------------------------------------------------------------------------------


def main(given: dict[str, Any]) -> dict[str, Any]:
    import termios
    import tty

    if given.get("result"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    if given.get("raw"):
        tty.setraw(0)
    before = termios.tcgetattr(0) if sys.stdin.isatty() else None
    numbers = (signal.SIGINT, signal.SIGWINCH, signal.SIGTERM, signal.SIGHUP)
    handlers = [signal.getsignal(number) for number in numbers]
    threads, descriptors = threading.active_count(), len(os.listdir("/dev/fd"))
    facts = _asked(given)
    facts["threads"] = threading.active_count() - threads
    facts["descriptors"] = len(os.listdir("/dev/fd")) - descriptors
    facts["signals"] = handlers == [signal.getsignal(number) for number in numbers]
    if before is not None and not given.get("result"):
        facts["restored"] = termios.tcgetattr(0) == before
    if given.get("read_line"):
        facts["line"] = sys.stdin.readline()
    return facts


def _asked(given: dict[str, Any]) -> dict[str, Any]:
    try:
        if given.get("inside"):
            answer = asyncio.run(_inside(given))
        elif given.get("loop"):
            answer = asyncio.run(asyncio.wait_for(_beside(given), 60))
        else:
            answer = _ask(given)
    except KeyboardInterrupt:
        return {"interrupted": True}
    content = None if answer.content is None else dict(answer.content)
    return {"action": answer.action, "content": content, "whole_server": answer.whole_server}


async def _inside(given: dict[str, Any]) -> Any:
    return _ask(given)


async def _beside(given: dict[str, Any]) -> Any:
    """On a thread of its own, which is joined, while this one runs an event loop."""
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(_ask(given)))
    thread.start()
    while thread.is_alive():
        await asyncio.sleep(0.02)
    thread.join()
    return answers[0]


def _ask(given: dict[str, Any]) -> Any:
    from gopher_mcp_python import GopherAgentElicitationRequest
    from gopher_mcp_python.handlers.terminal_prompt import TerminalPrompt
    from gopher_mcp_python.handlers.watch import Watch

    opened: list[str] = []

    def open_url(url: str, open_browser: bool | None) -> dict[str, Any]:
        opened.append(url)
        return {"opened": True}

    fields = {name: given.get(name) for name in ("message", "server", "tool")}
    if "url" in given:
        request = GopherAgentElicitationRequest("url", url=given["url"], **fields)
    else:
        request = GopherAgentElicitationRequest("form", requested_schema=given["form"], **fields)
    watch = Watch.for_limit(given.get("limit_ms"))
    watch.lasting = tuple(given.get("lasting", ()))
    if given.get("withdrawn"):
        watch.is_open = lambda: not os.path.exists(given["withdrawn"])
    return TerminalPrompt(given.get("open_browser"), open_url).ask(request, watch)


if __name__ == "__main__":
    argument = json.loads(sys.argv[1])
    found = "RESULT " + json.dumps(main(argument))
    if argument.get("result"):
        Path(argument["result"]).write_text(found, encoding="utf-8")
    else:
        sys.stdout.write(found + "\r\n")
        sys.stdout.flush()
