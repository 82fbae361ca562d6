"""Options of first-step OAuth (signing in to the MCP server itself), and what tokens are stored as.

Mappings are accepted wherever an options object is, with snake_case or camelCase keys; snake_case wins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol, runtime_checkable

__all__ = ["GopherAgentOAuthOptions", "GopherAgentTokenRecord", "GopherAgentTokenStore", "normalize_oauth_options"]

_LATEST = 10**15  # seconds; NaN is not below it either


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

    async def get(self, key: str) -> GopherAgentTokenRecord | None: ...

    async def set(self, key: str, token: GopherAgentTokenRecord) -> None: ...

    async def delete(self, key: str) -> None: ...


class GopherAgentOAuthOptions:
    """First-step OAuth: signing in to the MCP server itself. It has nothing to do with elicitation.

    `mode` is "auto" (also None) or "disabled"; the sign-in is skipped too when the caller sends an Authorization
    header.
    """

    def __init__(
        self,
        mode: Literal["auto", "disabled"] | None = None,
        scopes: list[str] | None = None,
        client_name: str | None = None,
        redirect_uri: str | None = None,
        open_browser: bool | None = None,
        token_store: GopherAgentTokenStore | None = None,
    ) -> None:
        """Raises ValueError when a value is of the wrong kind."""
        if mode not in (None, "auto", "disabled"):
            raise ValueError('oauth mode must be "auto" or "disabled"')
        if scopes is not None and not (isinstance(scopes, list) and all(isinstance(scope, str) for scope in scopes)):
            raise ValueError("oauth scopes must be a list of strings")
        if open_browser is not None and not isinstance(open_browser, bool):
            raise ValueError("oauth open_browser must be a boolean")
        if token_store is not None and not all(hasattr(token_store, name) for name in ("get", "set", "delete")):
            raise ValueError("oauth token_store must have the methods get, set and delete (see GopherAgentTokenStore)")
        self.mode = mode
        self.scopes = None if scopes is None else list(scopes)
        self.client_name = _optional_text(client_name, "oauth client_name")
        self.redirect_uri = _optional_text(redirect_uri, "oauth redirect_uri")
        self.open_browser = open_browser
        self.token_store = token_store

    def __repr__(self) -> str:
        return f"GopherAgentOAuthOptions(mode={self.mode!r}, scopes={self.scopes!r}, client_name={self.client_name!r})"


def normalize_oauth_options(
    options: GopherAgentOAuthOptions | Mapping[str, Any] | None = None,
) -> GopherAgentOAuthOptions | None:
    """OAuth options from an instance or a mapping; None stays None. Raises ValueError."""
    if options is None or isinstance(options, GopherAgentOAuthOptions):
        return options
    if not isinstance(options, Mapping):
        raise ValueError("oauth options must be a GopherAgentOAuthOptions instance or mapping")
    names = ("mode", "scopes", "client_name", "redirect_uri", "open_browser", "token_store")
    return GopherAgentOAuthOptions(**known_entries(options, *names))


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
