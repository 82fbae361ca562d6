"""Asking the person to sign in: in the browser, or elsewhere with the last address pasted here."""

from __future__ import annotations

import asyncio

from ..display import safe_line
from ..errors import UnsafeUrlError
from ..handlers.dialogue import duration
from ..redaction import redact_text
from ..weburl import parse_web_url
from .debug import debug
from .errors import Reason, SignInError
from .loopback import Callback
from .prompt import Ask, Prompt
from .redirect import Redirect

__all__ = ["ask_to_sign_in"]

# RFC 6749 4.1.2.1, OpenID Connect Core 3.1.2.6: what error codes mean for the person.
_DENIED = frozenset(
    "access_denied login_required consent_required interaction_required account_selection_required".split()
)
_UNAVAILABLE = frozenset(("server_error", "temporarily_unavailable"))


async def ask_to_sign_in(
    url: str,
    callback: Callback,
    state: str,
    *,
    server: str,
    open_browser: bool | None,
    timeout: float,
    elsewhere: bool,
) -> Redirect:
    """Shows the sign-in page's URL, opens it, and waits for the way back: whichever comes first of the redirect on the
    loopback, an address that the person pastes, "cancel", and the end of the time.

    Args:
        url: The authorization request.
        callback: Listens on the redirect URI in it. Stays open: `finish` it with what became of the sign-in.
        state: The state in the URL.
        server: The MCP server, as the person knows it.
        open_browser: None or True: open the page where that is possible; False: only print it.
        timeout: Time for the person (in seconds), from the moment at which everything is shown; 0: no limit.
        elsewhere: The caller has a way for a browser of another machine to come back (a forwarded port): wait though
            there is neither a terminal nor a browser here.

    Returns:
        The redirect, with a code.

    Raises:
        SignInError: "denied", "refused" or "unavailable" by what the authorization server answered; "unavailable" when
            there is nobody to ask; "cancelled"; "timeout"; "misconfigured" for a URL that must not be opened.
    """
    server = safe_line(server, limit=100) or "An MCP server"
    try:
        page = parse_web_url(url)
    except UnsafeUrlError as reason:
        raise SignInError(f"The sign-in page that {server} names is not opened: {reason}.", "misconfigured") from None
    callback.expect(state)
    waits = elsewhere or open_browser is False
    asked = _Asked(Ask(server, page, open_browser=open_browser, waits=waits, timeout=max(0.0, timeout)), callback, url)
    debug("asking for a sign-in", server=server, host=page.host, open_browser=open_browser, elsewhere=elsewhere)
    try:
        how = await asked.until_over()
    finally:
        asked.end()
    redirect = callback.redirect
    if redirect is None:
        debug("no sign-in", how=how)
        raise _no_sign_in(how, server, timeout)
    return _judged(redirect, server, state)


class _Asked:
    """A sign-in that is under way: a prompt on its thread, the listener and a time limit on the loop."""

    def __init__(self, ask: Ask, callback: Callback, url: str) -> None:
        self._ask = ask
        self._callback = callback
        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Future[str] = self._loop.create_future()
        self._timer: asyncio.TimerHandle | None = None
        feed = lambda pasted: callback.feed(pasted, sign_in_url=url)  # noqa: E731
        began = lambda: self._on_loop(self._start_clock)  # noqa: E731
        ended = lambda how: self._on_loop(self._prompt_ended, how)  # noqa: E731
        self._prompt = Prompt(ask, feed, began, ended)

    async def until_over(self) -> str:
        """How it went when there is no redirect; any text when there is one."""
        self._callback.notify(self._came_back)
        try:
            self._prompt.start()
        except RuntimeError:
            return "nobody: no thread could be started to ask anybody"
        return await self._over

    def end(self) -> None:
        """Gives everything back that was taken, whatever the moment."""
        self._callback.notify(None)
        if self._timer is not None:
            self._timer.cancel()
        self._prompt.stop(finished=self._callback.redirect is not None)

    def _came_back(self) -> None:
        self._settle("redirect" if self._callback.redirect is not None else "cancelled")

    def _start_clock(self) -> None:
        if self._ask.timeout and not self._over.done():
            self._timer = self._loop.call_later(self._ask.timeout, self._settle, "timeout")

    def _prompt_ended(self, how: str) -> None:
        if how not in ("waits", "taken", "withdrawn"):
            self._settle(how)

    def _settle(self, how: str) -> None:
        if not self._over.done():
            self._over.set_result(how)

    def _on_loop(self, call: object, *arguments: str) -> None:
        try:
            self._loop.call_soon_threadsafe(call, *arguments)  # type: ignore[arg-type]
        except RuntimeError:  # the loop is closed: nobody waits
            pass


def _no_sign_in(how: str, server: str, timeout: float) -> SignInError:
    if how == "timeout":
        text = f"Nobody finished the sign-in to {server} within {duration(timeout)}. Run it again and sign in."
        return SignInError(text, "timeout")
    if how.startswith("nobody: "):
        return SignInError(
            f"{server} wants a sign-in, and there is nobody here who could do it: {safe_line(how[8:], limit=300)}. "
            "Sign in once from a terminal with a token store that keeps it (keyring or file), or pass an access token, "
            "or, where a browser elsewhere can reach this machine (a forwarded port), name a redirect_uri.",
            "unavailable",
        )
    return SignInError(f"The sign-in to {server} was cancelled. Run it again to sign in.", "cancelled")


def _judged(redirect: Redirect, server: str, state: str) -> Redirect:
    """The redirect when it has a code. Raises SignInError for an error, whose text may quote the state."""
    if redirect.error is None and redirect.code is not None:
        return redirect
    if redirect.error is None:
        text = f"The authorization server of {server} sent the browser back with neither a code nor an error."
        raise SignInError(f"{text} It does not answer as OAuth 2.0 says.", "refused")
    code = safe_line(redact_text(redirect.error), limit=60)
    said = safe_line(redact_text((redirect.error_description or "").replace(state, "<redacted>")), limit=200)
    detail = f'{code}: "{said}"' if said else code
    reason = _reason_of(redirect.error)
    if reason == "denied":
        text = f"The sign-in to {server} was denied ({detail}). Run it again and allow the access."
    elif reason == "unavailable":
        text = f"The authorization server of {server} can't sign anybody in now ({detail}). Try again later."
    else:
        text = f"The authorization server of {server} refused the sign-in ({detail})."
    raise SignInError(text, reason)


def _reason_of(error: str) -> Reason:
    if error in _DENIED:
        return "denied"
    return "unavailable" if error in _UNAVAILABLE else "refused"
