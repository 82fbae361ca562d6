"""The Gopher service's account of a user's MCP servers: `ServerConfig.fetch` asks for it over HTTPS."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .awaiting import as_coroutine
from .errors import AgentError, ApiKeyError, ConnectionError, TimeoutError

if TYPE_CHECKING:
    from http.client import HTTPResponse
    from urllib.request import OpenerDirector

__all__ = ["ServerConfig", "ServerConfigRoute"]

_ROOT = "https://api.gopher.security"
_TEST_ROOT = "https://api-test.gopher.security"
_PATH = "/v1/mcp-servers"
_ROUTES = ("serverId", "serverName", "gatewayId", "gatewayName")
_TIMEOUT = 30.0  # seconds, from the beginning to the end
_PREVIEW = 512  # characters of an error's body
_SHORTEST_KEY = 8  # characters
_LARGEST = 16 * 1024 * 1024  # bytes


@dataclass(frozen=True)
class ServerConfigRoute:
    """Narrows the answer down: `key` is serverId, serverName, gatewayId or gatewayName."""

    key: str
    value: str


class ServerConfig:
    """Reads the server configuration that belongs to an API key."""

    @staticmethod
    def fetch(api_key: str, route: ServerConfigRoute | None = None) -> str:
        """The configuration as JSON text, as `GopherAgent.create_with_server_config` takes it. Waits 30 s at most.

        The address is GOPHER_API_ROOT, else the service's test root when GOPHER_SDK_TEST is true, 1 or yes, else its
        own. Redirects are followed within that host alone. Raises ApiKeyError (missing or refused key), ConnectionError
        (no answer), TimeoutError, AgentError (bad answer).
        """
        if not isinstance(api_key, str) or not api_key.strip():
            raise ApiKeyError("API key is required")
        if any(character in api_key for character in "\r\n\0") or not api_key.isascii():
            raise ApiKeyError("The API key holds a line break or a character that no key has; copy it again")
        if route is not None and not isinstance(route, ServerConfigRoute):
            raise AgentError(f"The route must be a ServerConfigRoute or None, not {type(route).__name__}")
        if route is not None and (not isinstance(route.value, str) or not route.value.strip()):
            raise AgentError(f"The value of the route {route.key!r} must be a non-empty string")
        from .forms.bounds import is_unsendable

        if route is not None and is_unsendable(route.value):
            raise AgentError(f"The value of the route {route.key!r} holds half a character (a lone surrogate)")
        if route is not None and route.key not in _ROUTES:
            raise AgentError(f"Unknown server configuration route {route.key!r}; it is one of {', '.join(_ROUTES)}")
        return _checked(_request(_address(route), api_key.strip()), api_key.strip())

    fetch_async = staticmethod(as_coroutine(fetch))


def named_root() -> str:
    """The address of another service that GOPHER_API_ROOT names; empty where it names none."""
    return os.environ.get("GOPHER_API_ROOT", "").strip()


def _address(route: ServerConfigRoute | None) -> str:
    from urllib.parse import urlencode

    root = named_root()
    if not root:
        testing = os.environ.get("GOPHER_SDK_TEST", "").strip().lower() in ("1", "true", "yes")  # the library's words
        root = _TEST_ROOT if testing else _ROOT
    _check_root(root)
    query = "" if route is None else "?" + urlencode({route.key: route.value})
    return root.rstrip("/") + _PATH + query


def _check_root(root: str) -> None:
    """Raises AgentError, without the address, which may hold a password."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(root)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets that do not match, a port that is none
        usable = False
    if not usable:
        raise AgentError("GOPHER_API_ROOT must begin with https:// (or http:// for a local test) and name a host")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise AgentError("GOPHER_API_ROOT must be an address alone: no user or password, no ? and no #")


def _request(address: str, api_key: str) -> bytes:
    from http.client import HTTPException
    from urllib.error import HTTPError, URLError
    from urllib.request import Request

    request = Request(address, headers={"Accept": "application/json"})
    # Unredirected: the key is for this host and goes to no other one.
    request.add_unredirected_header("Authorization", f"Bearer {api_key}")
    host = request.host
    deadline = time.monotonic() + _TIMEOUT
    try:
        with _opener().open(request, timeout=_TIMEOUT) as response:
            return _decoded(_read(response, host, deadline), response.headers.get("Content-Encoding"), host)
    except HTTPError as error:
        with error:
            raise _refused(error.code, _error_body(error), api_key, host) from None
    except URLError as error:
        if isinstance(error.reason, OSError) and _is_timeout(error.reason):
            raise _late(host) from None
        raise ConnectionError(f"{host} could not be reached: {error.reason}") from None
    except (OSError, HTTPException) as error:
        if _is_timeout(error):
            raise _late(host) from None
        raise ConnectionError(f"The connection to {host} broke: {type(error).__name__}") from None


def _opener() -> OpenerDirector:
    """An opener that follows redirects only within the host that was asked, and with the key then."""
    from urllib.parse import urlsplit
    from urllib.request import HTTPRedirectHandler, Request, build_opener

    class SameHost(HTTPRedirectHandler):
        def redirect_request(
            self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
        ) -> Request | None:
            old, new = urlsplit(req.full_url), urlsplit(newurl)
            if (old.scheme, old.netloc) != (new.scheme, new.netloc):
                fp.close()
                raise AgentError(
                    f"{req.host} redirects to another address ({_origin(newurl)}), to which the API key does not go. "
                    "GOPHER_API_ROOT names the service's address"
                )
            following = super().redirect_request(req, fp, code, msg, headers, newurl)
            if following is not None:
                following.add_unredirected_header("Authorization", str(req.get_header("Authorization")))
            return following

    return build_opener(SameHost)


def _origin(url: str) -> str:
    """Scheme and host of an address, as it may be told."""
    from urllib.parse import urlsplit

    from .display import safe_line

    parts = urlsplit(url)
    return safe_line(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}")


def _is_timeout(error: BaseException) -> bool:
    import builtins

    return isinstance(error, builtins.TimeoutError)


def _late(host: str) -> TimeoutError:
    return TimeoutError(f"{host} did not answer within {_TIMEOUT:.0f} s")


def _read(response: HTTPResponse, host: str, deadline: float) -> bytes:
    """The body, piece by piece: the socket's limit is for each of them, ours is for all."""
    from http.client import IncompleteRead

    body = bytearray()
    while piece := response.read1(65536):
        body += piece
        if len(body) > _LARGEST:
            raise _too_large(host)
        if time.monotonic() > deadline:
            raise _late(host)
    if response.length:  # less than was announced
        raise IncompleteRead(b"", response.length)
    return bytes(body)


def _decoded(body: bytes, encoding: str | None, host: str) -> bytes:
    """The body without its content encoding. None was asked for, but a proxy on the way may use gzip all the same."""
    import zlib

    name = (encoding or "identity").strip().lower()
    if name == "identity":
        return body
    if name not in ("gzip", "x-gzip"):
        raise AgentError(f"The answer of {host} is encoded in a way that was not asked for")
    decoder = zlib.decompressobj(wbits=31)  # 31: gzip alone
    try:
        plain = decoder.decompress(body, _LARGEST + 1)
    except zlib.error:
        raise ConnectionError(f"The answer of {host} is damaged: it is no gzip") from None
    if len(plain) > _LARGEST:
        raise _too_large(host)
    if not decoder.eof:
        raise ConnectionError(f"The answer of {host} is damaged: its gzip ends too early")
    return plain


def _too_large(host: str) -> AgentError:
    return AgentError(f"The answer of {host} is larger than {_LARGEST // 1024 // 1024} MB")


def _error_body(error: Any) -> bytes:
    """The beginning of a refusal's body, or nothing: the refusal itself is what counts."""
    try:
        body: bytes = error.read(4 * _PREVIEW)
        return b"" if error.headers.get("Content-Encoding") else body
    except Exception:
        return b""


def _refused(status: int, body: bytes, api_key: str, host: str) -> AgentError:
    told = _told(body.decode("utf-8", "replace"), api_key)
    if status in (401, 403):
        return ApiKeyError(f"{host} refused the API key (HTTP {status}){told}")
    if status >= 500:
        return ConnectionError(f"{host} can't answer now (HTTP {status}){told}")
    return AgentError(f"{host} answered HTTP {status}{told}")


def _told(text: str, api_key: str) -> str:
    """The service's own words after a colon, without the key and what else is recognised as secret."""
    from .display import safe_line
    from .redaction import redact_text

    if len(api_key) >= _SHORTEST_KEY:  # a shorter one is a word that may stand in any text
        text = text.replace(api_key, "<API key>")
    text = redact_text(text)
    preview = safe_line(text[:_PREVIEW], limit=_PREVIEW)[:_PREVIEW]
    return f": {preview}" if preview else ""


def _checked(body: bytes, api_key: str) -> str:
    """The body as text when it is a JSON object that does not report a failure. A byte order mark is left out."""
    try:
        text = body.decode("utf-8-sig")
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise AgentError("The server configuration that was received is not JSON") from None
    if not isinstance(value, dict):
        raise AgentError("The server configuration that was received is not a JSON object")
    if value.get("succeeded") is False:
        message = value.get("message")
        told = _told(message, api_key) if isinstance(message, str) else ""
        raise AgentError(f"The service could not give a server configuration (it answered succeeded: false){told}")
    return text
