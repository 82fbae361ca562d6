"""A display without a screen, with a window manager, and a person who types and clicks there (xdotool).

Programs that open windows run as children; what they print are JSON lines (tests/support/desktop.py).
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.support import children

LONG = 40.0  # seconds in which anything has happened
# In openbox's own words: new windows get the keyboard unless they say that they do not want it.
_OPENBOX = """<?xml version="1.0" encoding="UTF-8"?>
<openbox_config xmlns="http://openbox.org/3.4/rc">
<focus><focusNew>yes</focusNew><followMouse>no</followMouse></focus>
<placement><policy>Smart</policy></placement>
<keyboard><keybind key="A-F4"><action name="Close"/></keybind></keyboard>
<mouse><context name="Client"><mousebind button="Left" action="Press"><action name="Focus"/><action name="Raise"/>
</mousebind></context></mouse>
</openbox_config>
"""


def until(true: Callable[[], Any], what: str, seconds: float = LONG) -> Any:
    end = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.02)
    return found


class Display:
    """One display with openbox."""

    def __init__(self, folder: Path, size: str = "1280x900x24") -> None:
        self._folder = folder
        read, write = os.pipe()
        argv = ["Xvfb", "-displayfd", str(write), "-screen", "0", size, "-nolisten", "tcp", "-noreset"]
        self._server = subprocess.Popen(argv, pass_fds=[write], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(write)
        with os.fdopen(read) as line:
            number = line.readline().strip()
        assert number, f"Xvfb did not start, exit code {self._server.wait(10)}"
        self.name = f":{number}"
        (folder / "openbox.xml").write_text(_OPENBOX)
        self._manager = subprocess.Popen(
            ["openbox", "--config-file", str(folder / "openbox.xml"), "--sm-disable"],
            env=self.environment(), stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        until(lambda: "no such property" not in self._said("get_desktop"), "openbox manages the display")

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """Of a program on this display, which finds no browser but the one it is given."""
        folder = str(self._folder)
        own = {"DISPLAY": self.name, "QT_QPA_PLATFORM": "xcb", "HOME": folder, "XDG_RUNTIME_DIR": folder}
        return children.environment({**own, "XDG_CONFIG_HOME": folder, "QT_ACCESSIBILITY": "0", **(extra or {})})

    def _said(self, *command: str) -> str:
        done = subprocess.run(
            ["xdotool", *command], env=self.environment(), capture_output=True, text=True, check=False, timeout=LONG
        )
        return (done.stdout + done.stderr).strip() if done.returncode else done.stdout.strip() or "done"

    # ---- what is there ---------------------------------------------------------------------------------------------

    def windows(self, name: str = "^Request from") -> list[str]:
        """The visible windows whose title matches, by their ids."""
        said = self._said("search", "--onlyvisible", "--name", name)
        return sorted(line for line in said.splitlines() if line.isdigit())

    def wait_for(self, count: int = 1, name: str = "^Request from") -> list[str]:
        until(lambda: len(self.windows(name)) == count, f"{count} windows {name!r}")
        return self.windows(name)

    @property
    def active(self) -> str:
        return self._said("getactivewindow")

    def wait_for_active(self, window: str) -> None:
        until(lambda: self.active == window, f"window {window} has the keyboard")

    def place(self, window: str) -> tuple[int, int, int, int]:
        """x, y, width, height on the screen."""
        said = dict(
            line.split("=") for line in self._said("getwindowgeometry", "--shell", window).splitlines() if "=" in line
        )
        return int(said["X"]), int(said["Y"]), int(said["WIDTH"]), int(said["HEIGHT"])

    # ---- what a person does ----------------------------------------------------------------------------------------

    def type(self, text: str) -> None:
        self._said("type", "--delay", "5", text)

    def key(self, *keys: str) -> None:
        for key in keys:
            self._said("key", key)

    def click(self, x: int, y: int) -> None:
        self._said("mousemove", "--sync", str(x), str(y), "click", "1")

    def activate(self, window: str) -> None:
        self._said("windowactivate", window)
        self.wait_for_active(window)

    def picture(self, path: Path) -> None:
        subprocess.run(["import", "-window", "root", str(path)], env=self.environment(), check=True, timeout=LONG)

    # ---- the end ---------------------------------------------------------------------------------------------------

    def close(self) -> None:
        for process in (self._manager, self._server):
            children.stop(process)  # type: ignore[arg-type]  # bytes or text, nothing is read

    def __enter__(self) -> Display:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Program:
    """A child that opens windows on a display; it is told and tells by JSON lines."""

    def __init__(self, display: Display, argv: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, *argv], env=display.environment(env), cwd=children.ROOT, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._seen: list[dict[str, Any]] = []
        self._err: list[str] = []
        self._readers = [threading.Thread(target=self._read), threading.Thread(target=self._read_err)]
        for reader in self._readers:
            reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _read_err(self) -> None:
        assert self._process.stderr is not None
        self._err.append(self._process.stderr.read())

    def tell(self, **what: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()

    def hear(self, key: str, **also: Any) -> dict[str, Any]:
        """The next line with that key, and with these values."""

        def fits(facts: dict[str, Any]) -> bool:
            return key in facts and all(facts.get(name) == value for name, value in also.items())

        end = time.monotonic() + LONG
        while True:
            for facts in self._seen:
                if fits(facts):
                    self._seen.remove(facts)
                    return facts
            try:
                line = self._lines.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no {key!r} {also} within {LONG} s; only {self._seen}") from None
            assert line is not None, f"it ended without {key!r} {also}: {self._seen}, {self.end(check=False)}"
            self._seen.append(json.loads(line))

    def forget(self) -> None:
        """What it said so far."""
        self._seen.clear()

    def interrupt(self) -> None:
        """Ctrl-C."""
        self._process.send_signal(signal.SIGINT)

    def end(self, *, check: bool = True) -> str:
        """Waits for its end; what it wrote to stderr. With `check`, it has to end well and to have written nothing."""
        code = self._process.wait(LONG)
        for reader in self._readers:
            reader.join(LONG)
        err = "".join(self._err)
        assert not check or (code, err) == (0, ""), f"exit code {code}\n{err}"
        return err

    def __enter__(self) -> Program:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for reader in self._readers:
            reader.join()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    pass
