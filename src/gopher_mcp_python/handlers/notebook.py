"""Asking in a Jupyter notebook: what is asked is shown in the output of the cell, and answered below it.

    GopherAgentElicitationOptions(handler=NotebookElicitationHandler())

Pages and forms are those of the terminal, with the same words and rules. A page is a link there: nothing is opened by
itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..errors import UnsafeUrlError
from ..weburl import parse_web_url
from .console import Console
from .notebook_console import KernelConsole
from .notebook_kernel import Cell, cell_that_asks
from .prompts import PersonAnswer, PersonPrompt, PromptUnavailable, response_of
from .terminal import Turn, UrlPrompt
from .terminal_form import FormPrompt
from .turns import Turns
from .watch import Watch

if TYPE_CHECKING:
    from ..elicitation import GopherAgentElicitationRequest, GopherAgentElicitationResponse

__all__ = ["NotebookElicitationHandler", "NotebookPrompt"]

_PAGE = 'Enter when you have finished, "decline" or "cancel":'
_KERNEL = Turns()  # one question at a time: kernels have one input channel


class NotebookPrompt:
    """A `PersonPrompt`: asks in the cell that is being executed, where its frontend takes input."""

    name = "notebook"

    def unusable(self) -> str | None:
        """Why nobody can be asked in a notebook now; None when somebody can."""
        cell = cell_that_asks()
        return cell if isinstance(cell, str) else None

    def ask(self, request: GopherAgentElicitationRequest, watch: Watch) -> PersonAnswer:
        """Shows the request below the cell and waits for the answer. Raises PromptUnavailable."""
        cell = cell_that_asks()
        if isinstance(cell, str):
            raise PromptUnavailable(f"Nobody can be asked in a notebook: {cell}")
        if request.mode == "form":
            return FormPrompt(turn=_turn_in(cell)).answer(request, watch)
        return UrlPrompt(False, _never_opened, turn=_turn_in(cell, _link_of(request))).answer(request, watch)


class NotebookElicitationHandler:
    """A handler that asks in the notebook, for GopherAgentElicitationOptions, McpToolset or a policy.

    Where there is nobody to ask (no kernel, or a frontend that takes no input), calling it raises PromptUnavailable,
    which says why; on an agent and a toolset the request is cancelled.
    """

    def __init__(self) -> None:
        self.gopher_prompt: PersonPrompt = NotebookPrompt()

    def __call__(self, request: GopherAgentElicitationRequest) -> GopherAgentElicitationResponse:
        return response_of(self.gopher_prompt.ask(request, Watch()))


def _turn_in(cell: Cell, link: str | None = None) -> Turn:
    @contextmanager
    def turn(watch: Watch) -> Iterator[Console | None]:
        with _KERNEL.turn(lambda: cell.is_running and watch.wanted()) as mine:
            if not mine:
                yield None
                return
            console = KernelConsole(cell, link, _PAGE)
            try:
                yield console
            finally:
                console.close()

    return turn


def _link_of(request: GopherAgentElicitationRequest) -> str | None:
    try:
        return parse_web_url(request.url or "").href
    except UnsafeUrlError:
        return None  # the prompt refuses it and says so


def _never_opened(url: str, open_browser: bool | None) -> dict[str, Any]:
    raise AssertionError("a notebook opens no page by itself")  # pragma: no cover
