"""The public vocabulary of elicitation: what a server asks, what a handler answers, how a program configures it.

Nothing here runs a handler; `elicitation_runtime` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from inspect import isasyncgenfunction, iscoroutinefunction
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union

from .ffi._bridge import ElicitationRequest as GopherAgentElicitationRequest

__all__ = [
    "GopherAgentElicitationAction",
    "GopherAgentElicitationHandler",
    "GopherAgentElicitationOptions",
    "GopherAgentElicitationRequest",
    "GopherAgentElicitationResponse",
    "non_blocking",
    "normalize_elicitation_action",
    "normalize_elicitation_options",
]

if TYPE_CHECKING:
    GopherAgentElicitationAction = Literal["accept", "decline", "cancel"]
else:
    GopherAgentElicitationAction = str  # what it is in the published package, so that isinstance() goes on working
_ACTIONS = frozenset(("accept", "decline", "cancel"))
_MODES = frozenset(("url", "form"))
_LONGEST_MS = 10**15  # more than any clock of an engine takes


class GopherAgentElicitationResponse:
    """A handler's answer. `content` is for an accepted form only and is never sent with anything else.

    Accepting a page means that the person agrees to go there, not that they have been there. Where the call is made
    again after the answer (protocol 2026-07-28, error -32042), that must not happen before they are done: a handler
    that returns at once says with `finished` how to wait for it, a function without arguments that returns when the
    person is done, or False when they gave up (then the answer is "cancel"). A server's word that the page was
    completed ends that wait, too. A handler that returns when the person is done needs none.
    """

    __slots__ = ("__dict__", "__weakref__", "action", "content", "finished")

    def __init__(
        self,
        action: GopherAgentElicitationAction | str,
        content: Mapping[str, Any] | None = None,
        *,
        finished: Callable[[], Any] | None = None,
    ) -> None:
        """Raises ValueError when `action` is not "accept", "decline" or "cancel", `content` is not a mapping or
        `finished` is not callable."""
        try:
            known = action in _ACTIONS
        except TypeError:  # a list, a mapping
            known = False
        if not known:
            raise ValueError(f"unsupported MCP elicitation action: {_brief(action)}")
        if content is not None and not isinstance(content, Mapping):
            raise ValueError("elicitation content must be a mapping of field names to values")
        if finished is not None and not callable(finished):
            raise ValueError("elicitation finished must be a function that returns when the person is done")
        self.action: str = action
        self.content = content
        self.finished = finished

    def __repr__(self) -> str:
        filled = "" if self.content is None else f", content=<{len(self.content)} fields>"
        return f"GopherAgentElicitationResponse({self.action!r}{filled})"


GopherAgentElicitationHandler = Callable[
    [GopherAgentElicitationRequest], Union[GopherAgentElicitationResponse, GopherAgentElicitationAction]
]
_Handler = TypeVar("_Handler", bound=Callable[..., Any])


def non_blocking(handler: _Handler) -> _Handler:
    """Marks a handler that answers at once (a policy, a look-up). It is called directly on the engine's own thread,
    which is the fastest way; a marked handler that does wait holds up the engine. Usable as a decorator; returns the
    handler.

    Raises ValueError when the handler takes no attributes (a built-in, a bound method): wrap it in a function.
    """
    try:
        handler.gopher_non_blocking = True  # type: ignore[attr-defined]
    except AttributeError:
        raise ValueError("this handler can't be marked non-blocking; wrap it in a function or a lambda") from None
    return handler


class GopherAgentElicitationOptions:
    """How elicitations are answered. Omitted means enabled, with the default handler of the terminal.

    Attributes:
        handler: a callable that takes the request and returns a response or one of "accept", "decline", "cancel";
            or the text "cancel" or "decline", which always answers so; None: ask on the terminal.
        timeout_ms: limit for the whole handling (in milliseconds), for every handler; None or 0: no limit of ours.
        open_browser: None or True: show the request, then open the browser; "ask": ask first; False: only print.
        modes: what is declared to servers; None: "url" and "form", for the answers "cancel" and "decline" "url" alone.
        enabled: False switches elicitation off: nothing is declared and nothing is answered.
    """

    def __init__(
        self,
        handler: GopherAgentElicitationHandler | Literal["cancel", "decline"] | None = None,
        timeout_ms: float | None = None,
        open_browser: bool | Literal["ask"] | None = None,
        *,
        modes: Any = None,
        enabled: bool = True,
    ) -> None:
        """Raises ValueError when a value is of the wrong kind, or the handler is async (the answer is awaited by native
        code, which can't await Python)."""
        self.handler: Any = _checked_handler(handler)
        self.timeout_ms: int | None = _checked_timeout(timeout_ms)
        self.open_browser: Any = _checked_open_browser(open_browser)
        self.modes: frozenset[str] | None = _checked_modes(modes)
        self.enabled = _checked_enabled(enabled)

    @property
    def explicit(self) -> bool:
        """Whether the caller chose anything; {} and None are the default, not a choice."""
        chosen = (self.handler, self.timeout_ms, self.open_browser, self.modes)
        return any(value is not None for value in chosen)

    def __repr__(self) -> str:
        handler = self.handler if self.handler is None or isinstance(self.handler, str) else "<custom>"
        return (
            f"GopherAgentElicitationOptions(handler={handler!r}, timeout_ms={self.timeout_ms!r}, "
            f"open_browser={self.open_browser!r}, enabled={self.enabled!r})"
        )


def normalize_elicitation_options(
    options: GopherAgentElicitationOptions | Mapping[str, Any] | Literal[False] | None = None,
) -> GopherAgentElicitationOptions:
    """Options from what a caller may give: an instance (returned as it is), a mapping with snake_case or camelCase keys
    (snake_case wins), None (the default, enabled) or False (switched off). Raises ValueError for anything else."""
    if isinstance(options, GopherAgentElicitationOptions):
        return options
    if options is None:
        return GopherAgentElicitationOptions()
    if options is False:
        return GopherAgentElicitationOptions(enabled=False)
    if not isinstance(options, Mapping):
        raise ValueError("elicitation options must be a GopherAgentElicitationOptions instance or mapping")
    return GopherAgentElicitationOptions(
        handler=options.get("handler"),
        timeout_ms=options["timeout_ms"] if "timeout_ms" in options else options.get("timeoutMs"),
        open_browser=options["open_browser"] if "open_browser" in options else options.get("openBrowser"),
        modes=options.get("modes"),
        enabled=options.get("enabled", True),
    )


def normalize_elicitation_action(response: GopherAgentElicitationResponse | str) -> str:
    """The action word of a handler's answer. Raises ValueError when it is none of the three."""
    action = response.action if isinstance(response, GopherAgentElicitationResponse) else response
    if not isinstance(action, str) or action not in _ACTIONS:
        raise ValueError(f"unsupported MCP elicitation action: {_brief(action)}")
    return action


def is_async_handler(handler: object) -> bool:
    """Whether calling `handler` would return an awaitable, as far as can be told without calling it."""
    while isinstance(handler, partial):
        handler = handler.func
    return _is_async(handler) or _is_async(getattr(type(handler), "__call__", None))  # noqa: B004


def _is_async(function: object) -> bool:
    return iscoroutinefunction(function) or isasyncgenfunction(function)


def _checked_handler(handler: object) -> object:
    if handler is None or (isinstance(handler, str) and handler in ("cancel", "decline")):
        return handler
    if not callable(handler):
        raise ValueError('elicitation handler must be callable, or "cancel" or "decline"')
    if is_async_handler(handler):
        raise ValueError(
            "elicitation handler must not be async: native code waits for its answer and can't await it; "
            "pass a plain function (it may hand the work to your event loop and wait for it)"
        )
    return handler


def _checked_timeout(value: object) -> int | None:
    if value is None:
        return None
    if not isinstance(value, (int, float)) or (isinstance(value, float) and not isfinite(value)):
        raise ValueError("elicitation timeout_ms must be a finite number")
    if value > _LONGEST_MS:
        raise ValueError("elicitation timeout_ms is too large; None means no limit")
    return max(0, int(value)) or int(value > 0)  # a part of a millisecond is a limit, 0 is none


def _checked_open_browser(value: object) -> object:
    if value is None or isinstance(value, bool) or (isinstance(value, str) and value == "ask"):
        return value
    raise ValueError('elicitation open_browser must be a boolean, "ask" or None')


def _checked_modes(value: Any) -> frozenset[str] | None:
    if value is None:
        return None
    try:
        modes = frozenset((value,) if isinstance(value, str) else value)
    except TypeError:  # no collection, or one of what can't be a mode
        modes = frozenset()
    if not modes or not modes <= _MODES:
        raise ValueError('elicitation modes must be "url", "form" or both')
    return modes


def _checked_enabled(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("elicitation enabled must be True or False")
    return value


def _brief(value: object) -> str:
    """A wrong value for a message: short, and of other types only what they are (a mapping may hold secrets)."""
    if isinstance(value, str):
        return value if len(value) <= 40 else value[:40] + "..."
    return str(value) if value is None or isinstance(value, (int, float)) else f"a {type(value).__name__}"
