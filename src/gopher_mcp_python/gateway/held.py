"""A call that a person has to confirm, and what the caller is told of it.

The answer is a tool result: in its text for people and models, in `_meta` for programs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from ..display import safe_line, safe_text
from ..errors import UnsafeUrlError
from ..policy.asked import CONFIRMATION as META_KEY
from ..store.errors import RateLimited
from ..weburl import parse_web_url

__all__ = [
    "META_KEY",
    "UNKNOWN_BEFORE",
    "HeldCall",
    "Pending",
    "Unsuitable",
    "held",
    "page_address",
    "refused",
    "told",
    "unavailable",
    "unsuitable",
]

UNKNOWN_BEFORE = (
    "An earlier, confirmed call with the same arguments was begun, and its outcome is unknown: it may have run. It is "
    "not run again by itself. "
)


class Unsuitable(Exception):
    """No confirmation can be about these arguments."""


@dataclass(frozen=True)
class HeldCall:
    """A call that needs a confirmation.

    Attributes:
        shown: the tool's name as the client calls it.
        plain: whether the result may hold structured content (the tool declares none of its own).
    """

    caller: str
    server: str
    tool: str
    shown: str
    arguments: Mapping[str, Any] = field(repr=False)
    plain: bool = True

    def question(self, before: str = "") -> str:
        """What a person is asked: everything that the call does, nothing of it cut, nothing that drives a screen."""
        text = json.dumps(self.arguments, indent=2, ensure_ascii=False)
        return (
            f"{before}Run {safe_line(self.tool)} on {safe_line(self.server)}? It may change or delete something.\n\n"
            f"Tool: {safe_text(self.tool, limit=len(self.tool))}\nServer: {safe_text(self.server)}\n"
            f"Arguments:\n{safe_text(text, limit=len(text))}"
        )


@dataclass(frozen=True)
class Pending:
    """A confirmation that waits, and why it was asked for again, if it was."""

    id: str
    expires_at: datetime
    before: str = ""


def told(call: HeldCall, status: str, text: str, pending: Pending | None = None, **more: Any) -> dict[str, Any]:
    """A tool result that says why nothing ran, for people and models in the text, for programs in `_meta` (and in the
    structured content, where the tool's own schema does not rule)."""
    facts: dict[str, Any] = {"status": status, "tool": call.tool, "server": call.server, **more}
    if pending is not None:
        facts |= {"id": pending.id, "expiresAt": pending.expires_at.isoformat()}
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": True, "_meta": {META_KEY: facts}}
    if call.plain:
        result["structuredContent"] = {META_KEY: facts}
    return result


def held(call: HeldCall, pending: Pending, confirm_at: str = "") -> dict[str, Any]:
    """The answer to a call that waits for its confirmation.

    Args:
        confirm_at: the address of the page where a person confirms; "": none is named.
    """
    status = "unknown" if pending.before else "held"
    where = f" (at {confirm_at})" if confirm_at else ""
    more = {"confirmAt": confirm_at} if confirm_at else {}
    return told(
        call,
        status,
        f"{pending.before}Held: {call.shown} may change or delete something, so a person has to confirm it first. "
        f"Nothing was run. When the confirmation {pending.id} has been accepted{where}, call {call.shown} again with "
        "exactly the same arguments.",
        pending,
        **more,
    )


def page_address(url: str) -> str:
    """The address of the page where people confirm, as it is told to callers.

    Raises ValueError (never with the URL) for what is no http or https URL, or holds a password.
    """
    try:
        page = parse_web_url(url)
    except UnsafeUrlError as error:
        raise ValueError(f"the address of the page for confirmations can't be used: {error}") from None
    if "@" in urlsplit(page.href).netloc:
        raise ValueError("the address of the page for confirmations holds a name or password, which callers would see")
    return page.href


def unsuitable(call: HeldCall) -> dict[str, Any]:
    """The answer for arguments that no confirmation can be about."""
    text = (
        f"{call.shown} has to be confirmed by a person, and its arguments are too large or too deeply nested for that, "
        "or hold a number that JSON has not. It was not run."
    )
    return told(call, "unsuitable", text)


def unavailable(call: HeldCall, error: Exception) -> dict[str, Any]:
    """The answer when the store can't be used: closed, not open."""
    if isinstance(error, RateLimited):
        text = f"Too many confirmations were asked for; {call.shown} was not run. Try again in {error.retry_after_s} s."
        return told(call, "rate_limited", text, retryAfter=error.retry_after_s)
    text = f"The store of confirmations can't be used, so {call.shown} was not run: nothing runs without it."
    return told(call, "unavailable", text)


REASONS = {
    "declined": "A person declined this call. It was not run.",
    "expired": "The approval of this call has expired. It was not run; call again to ask anew.",
    "used": "The approval of this call was used already. It was not run again; call again to ask anew.",
    "unknown": UNKNOWN_BEFORE + "Call again to ask for another confirmation.",
    "mismatch": "The approval is for another call. Nothing was run.",
}


def refused(call: HeldCall, state: str) -> dict[str, Any]:
    """The answer to a call whose confirmation was no yes, or is one no longer."""
    status = {"cancelled": "declined", "failed": "declined", "absent": "expired"}.get(state, state)
    return told(call, status, REASONS.get(status, "This call was not confirmed. It was not run."))
