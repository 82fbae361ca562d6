"""A notebook's cell as a console: text goes to its output, lines are typed below it.

Every text is shown as it is: escaped, in a `pre` element, in which frontends typeset nothing either.
"""

from __future__ import annotations

import html
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from .console import NO_ANSWER, End, ended, pause_for
from .notebook_input import InputLost, Question
from .notebook_kernel import Cell
from .watch import Watch

__all__ = ["KernelConsole"]

_LEFT = "The input field of this question is still there: press Enter in it. Until then JupyterLab runs no other cell."
_AGAIN = "This may have been an answer to an earlier question: please give it again.\n"
_TAKEN_OUT = "(taken out of the notebook, which may be saved and shared)"
_STYLE = "white-space: pre-wrap; word-break: normal; overflow-wrap: anywhere; margin: 0"
_PRE = f'<pre class="tex2jax_ignore mathjax_ignore" style="{_STYLE}">'


class KernelConsole:
    """One prompt in a cell.

    Args:
        link: a line with nothing but this text is a link, until the console is closed.
        question: what stands before the line on which is typed, where nothing else was written there.
    """

    can_read = True
    why_not = ""
    has_half_a_line = False  # the frontend does not say

    def __init__(self, cell: Cell, link: str | None = None, question: str = "Answer:") -> None:
        self._cell = cell
        self._link = link
        self._otherwise = question
        self._with_link: tuple[str, str] | None = None  # the text that had it, and where that is shown
        self._text = ""  # written and not yet shown; a line without its end is the next question
        self._question = Question(cell)
        self._secret = False

    def write(self, text: str) -> bool:
        self._text += text
        return True

    def read_line(self, watch: Watch, until: float | None = None) -> str | End | None:
        prompt = self._show_lines()
        while True:
            end = ended(watch) or (None if self._cell.is_running else NO_ANSWER["withdrawn"])
            if end is not None:
                self._give_up()
                return end
            if until is not None and pause_for(watch, until) == 0.0:
                return None
            try:
                if not self._question.is_open:
                    self._question.put(prompt.strip() or self._otherwise, secret=self._secret)
                self._cell.let_interrupt()
                line = self._question.wait(pause_for(watch, until), watch.wakes)
            except EOFError:
                return NO_ANSWER["eof"]
            except InputLost:
                self._question.give_up()
                return End("unreachable")
            if line is not None:
                return line
            if not self._question.is_open:
                self._show(_AGAIN)

    @contextmanager
    def hidden(self) -> Iterator[None]:
        self._secret = True
        try:
            yield
        finally:
            self._secret = False

    def forget_typed(self) -> None:
        """What was typed is dropped when the next line is asked for."""

    def close(self) -> None:
        """Shows what is left to show, and takes the link out: notebooks are saved with their output."""
        self._give_up()
        self._show(self._text)
        self._text = ""
        if self._with_link is not None:
            text, place = self._with_link
            lines = (_TAKEN_OUT if line == self._link else line for line in text.split("\n"))
            self._cell.display(_bundle("\n".join(lines), None), place, update=True)

    def _give_up(self) -> None:
        if self._question.is_open:
            self._question.give_up()
            self._show(_LEFT)

    def _show_lines(self) -> str:
        """Shows whole lines. Returns what is left, the beginning of the line on which is typed."""
        lines, _, rest = self._text.rpartition("\n")
        self._text = ""
        self._show(lines)
        return rest

    def _show(self, text: str) -> None:
        text = text.strip("\n")
        if not text:
            return
        place = uuid.uuid4().hex
        if self._link is not None and self._link in text.split("\n"):
            self._with_link = text, place
        self._cell.display(_bundle(text, self._link), place)


def _bundle(text: str, link: str | None) -> dict[str, str]:
    lines = (_anchor(line) if line == link else html.escape(line) for line in text.split("\n"))
    return {"text/plain": text, "text/html": _PRE + "\n".join(lines) + "</pre>"}


def _anchor(href: str) -> str:
    written = html.escape(href)
    return f'<a href="{written}" target="_blank" rel="noopener noreferrer" referrerpolicy="no-referrer">{written}</a>'
