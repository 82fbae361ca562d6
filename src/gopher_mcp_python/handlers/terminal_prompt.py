"""The person at this process's terminal: pages line by line, so that a link can be copied; forms on a screen of their
own where the terminal has one, else line by line, too."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from .console import open_console
from .prompts import CANCELLED, DECLINED, PersonAnswer
from .terminal import OpenUrl, ReadLine, UrlPrompt, asker_of
from .terminal_form import FormPrompt, ask_on, model_of
from .turns import TERMINAL
from .watch import Watch

if TYPE_CHECKING:
    from ..elicitation import GopherAgentElicitationRequest
    from .form import FormModel

__all__ = ["TerminalPrompt"]

_log = logging.getLogger("gopher_mcp_python.elicitation")


def _open_page(url: str, open_browser: bool | None) -> dict[str, Any]:
    from ..oauth_browser import open_authorization_url

    return open_authorization_url(url, open_browser)


class TerminalPrompt:
    """A `PersonPrompt`: asks on the terminal, one request at a time in the whole process.

    Args:
        open_browser, open_url: for pages; see `UrlPrompt`.
        read_line: takes lines from somewhere else than the terminal (see `UrlPrompt`); forms are asked line by line.
    """

    name = "terminal"

    def __init__(
        self, open_browser: Any = None, open_url: OpenUrl = _open_page, read_line: ReadLine | None = None
    ) -> None:
        self._pages = UrlPrompt(open_browser, open_url, read_line)
        self._read_line = read_line

    def unusable(self) -> str | None:
        if self._read_line is not None:
            return None
        if os.name == "nt":
            from .console_windows import WindowsConsole

            return WindowsConsole.unusable()
        from .console_posix import find_terminal

        found = find_terminal()
        if isinstance(found, str):
            return found
        os.close(found)
        return None

    def ask(self, request: GopherAgentElicitationRequest, watch: Watch) -> PersonAnswer:
        if request.mode != "form":
            return self._pages.answer(request, watch)
        if self._read_line is not None or os.name == "nt":
            return FormPrompt(self._read_line).answer(request, watch)
        model = model_of(request)
        if model is None:
            return DECLINED
        with TERMINAL.turn(watch.wanted) as mine:
            return _asked(model, request, watch) if mine else CANCELLED


def _asked(model: FormModel, request: GopherAgentElicitationRequest, watch: Watch) -> PersonAnswer:
    from .console_posix import find_terminal
    from .screen.opening import ask_on_screen, why_line_by_line

    found = find_terminal()
    if isinstance(found, int):
        try:
            why = why_line_by_line(found)
            if why is None:
                return ask_on_screen(found, model, request, asker_of(request), watch)
        finally:
            os.close(found)
        with suppress(Exception):  # a filter of the program's may raise
            _log.debug("the form is asked line by line: %s", why)
    with open_console() as console:
        return ask_on(console, model, request, watch)
