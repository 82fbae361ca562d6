"""Options of the agent factories: access token, headers, first-step OAuth, elicitation, engine.

Mappings are accepted wherever an options object is, with snake_case or camelCase keys; snake_case wins.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Union

from .elicitation import GopherAgentElicitationOptions, normalize_elicitation_options
from .oauth_options import (
    GopherAgentOAuthOptions,
    GopherAgentTokenRecord,
    GopherAgentTokenStore,
    known_entries,
    normalize_oauth_options,
)

if TYPE_CHECKING:
    from .events import EventHandler

__all__ = [
    "CreateOptionsInput",
    "GopherAgentCreateOptions",
    "GopherAgentOAuthOptions",
    "GopherAgentRuntimeOptions",
    "GopherAgentTokenRecord",
    "GopherAgentTokenStore",
    "RuntimeOptionsInput",
    "normalize_create_options",
    "normalize_oauth_options",
    "normalize_runtime_options",
]

_ENGINES = ("auto", "native", "embedded")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+\Z")  # RFC 9110, "token"
_CONTROLS = re.compile("[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")


class _RequestOptions:
    """What both option classes share: a token and headers, kept as the caller gave them, checked once."""

    def __init__(self, access_token: str | None, headers: Mapping[str, str] | None) -> None:
        self._access_token = _checked_token(access_token)
        self._headers = _merged_headers(self._access_token, headers)

    @property
    def access_token(self) -> str | None:
        return self._access_token

    @property
    def headers(self) -> dict[str, str]:
        """A copy of the headers that are sent, with the token's Authorization; the caller's own Authorization wins."""
        return dict(self._headers)

    @property
    def has_authorization(self) -> bool:
        """Whether requests carry an Authorization header, whatever its spelling."""
        return any(name.lower() == "authorization" for name in self._headers)


class GopherAgentCreateOptions(_RequestOptions):
    """Options of every factory.

    Parameters beyond the published package's are keyword-only: `engine` ("auto", "native", "embedded"; None: the
    environment variable GOPHER_MCP_ENGINE, else "auto") and `on_event` (called with a `GopherAgentEvent`).
    """

    def __init__(
        self,
        access_token: str | None = None,
        headers: Mapping[str, str] | None = None,
        oauth: GopherAgentOAuthOptions | Mapping[str, Any] | None = None,
        elicitation: GopherAgentElicitationOptions | Mapping[str, Any] | Literal[False] | None = None,
        *,
        engine: str | None = None,
        on_event: EventHandler | None = None,
    ) -> None:
        """Raises ValueError when a value is of the wrong kind, or a header or token holds CR, LF or NUL."""
        super().__init__(access_token, headers)
        if engine is not None and engine not in _ENGINES:
            raise ValueError('engine must be "auto", "native" or "embedded"')
        if on_event is not None and not callable(on_event):
            raise ValueError("on_event must be callable")
        self._oauth = normalize_oauth_options(oauth)
        self._elicitation = normalize_elicitation_options(elicitation)
        self._engine = engine
        self._on_event = on_event

    @property
    def oauth(self) -> GopherAgentOAuthOptions | None:
        """How a sign-in to the server itself is done; None: the defaults."""
        return self._oauth

    @property
    def elicitation(self) -> GopherAgentElicitationOptions:
        """Who is asked, and how."""
        return self._elicitation

    @property
    def engine(self) -> str | None:
        """Which engine: "auto", "native" or "embedded"; None: `GOPHER_MCP_ENGINE`, else "auto"."""
        return self._engine

    @property
    def on_event(self) -> EventHandler | None:
        """What is called with each event of a run; None: nothing."""
        return self._on_event

    def with_token(self, access_token: str) -> GopherAgentCreateOptions:
        """A copy that sends `access_token`; everything else, elicitation first of all, stays as it is."""
        kept = {name: value for name, value in self._headers.items() if name.lower() != "authorization"}
        return GopherAgentCreateOptions(
            access_token, kept, self._oauth, self._elicitation, engine=self._engine, on_event=self._on_event
        )

    def __repr__(self) -> str:
        return (
            f"GopherAgentCreateOptions(headers={sorted(self._headers)!r}, oauth={self._oauth!r}, "
            f"elicitation={self._elicitation!r}, engine={self._engine!r})"
        )


class GopherAgentRuntimeOptions(_RequestOptions):
    """The older, smaller set of options. Its elicitation is None when omitted; the factories then enable the
    default."""

    def __init__(
        self,
        access_token: str | None = None,
        headers: Mapping[str, str] | None = None,
        elicitation: GopherAgentElicitationOptions | Mapping[str, Any] | Literal[False] | None = None,
    ) -> None:
        """Raises ValueError like GopherAgentCreateOptions."""
        super().__init__(access_token, headers)
        self._elicitation = None if elicitation is None else normalize_elicitation_options(elicitation)

    @property
    def elicitation(self) -> GopherAgentElicitationOptions | None:
        """Who is asked, and how; None: the usual ways."""
        return self._elicitation

    def __repr__(self) -> str:
        return f"GopherAgentRuntimeOptions(headers={sorted(self._headers)!r}, elicitation={self._elicitation!r})"


CreateOptionsInput = Union[GopherAgentRuntimeOptions, GopherAgentCreateOptions, Mapping[str, Any], None]
RuntimeOptionsInput = CreateOptionsInput  # the published package's second name for it


def normalize_create_options(options: CreateOptionsInput = None) -> GopherAgentCreateOptions | None:
    """Create options from what a caller may give; None when nothing that we know was given. Raises ValueError."""
    if options is None or isinstance(options, GopherAgentCreateOptions):
        return options
    if isinstance(options, GopherAgentRuntimeOptions):
        runtime = normalize_runtime_options(options)
        if runtime is None:
            return None
        return GopherAgentCreateOptions(runtime.access_token, runtime.headers, elicitation=runtime.elicitation)
    if not isinstance(options, Mapping):
        raise ValueError("create options must be a GopherAgentCreateOptions instance or mapping")
    known = known_entries(options, "access_token", "headers", "oauth", "elicitation", "engine", "on_event")
    return GopherAgentCreateOptions(**known) if known else None


def normalize_runtime_options(options: CreateOptionsInput = None) -> GopherAgentRuntimeOptions | None:
    """Runtime options from what a caller may give; None when there is nothing in them. Raises ValueError."""
    if options is None:
        return None
    if isinstance(options, GopherAgentCreateOptions):
        return GopherAgentRuntimeOptions(options.access_token, options.headers, options.elicitation)
    if isinstance(options, Mapping):
        options = GopherAgentRuntimeOptions(**known_entries(options, "access_token", "headers", "elicitation"))
    if not isinstance(options, GopherAgentRuntimeOptions):
        raise ValueError("runtime_options must be a GopherAgentRuntimeOptions instance or mapping")
    empty = not options.access_token and not options.headers and options.elicitation is None
    return None if empty else options


def _checked_token(token: object) -> str | None:
    if token is None or token == "":
        return None
    if not isinstance(token, str):
        raise ValueError("runtime option access_token must be a string")
    _refuse_what_cannot_be_sent(token, "access_token")
    if not token.isascii():
        raise ValueError("access_token holds a character that no token has (not ASCII); copy it again")
    return token


def _merged_headers(token: str | None, headers: Mapping[str, str] | None) -> dict[str, str]:
    if headers is not None and not isinstance(headers, Mapping):
        raise ValueError("runtime option headers must be a string mapping")
    merged = checked_headers(headers or {})
    if token is not None and not any(name.lower() == "authorization" for name in merged):
        merged["Authorization"] = bearer(token)
    return merged


def checked_headers(headers: Mapping[Any, Any]) -> dict[str, str]:
    """Headers that can be sent as they are. Raises ValueError naming the header, never showing its value."""
    merged: dict[str, str] = {}
    for name, value in headers.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise ValueError("runtime option headers must be a string mapping")
        _refuse_what_cannot_be_sent(name, "a header name")
        if not _HEADER_NAME.match(name):
            raise ValueError(f"{name!r:.60} can't be a header name: those are letters, digits and hyphens")
        _refuse_what_cannot_be_sent(value, f"the header {name!r}")
        merged[name] = value.strip(" \t")  # which HTTP says is no part of it
    return merged


def bearer(token: str) -> str:
    """The value of the Authorization header that carries a token."""
    return f"Bearer {token.strip()}"


def _refuse_what_cannot_be_sent(text: str, what: str) -> None:
    # The vendor's library writes line breaks to the wire as they are, which would add headers of somebody's choice.
    if any(character in text for character in "\r\n\0"):
        raise ValueError(
            f"{what} holds a line break or NUL character; remove it (a token read from a file often ends in one)"
        )
    if _CONTROLS.search(text):
        raise ValueError(f"{what} holds a control character or half of a surrogate pair; remove it")
