"""Options of first-step OAuth (signing in to the MCP server itself), and what tokens are stored as.

Mappings are accepted wherever an options object is, with snake_case or camelCase keys; snake_case wins.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, Protocol, Union, runtime_checkable

__all__ = ["GopherAgentOAuthOptions", "GopherAgentTokenRecord", "GopherAgentTokenStore", "normalize_oauth_options"]

Assertion = Callable[[str, str], Union[str, Awaitable[str]]]
TOKEN_STORE_NAMES = ("memory", "keyring", "file")
_LATEST = 10**15  # seconds; NaN is not below it either
_AUTH_METHODS = ("none", "client_secret_basic", "client_secret_post", "private_key_jwt")
_NAMES = (
    *("mode", "scopes", "client_name", "redirect_uri", "open_browser", "token_store", "client_id", "client_secret"),
    "issuer",
    *("token_endpoint_auth_method", "client_metadata_url", "grant", "private_key", "assertion", "timeout_ms"),
)


class GopherAgentTokenRecord:
    """A stored OAuth token. `expires_at` is a Unix time (in seconds)."""

    def __init__(
        self,
        access_token: str,
        token_type: str = "Bearer",
        refresh_token: str | None = None,
        expires_at: float | None = None,
        scope: str | None = None,
    ) -> None:
        """Raises ValueError when a value is of the wrong kind, or the token or its type is empty."""
        if not isinstance(access_token, str) or not access_token:
            raise ValueError("token access_token must be a non-empty string")
        if not isinstance(token_type, str) or not token_type:
            raise ValueError("token token_type must be a non-empty string")
        if expires_at is not None and not (isinstance(expires_at, (int, float)) and abs(expires_at) < _LATEST):
            raise ValueError("token expires_at must be a finite number (a Unix time in seconds)")
        self.access_token = access_token
        self.token_type = token_type
        self.refresh_token = _optional_text(refresh_token, "token refresh_token")
        self.expires_at = None if expires_at is None else float(expires_at)
        self.scope = _optional_text(scope, "token scope")

    def __repr__(self) -> str:
        return f"GopherAgentTokenRecord(<redacted>, token_type={self.token_type!r}, expires_at={self.expires_at!r})"


@runtime_checkable
class GopherAgentTokenStore(Protocol):
    """Where tokens are kept between runs; the methods are coroutines, keys are opaque text."""

    async def get(self, key: str) -> GopherAgentTokenRecord | None:
        """The record under `key`; None when there is none."""

    async def set(self, key: str, token: GopherAgentTokenRecord) -> None:
        """Keeps the record under `key`, instead of the one that is there."""

    async def delete(self, key: str) -> None:
        """Forgets what is under `key`; nothing happens when there is none."""


class GopherAgentOAuthOptions:
    """First-step OAuth: signing in to the MCP server itself. It has nothing to do with elicitation.

    Attributes:
        mode: "auto" (also None): when a server demands it; "disabled": never. A server whose requests carry an
            Authorization header of the caller's own is never signed in to.
        scopes: what to ask for; None: what the server asks for.
        client_name: shown by authorization servers where a client registers itself.
        redirect_uri: a loopback address (http://127.0.0.1, http://localhost) that is registered for `client_id`; a port
            in it is used, else a free one. None: http://127.0.0.1 with a free port.
        open_browser: None or True: open the sign-in page; False: only print its address.
        token_store: where tokens are kept: a store, or "memory", "keyring" (the extra of that name) or "file"; None:
            the environment variable GOPHER_MCP_TOKEN_STORE, else in memory, for this process.
        client_id, client_secret: of a client that was registered beforehand.
        issuer: address of the authorization server where it was; the client's credentials go to no other one.
        token_endpoint_auth_method: how the client proves itself: "none", "client_secret_basic", "client_secret_post"
            (the usual one is chosen when None), or "private_key_jwt".
        client_metadata_url: https address of a client-ID metadata document; used where the authorization server
            takes those.
        grant: "authorization_code": a person signs in; "client_credentials": the program itself does, with
            `client_id` and a secret or key; "jwt_bearer": a company's identity provider vouches for the person
            (enterprise-managed authorization, SEP-990).
        private_key: PEM text, for "private_key_jwt".
        assertion: for "jwt_bearer": called with the authorization server's issuer and the MCP server's address (the
            audience and resource of the assertion), returns the assertion (ID-JAG) that the identity provider gave for
            them. A function, which runs on a thread of its own, or an async one. Each person needs a token store of
            their own.
        timeout_ms: how long the person may take (in milliseconds; None: 10 minutes). It counts against no other limit.
    """

    def __init__(
        self,
        mode: Literal["auto", "disabled"] | None = None,
        scopes: list[str] | None = None,
        client_name: str | None = None,
        redirect_uri: str | None = None,
        open_browser: bool | None = None,
        token_store: GopherAgentTokenStore | Literal["memory", "keyring", "file"] | None = None,
        *,
        client_id: str | None = None,
        client_secret: str | None = None,
        issuer: str | None = None,
        token_endpoint_auth_method: str | None = None,
        client_metadata_url: str | None = None,
        grant: Literal["authorization_code", "client_credentials", "jwt_bearer"] | None = None,
        private_key: str | None = None,
        assertion: Assertion | None = None,
        timeout_ms: int | None = None,
    ) -> None:
        """Raises ValueError when a value is of the wrong kind, or two of them don't go together."""
        if mode not in (None, "auto", "disabled"):
            raise ValueError('oauth mode must be "auto" or "disabled"')
        if scopes is not None and not (isinstance(scopes, list) and all(isinstance(scope, str) for scope in scopes)):
            raise ValueError("oauth scopes must be a list of strings")
        if open_browser is not None and not isinstance(open_browser, bool):
            raise ValueError("oauth open_browser must be a boolean")
        _check_token_store(token_store)
        if token_endpoint_auth_method not in (None, *_AUTH_METHODS):
            raise ValueError(f"oauth token_endpoint_auth_method must be one of {', '.join(_AUTH_METHODS)}")
        if grant not in (None, "authorization_code", "client_credentials", "jwt_bearer"):
            raise ValueError('oauth grant must be "authorization_code", "client_credentials" or "jwt_bearer"')
        if assertion is not None and not callable(assertion):
            raise ValueError("oauth assertion must be callable")
        self.mode = mode
        self.scopes = None if scopes is None else list(scopes)
        self.client_name = _optional_text(client_name, "oauth client_name")
        self.redirect_uri = _optional_text(redirect_uri, "oauth redirect_uri")
        self.open_browser = open_browser
        self.token_store = token_store
        self.client_id = _optional_text(client_id, "oauth client_id") or None
        self.client_secret = _optional_text(client_secret, "oauth client_secret") or None
        self.issuer = _optional_text(issuer, "oauth issuer") or None
        self.token_endpoint_auth_method = token_endpoint_auth_method
        self.client_metadata_url = _optional_text(client_metadata_url, "oauth client_metadata_url") or None
        self.grant: Literal["authorization_code", "client_credentials", "jwt_bearer"] = grant or "authorization_code"
        self.private_key = _optional_text(private_key, "oauth private_key") or None
        self.assertion = assertion
        self.timeout_ms = _limit(timeout_ms)
        self._check_together()

    def _check_together(self) -> None:
        if self.client_secret and not self.client_id:
            raise ValueError("oauth client_secret needs the client_id that it belongs to")
        if self.issuer and not self.issuer.startswith(("https://", "http://")):
            raise ValueError("oauth issuer must be the https address of an authorization server")
        url = self.client_metadata_url
        if url and not (url.startswith("https://") and url[8:].partition("/")[2]):
            raise ValueError("oauth client_metadata_url must be an https address with a path")
        needs_key = self.token_endpoint_auth_method == "private_key_jwt"
        if needs_key != bool(self.private_key) or (needs_key and self.grant != "client_credentials"):
            raise ValueError(
                'oauth private_key and token_endpoint_auth_method "private_key_jwt" go together, and with the grant '
                '"client_credentials"'
            )
        if self.grant == "client_credentials" and not (self.client_id and (self.client_secret or self.private_key)):
            raise ValueError('oauth grant "client_credentials" needs client_id and client_secret or private_key')
        has_assertion = self.assertion is not None
        if has_assertion != (self.grant == "jwt_bearer") or (has_assertion and not self.client_id):
            raise ValueError('oauth assertion and grant "jwt_bearer" go together, and with client_id')

    def __repr__(self) -> str:
        return (
            f"GopherAgentOAuthOptions(mode={self.mode!r}, scopes={self.scopes!r}, client_name={self.client_name!r}, "
            f"grant={self.grant!r})"
        )


def normalize_oauth_options(
    options: GopherAgentOAuthOptions | Mapping[str, Any] | None = None,
) -> GopherAgentOAuthOptions | None:
    """OAuth options from an instance or a mapping; None stays None. Raises ValueError."""
    if options is None or isinstance(options, GopherAgentOAuthOptions):
        return options
    if not isinstance(options, Mapping):
        raise ValueError("oauth options must be a GopherAgentOAuthOptions instance or mapping")
    return GopherAgentOAuthOptions(**known_entries(options, *_NAMES))


def _check_token_store(store: object) -> None:
    if isinstance(store, str):
        if store not in TOKEN_STORE_NAMES:
            raise ValueError(f'oauth token_store {store!r:.40} is none of "memory", "keyring" and "file"')
    elif store is not None and not all(hasattr(store, name) for name in ("get", "set", "delete")):
        raise ValueError("oauth token_store must have the methods get, set and delete (see GopherAgentTokenStore)")


def _limit(timeout_ms: object) -> int | None:
    if timeout_ms is None:
        return None
    if isinstance(timeout_ms, bool) or not isinstance(timeout_ms, int) or not 0 < timeout_ms < _LATEST:
        raise ValueError("oauth timeout_ms must be a whole number of milliseconds, more than 0")
    return timeout_ms


def known_entries(options: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The entries of `options` that we know, under their snake_case names."""
    found = {}
    for name in names:
        head, *rest = name.split("_")
        camel = head + "".join(part.capitalize() for part in rest)
        if name in options:
            found[name] = options[name]
        elif camel in options:
            found[name] = options[camel]
    return found


def _optional_text(value: object, what: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise ValueError(f"{what} must be a string")
    return value
