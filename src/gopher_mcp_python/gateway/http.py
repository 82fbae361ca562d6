"""The gateway over streamable HTTP: who calls, from which address, and nobody else.

Every request names its caller with a bearer token that has the scope "call". Without any token the gateway serves its
own machine only, and only where it was told to. `Host` and `Origin` are checked always (DNS rebinding).
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address
from typing import Any

import anyio
import anyio.to_thread
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from ..serve.tokens import Authenticator, Principal
from .server import PRINCIPAL, Gateway

__all__ = ["create_app", "is_loopback"]

# The largest request, in bytes; arguments may hold a file.
MAX_REQUEST_BYTES = 16 * 1024 * 1024
# Requests whose sender one authenticator looks up at the same time.
AUTHENTICATING = 16


def create_app(
    gateway: Gateway,
    authenticators: Sequence[Authenticator],
    *,
    host: str = "127.0.0.1",
    port: int | str = "*",
    allowed_hosts: Sequence[str] = (),
    allowed_origins: Sequence[str] = (),
    anonymous: bool = False,
    resource_metadata: str | None = None,
) -> Any:
    """The ASGI application; the endpoint is /mcp.

    Args:
        authenticators: asked one after the other who sends a request.
        host: the address that it is served on, for the Host headers that are let in.
        port: the same.
        allowed_hosts: further Host headers, "name:port" or "name:*".
        allowed_origins: Origin headers of pages that may call; none: no page may.
        anonymous: whether anybody on this machine may call without a token; `host` must be a loopback address then.
        resource_metadata: URL of the OAuth metadata to tell of to whoever comes without a token.

    Raises ValueError when nobody could call, or everybody.
    """
    if anonymous and not is_loopback(host):
        raise ValueError("calls without a token are served on a loopback address only (127.0.0.1, ::1, localhost)")
    if not anonymous and not authenticators:
        raise ValueError("nobody could call: give tokens (--tokens), a key set for JWTs, or allow loopback callers")
    named = f"[{host}]" if ":" in host else host
    names = [named, "127.0.0.1", "localhost", "[::1]"] if is_loopback(host) else [named]
    at = ["", f":{port}"] if port in (80, 443) else [f":{port}"]  # a scheme's own port is left out by clients
    hosts = [*(name + end for name in names for end in at), *allowed_hosts]
    origins = [*allowed_origins]
    if is_loopback(host):
        origins += [f"http://{name}{end}" for name in names[1:] for end in at]
    security = TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins)
    app = gateway.server.streamable_http_app(
        transport_security=security, host=host, max_request_body_size=MAX_REQUEST_BYTES
    )
    return _Authenticated(app, authenticators, anonymous=anonymous, metadata=resource_metadata)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class _Authenticated:
    """Lets in who may call, and says who it is."""

    def __init__(
        self, app: ASGIApp, authenticators: Sequence[Authenticator], *, anonymous: bool, metadata: str | None
    ) -> None:
        self._app = app
        self._authenticators = tuple(authenticators)
        self._anonymous = anonymous
        self._metadata = metadata
        self._limiters: dict[int, anyio.CapacityLimiter] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = [value.decode("latin-1") for name, value in scope["headers"] if name == b"authorization"]
        if not given and self._anonymous:
            await self._app(scope, receive, send)
            return
        principal = await self._principal(given[0]) if len(given) == 1 else None
        if principal is None:
            await self._refuse(401, "invalid_token", "a bearer token is needed")(scope, receive, send)
        elif "call" not in principal.scopes:
            text = 'this token has no scope "call"'
            await self._refuse(403, "insufficient_scope", text, 'scope="call"')(scope, receive, send)
        else:
            scope[PRINCIPAL] = principal
            # By this the SDK binds a session to its caller. The token itself is kept nowhere.
            token = AccessToken(token="", client_id=principal.caller, scopes=sorted(principal.scopes))
            scope["user"] = AuthenticatedUser(token)
            await self._app(scope, receive, send)

    async def _principal(self, authorization: str) -> Principal | None:
        for place, authenticator in enumerate(self._authenticators):
            # Threads of its own: one that waits for an identity provider takes none from the store and from others.
            limiter = self._limiters.get(place)
            if limiter is None:
                limiter = self._limiters[place] = anyio.CapacityLimiter(AUTHENTICATING)
            found = await anyio.to_thread.run_sync(authenticator.authenticate, authorization, limiter=limiter)
            if found is not None:
                return found
        return None

    def _refuse(self, status: int, code: str, text: str, *more: str) -> JSONResponse:
        told = [f'error="{code}"', f'error_description="{text}"'.replace('"call"', "call"), *more]
        if self._metadata:
            told.append(f'resource_metadata="{self._metadata}"')
        headers = {"WWW-Authenticate": "Bearer " + ", ".join(told)}
        return JSONResponse({"error": code, "error_description": text}, status, headers=headers)
