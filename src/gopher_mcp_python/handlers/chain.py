"""Asking where somebody can answer: the first place of several that is usable for this request, here and now.

    HandlerChain()                        # what agents and toolsets do by default: window, notebook, terminal
    HandlerChain(store=ask_elsewhere)     # and where nobody sits before this program, this handler
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..answers import ACTION_OF, answer_of
from ..copying import for_handler
from ..elicitation import GopherAgentElicitationRequest, GopherAgentElicitationResponse, is_async_handler
from .prompts import PersonAnswer, PersonPrompt, PromptUnavailable, prompt_of, response_of
from .watch import Watch

if TYPE_CHECKING:
    from typing import Literal

__all__ = ["HandlerChain", "PromptChain", "default_prompt"]

_log = logging.getLogger("gopher_mcp_python.elicitation")
# By name: where its prompt is, what makes it, and modules of which the program has imported one where it is of use.
_PLACES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "qt": (".qt", "QtPrompt", ("PySide6.QtWidgets", "gopher_mcp_python.handlers.qt")),
    "notebook": (".notebook", "NotebookPrompt", ("IPython",)),
    "terminal": ("..elicitation_runtime", "terminal_prompt", ()),
}


class PromptChain:
    """The first usable one of several prompts; the last of them is asked in any case, and may only say that nobody can
    be. Why it was that one is in the debug log."""

    name = "chain"

    def __init__(self, prompts: Sequence[PersonPrompt]) -> None:
        self._prompts = prompts

    @property
    def outstays(self) -> bool:
        return any(getattr(prompt, "outstays", False) for prompt in self._prompts)

    def unusable(self) -> str | None:
        return None

    def ask(self, request: GopherAgentElicitationRequest, watch: Watch) -> PersonAnswer:
        passed: list[str] = []
        for prompt in self._prompts[:-1]:
            why = prompt.unusable()
            if why is None:
                _explain(prompt, passed)
                try:
                    return prompt.ask(request, watch)
                except PromptUnavailable as reason:
                    why = str(reason)
            passed.append(f"{prompt.name}: {why}")
        _explain(self._prompts[-1], passed)
        return self._prompts[-1].ask(request, watch)


def _explain(prompt: PersonPrompt, passed: list[str]) -> None:
    with suppress(Exception):  # a filter of the program's may raise
        _log.debug("elicitation asked by: %s%s", prompt.name, f" ({'; '.join(passed)})" if passed else "")


class HandlerPrompt:
    """A handler of the program's in a chain. It is not told when nobody waits any more."""

    name = "store"
    outstays = True  # it may go on when its answer is not wanted any more, so that it needs a thread to be left on

    def __init__(self, handler: Callable[[GopherAgentElicitationRequest], Any]) -> None:
        self._handler = handler

    def unusable(self) -> str | None:
        return None

    def ask(self, request: GopherAgentElicitationRequest, watch: Watch) -> PersonAnswer:
        watch.on_shown()
        result = self._handler(for_handler(request))
        code, content = answer_of(result, request)
        everything = getattr(result, "lasts", None) if getattr(result, "whole_server", False) else None
        return PersonAnswer(ACTION_OF[code], content, everything)


class _Place:
    """A prompt of this package, imported when it is needed, and not before the program itself uses what it needs."""

    def __init__(self, name: str, open_browser: Any) -> None:
        self.name = name
        self._home, self._make, self._needs = _PLACES[name]
        self._arguments = (open_browser,) if name == "terminal" else ()

    def unusable(self) -> str | None:
        if self._needs and not any(module in sys.modules for module in self._needs):
            return f"the program does not use {self._needs[0].partition('.')[0]}"
        try:
            return self._prompt().unusable()
        except ImportError as error:
            return str(error)

    def ask(self, request: GopherAgentElicitationRequest, watch: Watch) -> PersonAnswer:
        return self._prompt().ask(request, watch)

    def _prompt(self) -> PersonPrompt:
        prompt: PersonPrompt = getattr(import_module(self._home, __package__), self._make)(*self._arguments)
        return prompt


class HandlerChain:
    """A handler that asks in the first place where somebody can answer. Goes wherever handlers go, also behind an
    `ElicitationPolicy`. Without arguments it is what is used when no handler is given.

    Args:
        places: which of "qt" (a window: the program has a Qt application with a display, and its event loop is free),
            "notebook" (a kernel whose front end takes input) and "terminal" are tried, in this order; also handlers of
            yours, which are asked without being tried.
        store: a handler for when none of them is usable: one that has somebody answer from elsewhere. None: the page
            is printed, with the reason, and the answer is "cancel".
        open_browser: for "terminal"; see GopherAgentElicitationOptions.

    Raises ValueError: an unknown place, a handler that is async or none, one behind which nothing else comes.
    """

    def __init__(
        self,
        places: Iterable[Any] = tuple(_PLACES),
        *,
        store: Callable[[GopherAgentElicitationRequest], Any] | None = None,
        open_browser: bool | Literal["ask"] | None = None,
    ) -> None:
        prompts = [_prompt_for(place, open_browser) for place in ((places,) if isinstance(places, str) else places)]
        if store is not None:
            prompts.append(_prompt_for(store, open_browser))
        if any(isinstance(prompt, HandlerPrompt) for prompt in prompts[:-1]):
            raise ValueError("a handler of yours is always asked, so nothing behind it in a chain would ever be")
        if not isinstance(prompts[-1] if prompts else None, HandlerPrompt):
            prompts.append(_prompt_for("terminal", open_browser))
        self.gopher_prompt: PersonPrompt = PromptChain(prompts)

    def __call__(self, request: GopherAgentElicitationRequest) -> GopherAgentElicitationResponse:
        return response_of(self.gopher_prompt.ask(request, Watch()))


def default_prompt(open_browser: Any) -> PersonPrompt:
    """What asks when no handler is given."""
    return HandlerChain(open_browser=open_browser).gopher_prompt


def _prompt_for(place: Any, open_browser: Any) -> PersonPrompt:
    if isinstance(place, str) and place in _PLACES:
        return _Place(place, open_browser)
    own = prompt_of(place)
    if own is not None:
        return own
    if not callable(place) or is_async_handler(place):
        known = ", ".join(f'"{name}"' for name in _PLACES)
        raise ValueError(f"a chain is made of {known} and handlers that are plain functions, not {place!r:.60}")
    return HandlerPrompt(place)
