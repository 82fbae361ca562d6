"""A real OAuth 2.1 authorization server on loopback, for the tests of first-step sign-in.

    idp = IdentityProvider()              in this process, on a thread
    python -m tests.support.idp           as a process, with a protected server: one JSON line with their addresses

What it does is set by `idp.settings` at any moment; what happened stands in `idp.log`, without a secret in it. Every
code, token and client secret that it issues carries the canary's mark (tests/support/canary.py), so a leak fails the
test. It checks what a strict provider checks: exact redirect URIs (loopback IP addresses with any port, RFC 8252 7.3),
PKCE S256, codes once and soon, the client's registered authentication, resource indicators (RFC 8707), rotation with
reuse detection (a refresh token that comes twice revokes the whole grant).

Addresses in its answers are those by which it was asked (the Host header), so that it may stand behind a proxy.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import hmac
import html
import json
import logging
import secrets
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.support.canary import secret
from tests.support.hosting import Hold, Hosted

OAUTH, OIDC = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
_METHODS = ("none", "client_secret_basic", "client_secret_post")


@dataclass
class Settings:
    """What the provider does from now on."""

    # Where its metadata are: "oauth" (RFC 8414), "oidc-inserted" (well-known before the path), "oidc-appended" (after
    # it; the same as before it for an issuer without a path), "both" or "none".
    metadata: str = "oauth"
    issuer_path: str = ""  # such as "/tenant1"
    issuer_told: str | None = None  # the wrong issuer in the document
    pkce_methods: tuple[str, ...] | None = ("S256",)  # None: the document says nothing about PKCE
    scopes_supported: tuple[str, ...] | None = None
    auth_methods: tuple[str, ...] | None = _METHODS
    members: dict[str, Any] = field(default_factory=dict)  # put into the document last; None takes a member out
    # The person, and the page.
    consent: str = "auto"  # "auto" (Allow at once), "deny" (Deny at once), "page" (buttons)
    subject: str = "ada"
    pkce: str = "required"  # "required", "optional", "refused"
    loopback_ports: str = "free"  # "exact": a loopback redirect URI must have the registered port
    authorize_error: str | None = None  # an error for every authorization request, such as "server_error"
    state: str = "right"  # what the redirect carries: "right", "wrong", "missing"
    iss: str | None = "right"  # RFC 9207: "right", "wrong", None (neither sent nor promised)
    # Clients.
    registration: str = "on"  # "off" (not offered), "refused" (400), "forbidden" (403), "broken" (200, no client_id)
    registered_method: str | None = None  # assigned whatever was asked for; any text
    registered_id: str | None = None  # every registration gets this id, as where a program has one for all its users
    documents: bool = False  # client-ID metadata documents
    # Tokens. Lifetimes in seconds.
    token_format: str = "opaque"  # or "jwt"
    access_lifetime: float = 3600
    code_lifetime: float = 60
    refresh_lifetime: float = 86400
    expires_in: bool = True  # whether the reply says how long
    refresh: str = "always"  # "offline_access" (only with that scope), "never"
    refresh_reply: str = "rotate"  # "same" (the same token again), "omit" (no token in the reply; the old one stays)
    scope_reply: bool = True
    default_scopes: tuple[str, ...] = ("mcp",)  # for a request without scope
    grantable: tuple[str, ...] | None = None  # scopes beyond these are left out of the grant; None: all are granted
    need_resource: bool = False  # invalid_target for a request without a resource indicator
    token_error: str | None = None  # an error for every token request, such as "invalid_client"
    refresh_error: str | None = None  # same, only for refreshes
    reply_members: dict[str, Any] = field(default_factory=dict)  # put into token replies last; None takes one out
    # What error replies and error redirects say. "{secrets}" stands for what the client has sent: code, tokens, secret.
    error_description: str | None = None


@dataclass
class Client:
    """A registered client."""

    client_id: str
    redirect_uris: tuple[str, ...]
    method: str = "none"
    secret: str | None = field(default=None, repr=False)


@dataclass
class Grant:
    """What a person allowed, with everything that was issued for it."""

    client: Client
    scopes: tuple[str, ...]
    resource: str | None
    redirect_uri: str
    challenge: str | None
    subject: str
    issuer: str
    revoked: bool = False


@dataclass
class Issued:
    """A code or a token: its grant, its end, whether it was used up."""

    kind: str
    number: int  # tells tokens apart in logs
    grant: Grant
    expires: float
    used: bool = False


class Refused(Exception):
    """An OAuth error reply."""

    def __init__(self, error: str, description: str, status: int = 400) -> None:
        super().__init__(error, description)
        self.error, self.description, self.status = error, description, status


class IdentityProvider:
    """One provider. `close()` it, or use it as a context manager."""

    def __init__(self, port: int = 0, *, host: bool = True, **settings: Any) -> None:
        self.settings = Settings(**settings)
        self.log: list[dict[str, Any]] = []
        self._clients: dict[str, Client] = {}
        self._issued: dict[str, Issued] = {}
        self._asked: dict[str, tuple[Grant, str | None]] = {}
        self._numbers: dict[str, int] = {}
        self._holds: dict[str, Hold] = {}
        self._ahead = 0.0
        self._key = secrets.token_bytes(16)
        self._hosted = Hosted(self.app(), "test identity provider", port) if host else None
        self.base = self._hosted.base if self._hosted else ""

    def __enter__(self) -> IdentityProvider:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        for hold in self._holds.values():
            hold.release()
        if self._hosted:
            self._hosted.close()

    # ---- for tests ---------------------------------------------------------------------------------------------------

    @property
    def issuer(self) -> str:
        return self.base + self.settings.issuer_path

    @property
    def authorize_url(self) -> str:
        """What every authorization URL begins with: `canary.allow_shown(idp.authorize_url, exact=False)`."""
        return f"{self.issuer}/authorize"

    def reset(self, **settings: Any) -> IdentityProvider:
        """As new: defaults, no client, no grant, an empty log."""
        for hold in self._holds.values():
            hold.release()
        self.settings, self._ahead = Settings(**settings), 0.0
        for kept in (self.log, self._clients, self._issued, self._asked, self._numbers, self._holds):
            kept.clear()
        return self

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        return [entry for entry in list(self.log) if entry["event"] in kinds]

    def count(self, *kinds: str) -> int:
        return len(self.events(*kinds))

    def paths(self) -> list[str]:
        """Every request, as "GET /path", in order."""
        return [f"{entry['method']} {entry['path']}" for entry in self.events("http")]

    def add_client(
        self, client_id: str, redirect_uri: str = "http://127.0.0.1/callback", method: str = "none"
    ) -> Client:
        """A pre-registered client, with a planted secret unless its method is "none"."""
        planted = None if method == "none" else secret("clientsecret") + secrets.token_hex(8)
        self._clients[client_id] = Client(client_id, (redirect_uri,), method, planted)
        return self._clients[client_id]

    def forget_clients(self) -> None:
        """As a provider that has lost its registrations: invalid_client from now on."""
        self._clients.clear()

    def advance(self, seconds: float) -> None:
        """Moves the provider's clock on: codes and tokens expire."""
        self._ahead += seconds

    def expire_access_tokens(self) -> None:
        self._end("access")

    def revoke_grants(self) -> None:
        """The person takes everything back: no token of any kind is good any more."""
        for issued in self._issued.values():
            issued.grant.revoked = True

    def _end(self, kind: str) -> None:
        for issued in self._issued.values():
            if issued.kind == kind:
                issued.expires = 0.0

    def hold(self, step: str) -> Hold:
        """Keeps requests of a step ("authorize", "token", "refresh", "register", "metadata") until released."""
        self._holds[step] = Hold()
        return self._holds[step]

    def tokens_for(self, client: Client, *, resource: str | None, scopes: tuple[str, ...] = ("mcp",)) -> dict[str, Any]:
        """A token reply without a sign-in, as a store of an earlier run would hold it."""
        grant = Grant(client, scopes, resource, client.redirect_uris[0], None, self.settings.subject, self.issuer)
        return self._reply(grant)

    def introspect(self, token: str) -> Issued | None:
        """The access token, if it is good at this moment."""
        issued = self._issued.get(token)
        return issued if issued and issued.kind == "access" and self._good(issued) else None

    def now(self) -> float:
        return time.time() + self._ahead

    def _good(self, issued: Issued) -> bool:
        return not issued.grant.revoked and issued.expires > self.now()

    def _add(self, event: str, **what: Any) -> None:
        self.log.append({"event": event, **what})

    # ---- HTTP --------------------------------------------------------------------------------------------------------

    def app(self) -> Starlette:
        return Starlette(routes=[Route("/{path:path}", self.handle, methods=["GET", "POST", "HEAD", "DELETE"])])

    async def handle(self, request: Request) -> Response:
        path = request.url.path
        if path in ("/_log", "/_set"):
            return await self._control(request)
        reply = await self._answer(request, path)
        self._add("http", method=request.method, path=path, status=reply.status_code)
        return reply

    async def _answer(self, request: Request, path: str) -> Response:
        if path.removeprefix(self.settings.issuer_path).startswith("/.well-known/") or path.startswith("/.well-known/"):
            await self._wait("metadata")
            return self._metadata(_base(request), path)
        steps: dict[str, Callable[[Request], Any]] = {
            "/authorize": self._authorize, "/decide": self._decide, "/token": self._token,
            "/register": self._register, "/revoke": self._revoke,
        }  # fmt: skip
        step = steps.get(path.removeprefix(self.settings.issuer_path))
        if step is None:
            return Response("not found", 404)
        try:
            reply: Response = await step(request)
        except Refused as refused:
            self._add("refused", path=path, error=refused.error, description=refused.description)
            body = {"error": refused.error, "error_description": await self._described(request, refused)}
            headers = {"WWW-Authenticate": "Basic"} if refused.status == 401 else {}
            return JSONResponse(body, refused.status, headers={"Cache-Control": "no-store", **headers})
        return reply

    async def _described(self, request: Request, refused: Refused) -> str:
        if self.settings.error_description is None:
            return refused.description
        names = ("code", "refresh_token", "client_secret", "code_verifier", "state")
        form = await _form(request) if request.method == "POST" else dict(request.query_params)
        return self.settings.error_description.replace("{secrets}", " ".join(form.get(name, "") for name in names))

    async def _wait(self, step: str) -> None:
        if step in self._holds:
            await self._holds[step].here()

    def _metadata(self, base: str, path: str) -> Response:
        settings, at = self.settings, self.settings.issuer_path
        places = {
            "oauth": {OAUTH + at}, "oidc-inserted": {OIDC + at}, "oidc-appended": {at + OIDC},
            "both": {OAUTH + at, OIDC + at, at + OIDC}, "none": set(),
        }  # fmt: skip
        if path not in places[settings.metadata]:
            return Response("not found", 404)
        document: dict[str, Any] = {
            "issuer": settings.issuer_told or base + at,
            "authorization_endpoint": f"{base}{at}/authorize",
            "token_endpoint": f"{base}{at}/token",
            "revocation_endpoint": f"{base}{at}/revoke",
            "registration_endpoint": None if settings.registration == "off" else f"{base}{at}/register",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": settings.pkce_methods,
            "token_endpoint_auth_methods_supported": settings.auth_methods,
            "scopes_supported": settings.scopes_supported,
            "client_id_metadata_document_supported": settings.documents or None,
            "authorization_response_iss_parameter_supported": True if settings.iss else None,
            **({"subject_types_supported": ["public"], "jwks_uri": f"{base}{at}/jwks",
                "id_token_signing_alg_values_supported": ["RS256"]} if "openid" in path else {}),
            **settings.members,
        }  # fmt: skip
        return JSONResponse({name: value for name, value in document.items() if value is not None})

    # ---- authorization endpoint --------------------------------------------------------------------------------------

    async def _authorize(self, request: Request) -> Response:
        await self._wait("authorize")
        query = request.query_params
        client = self._client(query.get("client_id", ""), query.get("redirect_uri", ""))
        redirect = query.get("redirect_uri") or (client.redirect_uris[0] if client else "")
        known = client is not None and any(self._matches(one, redirect) for one in client.redirect_uris)
        self._add(
            "authorize", client_id=query.get("client_id"), redirect_uri=redirect, scope=query.get("scope"),
            resource=query.get("resource"), prompt=query.get("prompt"), has_state="state" in query,
            pkce=query.get("code_challenge_method") if "code_challenge" in query else None, known=known,
        )  # fmt: skip
        if client is None or not known:  # RFC 6749 4.1.2.1: never redirected
            return _page("Unknown program", "This program or its address is not registered here.", 400)
        state, issuer = query.get("state"), _base(request) + self.settings.issuer_path
        grant = Grant(client, self._scopes(query.get("scope")), query.get("resource"), redirect,
                      query.get("code_challenge"), self.settings.subject, issuer)  # fmt: skip
        try:
            self._check_request(query, grant)
        except Refused as refused:
            told = await self._described(request, refused)
            return self._back(grant, state, {"error": refused.error, "error_description": told})
        if self.settings.consent == "page":
            key = secrets.token_hex(8)
            self._asked[key] = (grant, state)
            return _consent(client.client_id, grant.scopes, key, self.settings.issuer_path)
        return self._decided(grant, state, self.settings.consent == "auto")

    def _check_request(self, query: Mapping[str, str], grant: Grant) -> None:
        settings = self.settings
        if settings.authorize_error:
            raise Refused(settings.authorize_error, "The provider was told to refuse.")
        if query.get("response_type") != "code":
            raise Refused("unsupported_response_type", "Only response_type=code is known here.")
        if settings.pkce == "refused" and "code_challenge" in query:
            raise Refused("invalid_request", "PKCE is not supported here.")
        if settings.pkce == "required" and not (grant.challenge and query.get("code_challenge_method") == "S256"):
            raise Refused("invalid_request", "A code_challenge with the method S256 is required.")
        if settings.need_resource and not grant.resource:
            raise Refused("invalid_target", "A resource is required.")

    async def _decide(self, request: Request) -> Response:
        form = await _form(request)
        asked = self._asked.pop(form.get("request", ""), None)
        if asked is None:
            return _page("Nothing to decide", "This question was answered already.", 400)
        return self._decided(*asked, form.get("decision") == "allow")

    def _decided(self, grant: Grant, state: str | None, allowed: bool) -> Response:
        self._add("allowed" if allowed else "denied", client_id=grant.client.client_id, scope=" ".join(grant.scopes))
        if not allowed:
            return self._back(grant, state, {"error": "access_denied", "error_description": "The person said no."})
        return self._back(grant, state, {"code": self._issue("code", grant, self.settings.code_lifetime)})

    def _back(self, grant: Grant, state: str | None, answer: dict[str, str]) -> Response:
        settings = self.settings
        if settings.state == "right" and state is not None:
            answer["state"] = state
        elif settings.state == "wrong":
            answer["state"] = secret("wrongstate")
        if settings.iss and settings.metadata != "none":  # without metadata nobody could know what to expect
            answer["iss"] = grant.issuer if settings.iss == "right" else "https://somebody.example.test"
        glue = "&" if "?" in grant.redirect_uri else "?"
        return RedirectResponse(grant.redirect_uri + glue + urllib.parse.urlencode(answer), 302)

    def _matches(self, registered: str, redirect: str) -> bool:
        if registered == redirect:
            return True
        ours, theirs = urllib.parse.urlsplit(registered), urllib.parse.urlsplit(redirect)
        return (
            self.settings.loopback_ports == "free"
            and ours.hostname in ("127.0.0.1", "::1")
            and (ours.scheme, ours.hostname, ours.path, ours.query)
            == (theirs.scheme, theirs.hostname, theirs.path, theirs.query)
        )

    def _client(self, client_id: str, redirect_uri: str = "") -> Client | None:
        """A client; one that names itself by the address of its metadata document is believed.

        A provider would fetch that document by https. Here nothing is fetched (loopback has no certificate that
        anybody trusts): any https address stands for a document that lists the redirect URI of the request.
        """
        if client_id in self._clients:
            return self._clients[client_id]
        if self.settings.documents and client_id.startswith("https://"):
            return Client(client_id, (redirect_uri or "http://127.0.0.1/callback",))
        return None

    def _scopes(self, asked: str | None) -> tuple[str, ...]:
        scopes = tuple(asked.split()) if asked else self.settings.default_scopes
        allowed = self.settings.grantable
        return scopes if allowed is None else tuple(scope for scope in scopes if scope in allowed)

    # ---- token endpoint ----------------------------------------------------------------------------------------------

    async def _token(self, request: Request) -> Response:
        form = await _form(request)
        kind = form.get("grant_type", "")
        await self._wait("refresh" if kind == "refresh_token" else "token")
        client, method = self._authenticated(request, form)
        wanted = self.settings.token_error or (self.settings.refresh_error if kind == "refresh_token" else None)
        if wanted:
            raise Refused(wanted, "The provider was told to refuse.", 401 if wanted == "invalid_client" else 400)
        if kind == "authorization_code":
            reply = self._by_code(client, form)
        elif kind == "refresh_token":
            reply = self._by_refresh(client, form)
        elif kind == "client_credentials":
            reply = self._by_itself(client, form, _base(request) + self.settings.issuer_path)
        else:
            raise Refused("unsupported_grant_type", "Only codes and refresh tokens are known here.")
        self._add("refresh" if kind == "refresh_token" else "token", client_id=client.client_id, method=method,
                  resource=form.get("resource"), scope=form.get("scope"), number=self._numbers["access"])  # fmt: skip
        reply |= self.settings.reply_members
        reply = {name: value for name, value in reply.items() if value is not None}
        return JSONResponse(reply, headers={"Cache-Control": "no-store"})

    def _authenticated(self, request: Request, form: Mapping[str, str]) -> tuple[Client, str]:
        """The client, and how it authenticated. It must be the way it was registered for."""
        client_id, given, method = form.get("client_id", ""), form.get("client_secret"), "none"
        kind, _, value = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "basic":
            name, _, word = base64.b64decode(value).decode().partition(":")
            client_id, method = urllib.parse.unquote(name), "client_secret_basic"
            if given is not None:
                raise Refused("invalid_request", "The client authenticated in two ways at once.")
            given = urllib.parse.unquote(word)
        elif given is not None:
            method = "client_secret_post"
        client = self._client(client_id)
        if client is None or client.method != method or not hmac.compare_digest(given or "", client.secret or ""):
            raise Refused("invalid_client", "The client is unknown or did not authenticate as registered.", 401)
        return client, method

    def _by_code(self, client: Client, form: Mapping[str, str]) -> dict[str, Any]:
        code = self._issued.get(form.get("code", ""))
        if code is None or code.kind != "code" or code.grant.client.client_id != client.client_id:
            raise Refused("invalid_grant", "The code is not known.")
        if code.used:
            code.grant.revoked = True  # OAuth 2.1 4.1.2
            raise Refused("invalid_grant", "The code was used before.")
        code.used = True
        grant = code.grant
        if not self._good(code):
            raise Refused("invalid_grant", "The code has expired.")
        if form.get("redirect_uri", grant.redirect_uri) != grant.redirect_uri:
            raise Refused("invalid_grant", "The redirect URI is another one.")
        if grant.challenge is not None and _challenge(form.get("code_verifier", "")) != grant.challenge:
            raise Refused("invalid_grant", "The code verifier does not fit.")
        self._check_target(form, grant)
        return self._reply(grant)

    def _by_refresh(self, client: Client, form: Mapping[str, str]) -> dict[str, Any]:
        old = self._issued.get(form.get("refresh_token", ""))
        if old is None or old.kind != "refresh" or old.grant.client.client_id != client.client_id:
            raise Refused("invalid_grant", "The refresh token is not known.")
        if old.used:
            old.grant.revoked = True
            self._add("reuse", number=old.number)
            raise Refused("invalid_grant", "The refresh token was used before; the grant is revoked.")
        if not self._good(old):
            raise Refused("invalid_grant", "The refresh token has expired or was revoked.")
        self._check_target(form, old.grant)
        if self.settings.refresh_reply == "rotate":
            old.used = True
            return self._reply(old.grant)
        reply = self._reply(old.grant, refresh=False)
        return reply if self.settings.refresh_reply == "omit" else {**reply, "refresh_token": form["refresh_token"]}

    def _by_itself(self, client: Client, form: Mapping[str, str], issuer: str) -> dict[str, Any]:
        """client_credentials (RFC 6749 4.4): the client is the subject; there is no refresh token."""
        if client.method == "none":
            raise Refused("unauthorized_client", "A client without a secret can't sign in by itself.")
        grant = Grant(client, self._scopes(form.get("scope")), form.get("resource"), "", None, client.client_id, issuer)
        return self._reply(grant, refresh=False)

    @staticmethod
    def _check_target(form: Mapping[str, str], grant: Grant) -> None:
        if form.get("resource", grant.resource) != grant.resource:
            raise Refused("invalid_target", "The resource is another one than was authorized.")

    def _reply(self, grant: Grant, *, refresh: bool = True) -> dict[str, Any]:
        settings = self.settings
        reply: dict[str, Any] = {"access_token": self._issue("access", grant, settings.access_lifetime)}
        reply["token_type"] = "Bearer"
        if settings.expires_in:
            reply["expires_in"] = int(settings.access_lifetime)
        if settings.scope_reply:
            reply["scope"] = " ".join(grant.scopes)
        wanted = settings.refresh == "always" or (
            settings.refresh == "offline_access" and "offline_access" in grant.scopes
        )
        if refresh and wanted:
            reply["refresh_token"] = self._issue("refresh", grant, settings.refresh_lifetime)
        return reply

    def _issue(self, kind: str, grant: Grant, lifetime: float) -> str:
        number = self._numbers[kind] = self._numbers.get(kind, 0) + 1
        expires = self.now() + lifetime
        value = secret(f"{kind}{number}n") + secrets.token_hex(8)
        if kind == "access" and self.settings.token_format == "jwt":
            value = self._jwt(grant, expires, value)
        self._issued[value] = Issued(kind, number, grant, expires)
        return value

    def _jwt(self, grant: Grant, expires: float, identifier: str) -> str:
        claims = {"iss": grant.issuer, "sub": grant.subject, "aud": grant.resource, "scope": " ".join(grant.scopes),
                  "client_id": grant.client.client_id, "exp": int(expires), "jti": identifier}  # fmt: skip
        signed = ".".join(_b64(json.dumps(part).encode()) for part in ({"alg": "HS256", "typ": "at+jwt"}, claims))
        return f"{signed}.{_b64(hmac.digest(self._key, signed.encode(), 'sha256'))}"

    # ---- registration, revocation, control ---------------------------------------------------------------------------

    async def _register(self, request: Request) -> Response:
        await self._wait("register")
        settings = self.settings
        asked = json.loads(await request.body())
        self._add("register", client_name=asked.get("client_name"), redirect_uris=asked.get("redirect_uris"),
                  method=asked.get("token_endpoint_auth_method"), scope=asked.get("scope"),
                  grant_types=asked.get("grant_types"), application_type=asked.get("application_type"))  # fmt: skip
        if settings.registration == "off":
            return Response("not found", 404)
        if settings.registration == "refused":
            raise Refused("invalid_client_metadata", "Programs like this one are not registered here.")
        if settings.registration == "forbidden":
            raise Refused("access_denied", "Registration is for administrators.", 403)
        method = settings.registered_method or asked.get("token_endpoint_auth_method") or "client_secret_basic"
        client_id = settings.registered_id or f"registered-{secrets.token_hex(6)}"
        planted = None if method == "none" else secret("clientsecret") + secrets.token_hex(8)
        self._clients[client_id] = Client(client_id, tuple(asked.get("redirect_uris") or ()), method, planted)
        made = {**asked, "client_id": client_id, "token_endpoint_auth_method": method, "client_id_issued_at": 1}
        if planted:
            made |= {"client_secret": planted, "client_secret_expires_at": 0}
        if settings.registration == "broken":
            del made["client_id"]
        return JSONResponse(made, 201)

    async def _revoke(self, request: Request) -> Response:
        form = await _form(request)
        client, _ = self._authenticated(request, form)
        issued = self._issued.get(form.get("token", ""))
        self._add("revoke", client_id=client.client_id, kind=issued.kind if issued else None)
        if issued and issued.grant.client.client_id == client.client_id:
            issued.grant.revoked = True
        return Response("")

    async def _control(self, request: Request) -> Response:
        if request.url.path == "/_log":
            return JSONResponse(self.log)
        for name, value in json.loads(await request.body()).items():
            assert name in {one.name for one in fields(Settings)}, name
            setattr(self.settings, name, value)
        return JSONResponse({})


def _base(request: Request) -> str:
    return f"http://{request.headers['host']}"


async def _form(request: Request) -> dict[str, str]:
    return dict(urllib.parse.parse_qsl((await request.body()).decode(), keep_blank_values=True))


def _challenge(verifier: str) -> str:
    return _b64(hashlib.sha256(verifier.encode()).digest())


def _b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _page(title: str, text: str, status: int = 200) -> Response:
    return HTMLResponse(f"<!doctype html><title>{title}</title><h1>{title}</h1><p>{text}</p>", status)


def _consent(client_id: str, scopes: tuple[str, ...], key: str, at: str) -> Response:
    wanted = html.escape(" ".join(scopes) or "nothing in particular")
    return HTMLResponse(
        f"<!doctype html><title>Sign in</title><h1>{html.escape(client_id)} wants access</h1><p>{wanted}</p>"
        f'<form method="post" action="{at}/decide"><input type="hidden" name="request" value="{key}">'
        '<button name="decision" value="allow">Allow</button><button name="decision" value="deny">Deny</button></form>'
    )


def main(argv: list[str] | None = None) -> int:
    from tests.support.protected import ProtectedServer

    parser = argparse.ArgumentParser(description="An identity provider and the MCP servers that it protects.")
    parser.add_argument("--servers", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=JSON", help="a setting of the provider")
    parser.add_argument("--set-servers", action="append", default=[], metavar="NAME=JSON", help="one of the servers")
    options = parser.parse_args(argv)
    logging.disable(logging.CRITICAL)
    idp = IdentityProvider(**_given(options.set))
    servers = [ProtectedServer(idp, **_given(options.set_servers)) for _ in range(options.servers)]
    told = {"issuer": idp.issuer, "authorize": idp.authorize_url, "log": f"{idp.base}/_log", "set": f"{idp.base}/_set",
            "url": servers[0].url if servers else None, "urls": [server.url for server in servers]}  # fmt: skip
    print(json.dumps(told), flush=True)
    threading.Event().wait()  # until a signal ends the process
    return 0


def _given(settings: list[str]) -> dict[str, Any]:
    return {name: json.loads(value) for name, value in (one.split("=", 1) for one in settings)}


if __name__ == "__main__":
    sys.exit(main())
