"""Actions, their numbers, and what a handler's result means as an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .elicitation import (
    GopherAgentElicitationRequest,
    GopherAgentElicitationResponse,
    normalize_elicitation_action,
)

__all__ = ["ACCEPT", "ACTION_OF", "CANCEL", "CODE_OF", "DECLINE", "Answer", "answer_of", "dispose_awaitable", "wait_of"]

ACCEPT, DECLINE, CANCEL = 1, 2, 3  # as the native library numbers them; only these three may ever be returned to it
CODE_OF = {"accept": ACCEPT, "decline": DECLINE, "cancel": CANCEL}
ACTION_OF = {code: action for action, code in CODE_OF.items()}
Answer = tuple[int, "Mapping[str, Any] | None"]


def answer_of(result: object, request: GopherAgentElicitationRequest) -> Answer:
    """A handler's result as an answer. Raises TypeError or ValueError when it is none."""
    if hasattr(type(result), "__await__"):
        dispose_awaitable(result)
        raise TypeError("the elicitation handler returned an awaitable; async handlers are not supported here")
    if isinstance(result, GopherAgentElicitationResponse):
        action, content = normalize_elicitation_action(result), result.content
    elif isinstance(result, str):
        action, content = normalize_elicitation_action(result), None
    else:
        raise TypeError(
            f"the elicitation handler returned {type(result).__name__}; return a GopherAgentElicitationResponse "
            'or "accept", "decline" or "cancel"'
        )
    if action != "accept" or request.mode != "form":
        return CODE_OF[action], None
    return CODE_OF[action], _form_content(content, request.requested_schema)


def _form_content(content: Mapping[str, Any] | None, schema: Any) -> Mapping[str, Any]:
    """What an accepted form sends: the answers as the server's schema allows them; none is ever invented.

    Raises FormContentError (a ValueError), which names fields and rules, never values.
    """
    from .forms import FormContentError, read_form

    try:
        return read_form(schema).validate({} if content is None else content)
    except FormContentError as error:
        before = "the elicitation handler accepted a form with answers that it does not allow: "
        raise FormContentError(error.errors, error.general, before=before) from None


def wait_of(result: object) -> Callable[[], Any] | None:
    """How to wait for the person to finish the page that a handler's result accepts; None: they have."""
    return result.finished if isinstance(result, GopherAgentElicitationResponse) else None


def dispose_awaitable(result: Any) -> None:
    """A coroutine is closed, so that nothing warns that it was never awaited; a task or future is cancelled."""
    for name in ("close", "cancel"):
        method = getattr(result, name, None)
        if callable(method):
            try:
                method()
            except Exception:  # it refuses to end; it is not ours
                continue
            return
