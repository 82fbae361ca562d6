"""Getting a token: the MCP SDK's OAuth client does it, driven from outside.

Its `async_auth_flow` yields each request that it wants sent (discovery, registration, token), so whoever sends them
sees every step. That is how the parts that it lacks come in: time and size limits, the registration's authentication
method, nothing kept unless everything went well, and errors that say which server refused what.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl

from ..oauth_options import GopherAgentTokenRecord
from ..toolset.quiet import hush
from .challenge import Challenge
from .clients import check_pkce, choose_method, known_client, machine, method_for
from .errors import SignInError
from .grants import EARLY_SECONDS, Grant
from .http import Http, host_of
from .refusals import NothingOffered, RefreshRefused, in_trouble, is_registration, offers_nothing, refusal
from .replies import fitting

if TYPE_CHECKING:
    from ..oauth_options import GopherAgentOAuthOptions

__all__ = ["Flow", "Person"]

#: Sends the person to a page and returns (code, state, iss) of the way back.
Person = Callable[[str], Awaitable[tuple[str, str | None, str | None]]]
# The MCP version that a request names which has none of its own; with 2025-06-18 resource indicators came.
_PROTOCOL = "2025-11-25"


class _Ended(Exception):
    """The person's part has failed. Goes through the SDK, which logs what it sees, instead of the error itself."""


class _Staging:
    """The SDK's storage: what a flow begins with, and what it got. Nothing goes further until the flow is through."""

    def __init__(self, tokens: OAuthToken | None, client: OAuthClientInformationFull | None) -> None:
        self.tokens, self.client = tokens, client

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Flow:
    """One way to a token for one server.

    Args:
        url: the MCP server's address.
        prior: what is known of an earlier time; None: nothing.
        http: sends the requests.
    """

    def __init__(self, url: str, options: GopherAgentOAuthOptions, prior: Grant | None, http: Http) -> None:
        hush()  # the SDK logs replies that it can't read
        self._url = url
        self._options = options
        self._prior = prior
        self._http = http
        self._own_issuer: str | None = None
        self._ended: SignInError | None = None
        self._is_described = False

    # ---- signing in ------------------------------------------------------------------------------------------------

    async def sign_in(self, challenge: Challenge, redirect_uri: str | None, person: Person) -> Grant:
        """A new token, after what `challenge` asks for. Raises SignInError."""
        self._is_described = challenge.resource_metadata is not None
        client = known_client(self._options, self._prior, redirect_uri)
        staging = _Staging(self._prior_tokens() if challenge.step_up else None, client)
        provider = self._provider(staging, redirect_uri, person)
        await self._drive(provider, _refused(self._request(), challenge, self._options.scopes))
        return self._grant(provider, staging)

    def _provider(self, staging: _Staging, redirect_uri: str | None, person: Person) -> OAuthClientProvider:
        if self._options.grant == "client_credentials":
            return machine(self._url, staging, self._options)
        if self._options.assertion is not None:
            from .assertion import AssertionProvider

            return AssertionProvider(self._url, staging, self._options.assertion, self._settle)
        pages: list[str] = []

        async def redirect(url: str) -> None:
            self._http.keep_secret(*parse_qs(urlsplit(url).query).get("state", ()), self._options.client_secret)
            pages.append(_one_query(url))

        async def come_back() -> AuthorizationCodeResult:
            try:
                self._name_issuer(provider.context)
                self._check_issuer(provider.context.oauth_metadata)
                self._check_discovered(provider.context)
                self._http.refuse_unencrypted(pages[-1])
                check_pkce(provider)
                choose_method(provider)
                code, state, iss = await person(pages[-1])
            except SignInError as error:
                self._ended = error
                raise _Ended from None
            self._http.came_back()
            self._http.keep_secret(code)
            return AuthorizationCodeResult(code=code, state=state, iss=iss)

        metadata = OAuthClientMetadata(
            client_name=self._options.client_name or "gopher-mcp-python",
            redirect_uris=[AnyUrl(redirect_uri or "http://127.0.0.1/callback")],
        )
        provider = OAuthClientProvider(
            self._url, metadata, staging, redirect, come_back, self._options.client_metadata_url
        )
        return provider

    def _settle(self, provider: OAuthClientProvider) -> None:
        """Nothing is asked of an identity provider for an authorization server that is not the right one."""
        self._check_issuer(provider.context.oauth_metadata)
        self._check_discovered(provider.context)
        choose_method(provider)

    # ---- refreshing ------------------------------------------------------------------------------------------------

    async def refresh(self) -> Grant:
        """A new token for the prior one's refresh token, which stays where the reply has none (RFC 6749 section 6).

        Raises RefreshRefused when it is not good any more, SignInError when it could not be tried.
        """
        prior = self._prior
        assert prior is not None and prior.renewable
        try:
            client = OAuthClientInformationFull.model_validate(prior.client)
            metadata = OAuthMetadata.model_validate(prior.server) if prior.server else None
        except ValueError:
            raise RefreshRefused("What is stored of the client is damaged", "misconfigured", "invalid_client") from None
        staging = _Staging(self._prior_tokens(), client)
        provider = OAuthClientProvider(
            self._url, OAuthClientMetadata(redirect_uris=[AnyUrl("http://127.0.0.1/callback")]), staging
        )
        context = provider.context
        context.token_expiry_time = 1.0  # over, whatever the server said: that is why we are here
        context.oauth_metadata = metadata
        if prior.resource:
            issuer = str(prior.server["issuer"]) if prior.server else self._url
            context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(
                {"resource": prior.resource, "authorization_servers": [issuer]}
            )
        await self._drive(provider, None)
        answer = self._http.answer
        if context.current_tokens is None:
            final = answer is not None and answer.status_code >= 400 and not in_trouble(answer.status_code)
            raise refusal(self._http, RefreshRefused if final else None)
        return self._grant(provider, staging)

    def _prior_tokens(self) -> OAuthToken | None:
        record = self._prior.record if self._prior is not None else None
        if record is None:
            return None
        return OAuthToken(access_token=record.access_token, refresh_token=record.refresh_token, scope=record.scope)

    # ---- both ------------------------------------------------------------------------------------------------------

    def _request(self) -> httpx2.Request:
        return httpx2.Request("POST", self._url, headers={"MCP-Protocol-Version": _PROTOCOL})

    async def _drive(self, provider: OAuthClientProvider, refused: httpx2.Response | None) -> None:
        """Sends what the flow wants sent. The MCP request itself is never sent: `refused` is its answer (None: it need
        not be asked), and when the flow wants it sent after that, it is through."""
        request = refused.request if refused is not None else self._request()
        steps = provider.async_auth_flow(request)
        try:
            wanted = await anext(steps)
            while True:
                if wanted is request:
                    if refused is None:
                        return
                    answer, refused = refused, None
                else:
                    if wanted.method == "POST":
                        self._check_issuer(provider.context.oauth_metadata)
                        self._check_discovered(provider.context)
                    answer = await self._http.send(self._completed(wanted, provider.context.oauth_metadata))
                    if provider.context.oauth_metadata is None and offers_nothing(self._http):
                        raise self._nothing()
                    answer = self._readable(fitting(answer), provider.context)
                wanted = await steps.asend(answer)
        except (SignInError, StopAsyncIteration):
            raise
        except Exception as error:  # its text may hold a server's reply, or the state of the sign-in
            raise self._masked(self._ended or refusal(self._http, None, error)) from None
        finally:
            await steps.aclose()

    def _nothing(self) -> SignInError:
        host = host_of(self._url)
        if self._is_described:
            return SignInError(f"{host} says where its sign-in is described, but that can't be read", "misconfigured")
        return NothingOffered(f"{host} offers no way to sign in")

    def _masked(self, error: SignInError) -> SignInError:
        error.message = self._http.masked(error.message)
        error.args = (error.message,)
        return error

    def _check_discovered(self, context: OAuthContext) -> None:
        """The MCP server's own endpoints (2025-03-26) are no substitute for an authorization server that it names: what
        is meant for that one, a code or a secret, would be sent to this one."""
        if context.auth_server_url is None or context.oauth_metadata is not None:
            return
        why = "can't describe itself now" if self._http.unwell else "does not describe itself as one (RFC 8414)"
        raise SignInError(
            f"{host_of(self._url)} names {host_of(context.auth_server_url)} as its authorization server, which {why}",
            "unavailable" if self._http.unwell else "misconfigured",
        )

    def _check_issuer(self, metadata: OAuthMetadata | None) -> None:
        """Credentials and people go to the server that the caller named, whatever the MCP server says."""
        wanted = self._options.issuer
        if wanted is None:
            return
        if metadata is None or str(metadata.issuer).rstrip("/") != wanted.rstrip("/"):
            raise SignInError(
                f"{host_of(self._url)} leads to another authorization server than the oauth option issuer names "
                f"({host_of(wanted)}): nothing was opened, and the client's credentials were not sent",
                "misconfigured",
            )

    def _completed(self, request: httpx2.Request, metadata: OAuthMetadata | None) -> httpx2.Request:
        """A registration names the authentication method that the server can do; other requests are as they are."""
        if not is_registration(request):
            return request
        if metadata is not None and metadata.registration_endpoint is None:
            raise SignInError(
                f"{host_of(str(metadata.issuer))} does not register programs by itself. Register this one there and "
                'give its id: oauth={"client_id": ...}, or --client-id on the command line',
                "misconfigured",
            )
        body = json.loads(request.content)
        body.setdefault("token_endpoint_auth_method", method_for(metadata))
        return httpx2.Request("POST", request.url, json=body)

    def _readable(self, answer: httpx2.Response, context: OAuthContext) -> httpx2.Response:
        """With 2025-03-26 an MCP server is its own authorization server, described at its origin, and nothing was said
        of the issuer: one of the same origin is shown to the SDK as the origin itself, which it expects."""
        url = answer.request.url
        if context.auth_server_url is not None or url.path != "/.well-known/oauth-authorization-server":
            return answer
        try:
            facts = json.loads(answer.content)
            named = httpx2.URL(facts["issuer"])
        except (TypeError, KeyError, ValueError, httpx2.InvalidURL):
            return answer
        if (named.scheme, named.netloc) != (url.scheme, url.netloc):
            return answer
        self._own_issuer = facts["issuer"]
        facts["issuer"] = str(url.copy_with(path="/", query=None))
        return httpx2.Response(answer.status_code, json=facts, request=answer.request)

    def _name_issuer(self, context: OAuthContext) -> None:
        """From here on its own name counts: the answer of the authorization server may hold it (RFC 9207)."""
        if self._own_issuer is not None and context.oauth_metadata is not None:
            facts = context.oauth_metadata.model_dump(mode="json", exclude_none=True)
            context.oauth_metadata = OAuthMetadata.model_validate({**facts, "issuer": self._own_issuer})

    def _grant(self, provider: OAuthClientProvider, staging: _Staging) -> Grant:
        tokens, context = staging.tokens, provider.context
        if tokens is None or context.current_tokens is None or not tokens.access_token:
            raise SignInError(f"{host_of(self._url)} gave no token", "refused")
        lasts = tokens.expires_in if tokens.expires_in and tokens.expires_in > 0 else None  # 0 is said by some, of all
        record = GopherAgentTokenRecord(
            tokens.access_token,
            tokens.token_type,
            tokens.refresh_token or None,
            None if lasts is None else time.time() + lasts,
            tokens.scope or None,
        )
        client = context.client_info
        kept = None if client is None else client.model_dump(mode="json", exclude_none=True)
        redirects = context.client_metadata.redirect_uris
        if kept is not None and redirects:
            kept.setdefault("redirect_uris", [str(uri) for uri in redirects])  # what it was registered with
        resource = context.get_resource_url() if context.should_include_resource_param(_PROTOCOL) else None
        early = EARLY_SECONDS if lasts is None else min(EARLY_SECONDS, lasts / 10)
        return Grant(record, kept, _endpoints(context.oauth_metadata), resource, early)


def _endpoints(metadata: OAuthMetadata | None) -> dict[str, Any] | None:
    if metadata is None:
        return None
    names = {"issuer", "authorization_endpoint", "token_endpoint", "revocation_endpoint"}
    kept: dict[str, Any] = metadata.model_dump(mode="json", include=names, exclude_none=True)
    return kept


def _refused(request: httpx2.Request, challenge: Challenge, scopes: list[str] | None) -> httpx2.Response:
    """The server's refusal, with nothing in it but what we read there. Scopes of the caller's come before those that a
    server asks for, except where a token turned out to be good for too little."""
    wanted = challenge.scope if challenge.step_up or scopes is None else " ".join(scopes)
    parts = ['error="insufficient_scope"'] if challenge.step_up else []
    for name, value in (("resource_metadata", challenge.resource_metadata), ("scope", wanted)):
        if value:
            cleaned = value.replace("\\", "").replace('"', "")
            parts.append(f'{name}="{cleaned}"')
    header = f"Bearer {', '.join(parts)}".encode("ascii", "ignore").decode()
    return httpx2.Response(challenge.status, headers={"WWW-Authenticate": header}, request=request)


def _one_query(url: str) -> str:
    """The page's address when its endpoint has a query of its own, which stays (RFC 6749 section 3.1)."""
    before, mark, after = url.partition("?response_type=")
    return f"{before}&response_type={after}" if mark and "?" in before else url
