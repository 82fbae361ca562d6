"""Signing in to MCP servers: who has a token, who gets a new one, and when a person is needed for it."""

from __future__ import annotations

import asyncio
import copy
import logging
import threading
import time
from collections.abc import Awaitable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from ..display import safe_line
from ..errors import AgentError
from ..sdk_import import load
from ..sdk_version import needed_for
from ..toolset.clock import PausableClock, standing_still
from ..toolset.errors import CallTimeoutError
from . import flights, grants
from .challenge import Challenge
from .debug import debug
from .errors import SignInError, Unreachable
from .flights import Flight
from .grants import Grant
from .keys import token_key
from .refusals import NothingOffered, RefreshRefused
from .stores import one_process

if TYPE_CHECKING:
    from ..oauth_options import GopherAgentOAuthOptions, GopherAgentTokenStore
    from .flow import Flow
    from .http import Http
    from .loopback import Callback

__all__ = ["MOST_TRIES", "Attempt", "ServerSignIn"]

_log = logging.getLogger("gopher_mcp_python.oauth")
# A request that was refused is made again so often at most: after a refresh, after a sign-in, after a step-up.
MOST_TRIES = 3
# Seconds that everything but the person may take in one renewal, all requests together.
FLOW_SECONDS = 60.0
# Seconds that the person may take unless `timeout_ms` says otherwise; authorization servers give up at about that time.
PERSON_SECONDS = 600.0


@dataclass
class Attempt:
    """One request on its way to a token, and what was tried for it already.

    Attributes:
        interactive: whether a person may be asked.
        began: when (in seconds of the monotonic clock).
        gave: the tokens that a refresh gave for it: one that is refused is not refreshed again.
        signed_in: whether somebody has signed in for it: a server that refuses that token, too, refuses for good.
    """

    interactive: bool
    began: float = field(default_factory=lambda: time.monotonic())
    gave: set[str | None] = field(default_factory=set)
    signed_in: bool = False


class ServerSignIn:
    """The token of one protected server. Used from any thread and event loop.

    Args:
        url: the server's address.
        label: what people know it by.
    """

    def __init__(self, url: str, label: str, options: GopherAgentOAuthOptions, store: GopherAgentTokenStore) -> None:
        self.label = safe_line(label, limit=100) or "the MCP server"
        self._url = url
        self._options = options
        self._store = store
        self._key = token_key(url, options)
        self._lock = threading.Lock()  # held for no longer than a look
        self._grant: Grant | None = None
        self._looked = False  # for what the store has
        self._given: dict[str, str] = {}  # by scope: the token that a step-up for it gave
        self._failures: dict[str, tuple[float, SignInError]] = {}  # the latest of each kind, and when (monotonic)

    async def current(self, *, renew: bool = True) -> Grant | None:
        """A token to try; None: there is none.

        Args:
            renew: refresh it first when it is over and can be.

        Raises SignInError when a refresh could not be tried.
        """
        if self._grant is None and not self._looked:  # once: a server that wants no token is asked all the time
            stored = await grants.load(self._store, self._key)
            with self._lock:
                if self._grant is None:  # else somebody has got another one meanwhile
                    self._grant = stored
                self._looked = True
        grant = self._grant
        if renew and grant is not None and grant.expired and grant.renewable:
            try:
                return await self._refresh(grant.token)
            except SignInError:
                if grant.over:
                    raise  # a little later it can be tried again
        return None if grant is None or grant.record is None else grant

    async def renewed(self, rejected: str | None, challenge: Challenge, attempt: Attempt) -> Grant | None:
        """A token instead of the one that was rejected; None: there is none to be had, so the refusal stands.

        Raises SignInError.
        """
        if challenge.step_up:
            return await self._stepped_up(rejected, challenge, attempt) if attempt.interactive else None
        if rejected is None or rejected not in attempt.gave:
            try:
                refreshed = await self._refresh(rejected)
            except Unreachable:  # for good, perhaps: a sign-in asks anew where it is
                if not attempt.interactive:
                    raise
                refreshed = None
            if refreshed is not None:
                attempt.gave.add(refreshed.token)
                return refreshed
        if attempt.signed_in or not (attempt.interactive or self._options.grant != "authorization_code"):
            return None
        attempt.signed_in = True
        try:
            return await self._ask_once("sign-in", rejected, challenge, attempt)
        except NothingOffered as nothing:
            debug("no sign-in", server=self.label, reason=nothing)
            return None

    async def _stepped_up(self, rejected: str | None, challenge: Challenge, attempt: Attempt) -> Grant | None:
        """A token for more. A server that refuses the very token that it asked for will go on doing so."""
        scope = " ".join(sorted((challenge.scope or "").split()))
        if rejected is not None and self._given.get(scope) == rejected:
            debug("step-up refused again", server=self.label)
            return None
        grant = await self._ask_once(f"step-up {scope}", rejected, challenge, attempt)
        if grant is not None and grant.token is not None:
            with self._lock:
                self._given[scope] = grant.token
        return grant

    async def _ask_once(
        self, kind: str, rejected: str | None, challenge: Challenge, attempt: Attempt
    ) -> Grant | None:
        """A person who says no, says so to every request that was under way then."""
        failed = self._failures.get(kind)
        if failed is not None and failed[0] >= attempt.began:
            raise copy.copy(failed[1])
        try:
            with standing_still():  # the person's time counts against nobody's limit
                return await self._fly(kind, lambda flight: self._sign_in(rejected, challenge))
        except SignInError as error:
            self._failures[kind] = (time.monotonic(), copy.copy(error))
            raise

    async def _refresh(self, rejected: str | None) -> Grant | None:
        grant = await self._fly("refresh", lambda flight: self._refresh_once(flight, rejected))
        if grant is not None and grant.token is not None:  # what was refused to one token is refused to its next
            with self._lock:
                self._given = {scope: grant.token if old == rejected else old for scope, old in self._given.items()}
        return grant

    async def _fly(self, kind: str, main: flights.Main) -> Grant | None:
        store = getattr(self._store, "identity", id(self._store))
        try:
            grant: Grant | None = await flights.join((store, self._key, kind), main)
        except AgentError:
            raise
        except Exception as error:
            debug("unexpected", server=self.label, error=error)
            told = f"The sign-in to {self.label} failed ({type(error).__name__})"
            raise SignInError(f"{told}; GOPHER_MCP_OAUTH_DEBUG=1 and DEBUG tell more", "misconfigured") from None
        self._grant = grant
        return grant

    # ---- in a flight -----------------------------------------------------------------------------------------------

    async def _stored(self, rejected: str | None, scope: str = "") -> tuple[Grant | None, bool]:
        """What is stored, and whether it is what somebody else was faster to get, good for `scope`."""
        own = self._grant
        prior = own if own is not None and not own.kept else await grants.load(self._store, self._key)
        newer = prior is not None and prior.token not in (None, rejected) and not prior.expired
        return prior, newer and (not scope or prior is None or prior.covers(scope))

    async def _refresh_once(self, flight: Flight, rejected: str | None) -> Grant | None:
        prior, newer = await self._stored(rejected)
        if newer or prior is None or not prior.renewable:
            return prior if newer else None
        with needed_for("signing in to a server"):
            from .http import Http

        with flight.unbreakable():
            async with one_process(self._store), Http(self._url) as http:
                prior, newer = await self._stored(rejected)  # another process may have been at it
                if newer or prior is None or not prior.renewable:
                    return prior if newer else None
                return await self._timed(self._refreshed(prior, http), PausableClock(FLOW_SECONDS))

    async def _sign_in(self, rejected: str | None, challenge: Challenge) -> Grant | None:
        scope = (challenge.scope or "") if challenge.step_up else ""
        prior, newer = await self._stored(rejected, scope)
        if newer:
            return prior
        if self._options.grant != "authorization_code":
            return await self._got(prior, challenge, by_person=False)
        async with flights.alone():
            prior, newer = await self._stored(rejected, scope)  # the one before may have been for this server
            return prior if newer else await self._got(prior, challenge, by_person=True)

    async def _got(self, prior: Grant | None, challenge: Challenge, *, by_person: bool) -> Grant | None:
        with needed_for("signing in to a server"):
            load("gopher_mcp_python.oauth.flow")
            from .flow import Flow
            from .http import Http

        clock = PausableClock(FLOW_SECONDS)
        async with Http(self._url) as http:
            flow = Flow(self._url, self._options, prior, http)
            way = self._with_person(flow, prior, challenge, clock) if by_person else self._by_itself(flow, challenge)
            grant = await self._timed(way, clock)
        debug("signed in", server=self.label, scopes=grant.record.scope if grant and grant.record else None)
        return grant

    async def _by_itself(self, flow: Flow, challenge: Challenge) -> Grant:
        return await self._keep(await flow.sign_in(challenge, None, _nobody))

    async def _timed(self, renewal: Awaitable[Grant | None], clock: PausableClock) -> Grant | None:
        from ..toolset.alarm import limited

        try:
            return await limited(renewal, clock)
        except CallTimeoutError:
            raise SignInError(
                f"The sign-in to {self.label} took longer than {FLOW_SECONDS:.0f} s without the person's time",
                "unavailable",
            ) from None

    async def _refreshed(self, prior: Grant, http: Http) -> Grant | None:
        """None when the refresh token is not good any more and nobody has put another one into the store."""
        load("gopher_mcp_python.oauth.flow")
        from .flow import Flow

        try:
            grant = await Flow(self._url, self._options, prior, http).refresh()
        except RefreshRefused as refused:
            debug("refresh refused", server=self.label, error=refused)
            self._grant = None
            again, newer = await self._stored(prior.token)
            if newer:
                return again  # another process has refreshed it
            await self._forget(client=refused.client_unknown)
            return None
        grant = await self._keep(grant)
        debug("refreshed", server=self.label)
        return grant

    async def _with_person(self, flow: Flow, prior: Grant | None, challenge: Challenge, clock: PausableClock) -> Grant:
        callback = await self._listen(prior)
        asked = False

        async def person(url: str) -> tuple[str, str | None, str | None]:
            nonlocal asked
            asked = True
            clock.pause()
            try:
                return await self._ask(url, callback)
            finally:
                clock.resume()

        try:
            grant = await self._keep(await flow.sign_in(challenge, callback.redirect_uri, person))
        except BaseException as error:
            text = str(error) if isinstance(error, SignInError) else "The sign-in was given up."
            await asyncio.shield(callback.finish(False, text))
            if asked and not challenge.step_up and prior is not None and prior.client is not None:
                # A provider that does not know the client any more shows that to the person only.
                await self._forget(token=False, client=True)
            raise
        await callback.finish(True, f"You are signed in to {self.label}.")
        return grant

    async def _listen(self, prior: Grant | None) -> Callback:
        """At the address that the client is registered with where that is free: else it would register anew."""
        from .loopback import Callback

        if self._options.redirect_uri is None and prior is not None and prior.client is not None:
            for uri in prior.client.get("redirect_uris", ())[:1]:
                try:
                    return await Callback.listen(str(uri))
                except SignInError:
                    break
        return await Callback.listen(self._options.redirect_uri)

    async def _ask(self, url: str, callback: Callback) -> tuple[str, str | None, str | None]:
        from .person import ask_to_sign_in

        state = parse_qs(urlsplit(url).query).get("state", [""])[0]
        limit = self._options.timeout_ms
        redirect = await ask_to_sign_in(
            url,
            callback,
            state,
            server=self.label,
            open_browser=self._options.open_browser,
            timeout=PERSON_SECONDS if limit is None else limit / 1000,
            elsewhere=self._options.redirect_uri is not None,
        )
        return redirect.code or "", state, redirect.iss

    async def _keep(self, grant: Grant) -> Grant:
        """Into the store. Where that fails the token is still good for this agent: it goes on, and the log says so."""
        try:
            await grants.save(self._store, self._key, grant)
        except SignInError as error:
            _log.warning("%s; the token for %s is good for this agent only", error, self.label)
            return replace(grant, kept=False)
        return grant

    async def _forget(self, *, token: bool = True, client: bool) -> None:
        """Out of the store. Where that fails it is found worthless once more, which is no reason to stop here."""
        try:
            await grants.forget(self._store, self._key, token=token, client=client)
        except SignInError as error:
            debug("not forgotten", server=self.label, error=error)


async def _nobody(url: str) -> tuple[str, str | None, str | None]:
    raise SignInError("A person was to be asked, but the grant is another one", "misconfigured")
