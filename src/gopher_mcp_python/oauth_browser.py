"""Opening a page in the person's browser, where there is one to open it in. No shell is ever involved."""

from __future__ import annotations

import atexit
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .weburl import parse_web_url

__all__ = ["Unavailable", "browser_command", "open_authorization_url"]

_TEXT_BROWSERS = frozenset("lynx w3m links links2 elinks www-browser browsh edbrowse".split())
_HELD: list[subprocess.Popen[bytes]] = []  # until they end: a dropped Popen warns and leaves a zombie
_FAILS_WITHIN = 0.7  # seconds; xdg-open says within this time that it found nothing to open with


class Unavailable(Exception):
    """There is no browser to open a page in; the text says why."""


def open_authorization_url(
    url: str, open_browser: bool | None = None, opener: Callable[[str], object] | None = None
) -> dict[str, Any]:
    """Opens a page in the browser unless `open_browser` is False or there is none on this person's screen.

    Returns a dict: "opened" (bool), "url" (parsed and written anew: the one to print), "command" when it was opened,
    "reason" when it was not. `opener` replaces the platform's command; it gets the URL and returns whether it worked.
    Raises UnsafeUrlError, whose text never holds the URL, when the URL must not be opened; nothing else.
    """
    href = parse_web_url(url).href
    if open_browser is False:
        return {"opened": False, "url": href, "reason": "opening a browser is switched off"}
    try:
        command = _opened_by(opener, href) if opener is not None else _launch(browser_command(os.environ), href)
    except Unavailable as reason:
        return {"opened": False, "url": href, "reason": str(reason)}
    except Exception as error:  # an opener of somebody else's: its text may hold the URL, so only its kind is told
        return {"opened": False, "url": href, "reason": f"the browser could not be started ({type(error).__name__})"}
    return {"opened": True, "url": href, "command": command}


def browser_command(environ: Mapping[str, str], platform: str = sys.platform) -> list[str]:
    """The command that opens a page, without the page; "%s" stands for it where it is not simply appended.

    A graphical BROWSER is the person's own choice and is taken wherever we are (remote editors set it to a helper that
    opens the page on the near side). Raises Unavailable with the reason.
    """
    named = environ.get("BROWSER", "").strip()
    if named:
        return _named_browser(named)
    if environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"):
        raise Unavailable("this is an SSH session, whose browser would open on the other machine")
    if platform == "darwin":
        return ["/usr/bin/open"]
    if platform == "win32":
        return ["startfile"]
    if _is_wsl(environ):
        raise Unavailable("this is WSL, whose browser is on the Windows side (BROWSER=wslview opens it)")
    if not (environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")):
        raise Unavailable("there is no display")
    return _found("xdg-open")


def _named_browser(named: str) -> list[str]:
    """The first usable command of BROWSER, a list of them in the platform's path syntax. When none is, the reason is
    the first one's."""
    reasons = []
    for entry in named.split(os.pathsep):
        try:
            return _browser_of(entry)
        except Unavailable as reason:
            reasons.append(reason)
    raise reasons[0]


def _browser_of(entry: str) -> list[str]:
    try:
        words = shlex.split(entry, posix=os.name != "nt")
    except ValueError:
        raise Unavailable("BROWSER can't be read as a command") from None
    if not words:
        raise Unavailable("BROWSER is empty")
    name = Path(words[0]).stem.lower()
    if name in _TEXT_BROWSERS:
        raise Unavailable(f"BROWSER is {name}, a text browser, which would take over this terminal")
    if name in ("true", "false", "echo", "none", ":"):
        raise Unavailable(f"BROWSER is {name}, which opens nothing")
    return [*_found(words[0]), *words[1:]]


def _found(command: str) -> list[str]:
    from shutil import which

    path = which(command)
    if path is None:
        raise Unavailable(f"{Path(command).name} is not installed")
    return [path]


def _is_wsl(environ: Mapping[str, str]) -> bool:
    if environ.get("WSL_DISTRO_NAME") or environ.get("WSL_INTEROP"):
        return True
    try:
        return "microsoft" in Path("/proc/sys/kernel/osrelease").read_text(encoding="ascii").lower()
    except (OSError, ValueError):
        return False


def _opened_by(opener: Callable[[str], object], href: str) -> str:
    if not opener(href):
        raise Unavailable("the browser could not be started")
    return getattr(opener, "__name__", type(opener).__name__)


def _hold(process: subprocess.Popen[bytes]) -> None:
    atexit.unregister(_let_go)
    atexit.register(_let_go)
    _HELD.append(process)


def _let_go() -> None:
    """The browser outlives this program, which is no news to anybody."""
    while _HELD:
        process = _HELD.pop()
        if process.poll() is None:
            process.returncode = 0  # so that nothing warns of it


def _launch(command: list[str], href: str) -> str:
    if command == ["startfile"]:
        os.startfile(href)  # type: ignore[attr-defined, unused-ignore]
        return "startfile"
    argv = [word.replace("%s", href) for word in command]
    if argv == command:
        argv.append(href)
    _HELD[:] = [process for process in _HELD if process.poll() is None]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(argv, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
    try:
        code = process.wait(_FAILS_WITHIN)
    except subprocess.TimeoutExpired:
        _hold(process)
        code = 0
    if code:
        raise Unavailable(f"{Path(command[0]).name} found no browser (exit code {code})")
    return Path(command[0]).name
