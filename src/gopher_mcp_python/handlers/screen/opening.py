"""Whether a terminal can show a form on a screen of its own, and one form there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..console import write_stderr
from ..console_posix import PosixConsole, attributes_of
from ..prompts import PersonAnswer
from ..watch import Watch

if TYPE_CHECKING:
    from ...elicitation import GopherAgentElicitationRequest
    from ..form import FormModel

__all__ = ["PLAIN", "ask_on_screen", "why_line_by_line"]

PLAIN = "GOPHER_MCP_PLAIN"  # a variable: forms are asked line by line, as screen readers like it
_LEAST_COLUMNS, _LEAST_LINES = 40, 12
_NO_SCREEN = frozenset(("", "dumb", "unknown", "emacs"))


def why_line_by_line(descriptor: int) -> str | None:
    """Why a form has to be asked line by line on a terminal; None when a screen can show it."""
    if os.environ.get(PLAIN, "0") not in ("", "0"):
        return f"{PLAIN} is set"
    if os.environ.get("TERM", "").lower() in _NO_SCREEN:
        return "the terminal has no screen (TERM)"
    try:
        columns, lines = os.get_terminal_size(descriptor)
    except OSError:
        return "the terminal has no size"
    if attributes_of(descriptor) is None:
        return "the terminal is gone"
    if columns < _LEAST_COLUMNS or lines < _LEAST_LINES:
        return f"the terminal is smaller than {_LEAST_COLUMNS} columns and {_LEAST_LINES} lines"
    try:
        import prompt_toolkit  # noqa: F401
    except Exception as error:  # not installed, or not for this Python
        return f"prompt_toolkit can't be imported ({type(error).__name__})"
    return None


def ask_on_screen(
    descriptor: int, model: FormModel, request: GopherAgentElicitationRequest, asker: str, watch: Watch
) -> PersonAnswer:
    """Asks on the terminal behind a descriptor, and leaves one line on it that says what was answered.

    Raises OSError when the terminal is gone. KeyboardInterrupt passes."""
    from .asking import Asking
    from .owning import own_terminal

    told = "Cancelled."
    with own_terminal(descriptor) as terminal:
        try:
            answer, told = Asking(terminal, descriptor, model, request, asker, watch).run()
        finally:
            terminal.close(f"\n{told}\n")  # in this mode a line feed also returns
            if PosixConsole(descriptor).is_elsewhere:
                write_stderr(f"{told}\n")
    return answer
