"""From a server's request to an answer: which handler runs, for how long, and what its failures mean.

Engines use `Elicitor`, one per agent. The functions below it do the same for a single request and keep the names of the
published package.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import oauth_browser
from .answers import ACCEPT, CANCEL, CODE_OF, DECLINE, dispose_awaitable
from .elicitation import (
    GopherAgentElicitationHandler,
    GopherAgentElicitationOptions,
    GopherAgentElicitationRequest,
    GopherAgentElicitationResponse,
    normalize_elicitation_action,
    normalize_elicitation_options,
)
from .elicitor import Elicitor, Pending, fixed_action_of
from .handlers.prompts import PersonPrompt
from .handlers.terminal import ReadLine, UrlPrompt
from .handlers.terminal_prompt import TerminalPrompt
from .handlers.watch import Watch
from .redaction import redact_url

__all__ = [
    "ELICITATION_ACTION_ACCEPT",
    "ELICITATION_ACTION_CANCEL",
    "ELICITATION_ACTION_DECLINE",
    "Elicitor",
    "Pending",
    "default_prompt",
    "default_url_elicitation_handler",
    "native_action_from_elicitation_action",
    "normalize_elicitation_action",
    "normalize_elicitation_options",
    "open_authorization_url",
    "redact_elicitation_url",
    "resolve_elicitation_action_sync",
    "set_elicitation_input_for_test",
    "terminal_prompt",
    "to_elicitation_request",
    "wait_for_oauth_completion_sync",
]

ELICITATION_ACTION_ACCEPT = ACCEPT
ELICITATION_ACTION_DECLINE = DECLINE
ELICITATION_ACTION_CANCEL = CANCEL

open_authorization_url = oauth_browser.open_authorization_url  # looked up here at each use: a program may replace it
_read_line: ReadLine | None = None


def default_prompt(open_browser: Any) -> UrlPrompt:
    """The terminal's prompt with this module's opener and source of lines, whatever they are now."""
    return UrlPrompt(open_browser, _open_page, _read_line)


def terminal_prompt(open_browser: Any) -> PersonPrompt:
    """The person at this process's terminal, with this module's opener and source of lines, whatever they are now."""
    return TerminalPrompt(open_browser, _open_page, _read_line)


def _open_page(url: str, open_browser: bool | None) -> dict[str, Any]:
    return open_authorization_url(url, open_browser)


def to_elicitation_request(request: Mapping[str, Any]) -> GopherAgentElicitationRequest:
    """A request from a mapping of its fields (snake_case or camelCase); missing ones are None, a missing mode is ""."""
    names = ("elicitation_id", "message", "url", "request_id_json", "raw_json", "raw_params_json")
    camel = ("elicitationId", "message", "url", "requestIdJson", "rawJson", "rawParamsJson")
    pairs = zip(names, camel, strict=True)
    values = [request[name] if name in request else request.get(other) for name, other in pairs]
    return GopherAgentElicitationRequest(request.get("mode") or "", *values)


def resolve_elicitation_action_sync(
    options: GopherAgentElicitationOptions | None, request: GopherAgentElicitationRequest
) -> str:
    """Runs the handler of `options`, or the default one, for one request and returns its action word.

    For programs that call it themselves: the handler's own exceptions pass, no limit is enforced on a custom handler.
    Raises RuntimeError when the handler is async, ValueError when its result is no action.
    """
    checked = options if options is not None else GopherAgentElicitationOptions()
    fixed = fixed_action_of(checked)
    if fixed is not None:
        return fixed
    handler = checked.handler if checked.handler is not None else default_url_elicitation_handler(checked)
    result = handler(request)
    if hasattr(type(result), "__await__"):
        dispose_awaitable(result)
        raise RuntimeError("Async MCP elicitation handlers are not supported; return the answer from a plain function")
    return normalize_elicitation_action(result)


def default_url_elicitation_handler(
    options: GopherAgentElicitationOptions | None = None,
) -> GopherAgentElicitationHandler:
    """The handler that is used when none is given: shows the page, opens it, waits for Enter. Declines other modes."""
    chosen = options if options is not None else GopherAgentElicitationOptions()

    def handler(request: GopherAgentElicitationRequest) -> GopherAgentElicitationResponse:
        prompt = default_prompt(chosen.open_browser)
        return GopherAgentElicitationResponse(prompt.ask(request, Watch.for_limit(chosen.timeout_ms)))

    return handler


def wait_for_oauth_completion_sync(timeout_ms: int | None = None) -> str:
    """Asks the person to press Enter when the sign-in is done; "accept" or "cancel"."""
    return default_prompt(False).wait_only(Watch.for_limit(timeout_ms))


def native_action_from_elicitation_action(action: str) -> int:
    """The number that the native library takes for an action word. Raises ValueError."""
    return CODE_OF[normalize_elicitation_action(action)]


def redact_elicitation_url(url: str) -> str:
    """A URL that can be logged: parameter values, user info and fragment are taken out."""
    return redact_url(url)


def set_elicitation_input_for_test(read_input: ReadLine | None) -> None:
    """Replaces the terminal as the source of lines for the default handler; None brings it back. For tests."""
    global _read_line
    _read_line = read_input
