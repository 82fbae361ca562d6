"""A small OAuth provider for one made-up account: an authorize page, a decision, and a way back to the mail server."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlencode

import anyio
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from . import ACCOUNT, page

CLIENT = "Demo Mail Agent"
_COOKIE = "demo_mail_page"

Verdict = Literal["allow", "deny"]


@dataclass
class Authorization:
    """One sign-in that was asked for: open until somebody decides, decided once."""

    state: str
    elicitation_id: str
    verdict: Verdict | None = None
    code: str | None = None
    _decided: anyio.Event = field(default_factory=anyio.Event)

    def decide(self, verdict: Verdict) -> None:
        """Settle it; the code that the provider hands back is made here."""
        self.verdict = verdict
        self.code = secrets.token_urlsafe(24) if verdict == "allow" else None

    def finish(self) -> None:
        """The browser is back from the provider: whoever waits for the sign-in goes on."""
        self._decided.set()

    async def wait(self) -> Verdict | None:
        """Wait until the browser is back; the verdict it brought."""
        await self._decided.wait()
        return self.verdict


class Provider:
    """Holds the open sign-ins and serves their pages."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._open: dict[str, Authorization] = {}

    def begin(self) -> Authorization:
        """Open a sign-in, with a state and an elicitation id that nobody can guess."""
        made = Authorization(state=secrets.token_urlsafe(24), elicitation_id=secrets.token_urlsafe(12))
        self._open[made.state] = made
        return made

    def find(self, state: str | None) -> Authorization | None:
        """The sign-in of this state, if there is one."""
        return self._open.get(state or "")

    def forget(self, authorization: Authorization) -> None:
        """The tool call is over: its page says so from now on."""
        self._open.pop(authorization.state, None)

    def url(self, base: str, authorization: Authorization) -> str:
        """The address that the person is asked to open."""
        query = {
            "response_type": "code",
            "client_id": "demo-mail-agent",
            "scope": "mail.profile",
            "redirect_uri": f"{base}/oauth/callback",
            "state": authorization.state,
        }
        return f"{base}/provider/authorize?{urlencode(query)}"

    def routes(self) -> list[Route]:
        """What the web server has to serve."""
        return [
            Route("/provider/authorize", self._authorize, methods=["GET"]),
            Route("/provider/decision", self._decision, methods=["POST"]),
            Route("/oauth/callback", self._callback, methods=["GET"]),
        ]

    def _proof(self, cookie: str, state: str) -> str:
        return hmac.new(self._key, f"{cookie}\0{state}".encode(), hashlib.sha256).hexdigest()

    async def _authorize(self, request: Request) -> Response:
        if not _is_loopback(request):
            return _refused()
        found = self.find(request.query_params.get("state"))
        if found is None:
            return _gone()
        if found.verdict is not None:
            return page.notice("Already decided", "This link was used before. You can close this page.", good=False)
        cookie = secrets.token_urlsafe(24)
        shown = page.consent(ACCOUNT, CLIENT, found.state, self._proof(cookie, found.state))
        shown.set_cookie(_COOKIE, cookie, max_age=900, path="/provider", httponly=True, samesite="strict")
        return shown

    async def _decision(self, request: Request) -> Response:
        if not _is_loopback(request) or not _is_same_origin(request):
            return _refused()
        async with request.form(max_files=0, max_fields=8) as form:
            state, proof, verdict = (str(form.get(name, "")) for name in ("state", "proof", "decision"))
        if not hmac.compare_digest(proof, self._proof(request.cookies.get(_COOKIE, ""), state)):
            return _refused()
        found = self.find(state)
        if found is None or found.verdict is not None:
            return _gone()
        found.decide("allow" if verdict == "allow" else "deny")
        back = {"state": state, "code": found.code} if found.code else {"state": state, "error": "access_denied"}
        return RedirectResponse(f"/oauth/callback?{urlencode(back)}", status_code=303)

    async def _callback(self, request: Request) -> Response:
        found = self.find(request.query_params.get("state"))
        if not _is_loopback(request) or found is None or found.verdict is None:
            return _gone()
        allowed = found.code is not None and hmac.compare_digest(request.query_params.get("code", ""), found.code)
        if found.verdict == "allow" and not allowed:
            return _refused()
        found.finish()
        if allowed:
            return page.notice("Access allowed", "Go back to your terminal: the tool call goes on there.", good=True)
        return page.notice("Access denied", "Nothing was shared. Go back to your terminal.", good=False)


def _is_loopback(request: Request) -> bool:
    """A name that was made to point here (DNS rebinding) is not served."""
    return (request.url.hostname or "") in {"127.0.0.1", "localhost", "::1"}


def _is_same_origin(request: Request) -> bool:
    origin = request.headers.get("origin")
    return origin is None or origin == f"{request.url.scheme}://{request.headers.get('host', '')}"


def _refused() -> Response:
    return page.notice("Not accepted", "Open the link from your terminal again.", good=False, status=403)


def _gone() -> Response:
    return page.notice("This link is over", "The tool call that asked for it has ended.", good=False, status=410)
