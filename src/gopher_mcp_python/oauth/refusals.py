"""Why a renewal failed, as an error that names the server and the step and holds nothing secret."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ..display import safe_line
from ..redaction import redact_text
from .errors import Reason, SignInError

if TYPE_CHECKING:
    import httpx2

    from .http import Http

__all__ = ["NothingOffered", "RefreshRefused", "in_trouble", "is_registration", "offers_nothing", "refusal"]

_LONGEST = 200  # characters of a server's own words


def is_registration(request: httpx2.Request) -> bool:
    """Whether a request of the flow registers the client; its other POSTs ask for a token."""
    return request.method == "POST" and request.headers.get("content-type") == "application/json"


def in_trouble(status: int) -> bool:
    """Whether an HTTP status says that the server can't answer now, and nothing of what it was asked."""
    return status >= 500 or status == 429


class RefreshRefused(SignInError):
    """The refresh token is not good any more: only a new sign-in helps.

    Attributes:
        error: the OAuth error code (RFC 6749 section 5.2), where the server told one.
    """

    def __init__(self, message: str, reason: Reason = "refused", error: str | None = None) -> None:
        super().__init__(message, reason)
        self.error = error

    @property
    def client_unknown(self) -> bool:
        """Whether the server does not know the client any more, so that it has to be registered anew."""
        return self.error in ("invalid_client", "unauthorized_client")


class NothingOffered(SignInError):
    """The server describes no way to sign in, and is none itself: its own refusal is all there is to tell."""


def offers_nothing(http: Http) -> bool:
    """Whether a registration that was tried at a server without any description (2025-03-26) met no OAuth server."""
    request, answer = http.last, http.answer
    if request is None or answer is None or not is_registration(request):
        return False
    return answer.status_code in (401, 403, 404, 405) or (answer.status_code < 500 and not _is_json(answer))


def _is_json(answer: httpx2.Response) -> bool:
    try:
        return isinstance(json.loads(answer.content), dict)
    except ValueError:
        return False


def refusal(http: Http, kind: type[SignInError] | None = None, cause: Exception | None = None) -> SignInError:
    """The error for a flow that ended at the last request of `http`; `cause` is what the SDK raised."""
    from .http import host_of

    request, answer = http.last, http.answer
    if request is None:
        return (kind or SignInError)(f"The sign-in could not begin ({_name(cause)})", "misconfigured")
    host, step = host_of(str(request.url)), _step(request)
    if http.browser_was_last:
        return SignInError(f"The answer that the browser brought can't be used{_why(cause)}", "refused")
    if answer is None:
        return (kind or SignInError)(f"{host} gave no answer to the {step}", "unavailable")
    if answer.status_code < 300:
        return (kind or SignInError)(f"The {step} of {host} can't be used{_why(cause)}", "misconfigured")
    told = [http.masked(text) for text in _told(answer)]
    reason: Reason = "unavailable" if in_trouble(answer.status_code) else "refused"
    text = f"{host} refused the {step} (HTTP status {answer.status_code}{': ' if told else ''}{', '.join(told)})"
    error = (kind or SignInError)(text, reason)
    if isinstance(error, RefreshRefused):
        error.error = told[0] if told else None
    return error


def _step(request: httpx2.Request) -> str:
    path = request.url.path
    if "oauth-protected-resource" in path:
        return "description of the protected resource"
    if request.method == "GET":
        return "description of the authorization server"
    if is_registration(request):
        return "client registration"
    return "request for a token"


def _told(answer: httpx2.Response) -> list[str]:
    """error and error_description (RFC 6749 section 5.2), as far as the server says so."""
    try:
        body = json.loads(answer.content)
        texts = [body[name] for name in ("error", "error_description") if isinstance(body.get(name), str)]
    except (AttributeError, TypeError, ValueError):
        texts = []
    return [safe_line(redact_text(text), limit=_LONGEST) for text in texts]


def _why(cause: Exception | None) -> str:
    """The SDK's own reason where it is about the servers' identities; all else of its texts may hold a reply."""
    text = str(cause)
    if "issuer mismatch" in text:
        return ": it names another issuer than the one that was asked (RFC 8414 section 3.3)"
    if "does not match expected" in text:
        return ": it describes another resource than the server (RFC 9728 section 3.3)"
    if "iss" in text and "authorization response" in text.lower():
        return ": the answer came from another issuer than the one that was asked (RFC 9207)"
    if "auth_method" in text:
        return ": it wants a kind of client authentication that a program on this machine can't do"
    return f" ({_name(cause)})" if cause is not None else ""


def _name(cause: Exception | None) -> str:
    return type(cause).__name__ if cause is not None else "nothing to send"
