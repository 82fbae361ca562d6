"""The Gopher service's account of a user's MCP servers: `ServerConfig.fetch` asks for it over HTTPS."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

from .awaiting import as_coroutine
from .errors import AgentError, ApiKeyError, ConnectionError, TimeoutError

__all__ = ["ServerConfig", "ServerConfigRoute"]

_ROOT = "https://api.gopher.security"
_TEST_ROOT = "https://api-test.gopher.security"
_PATH = "/v1/mcp-servers"
_ROUTES = ("serverId", "serverName", "gatewayId", "gatewayName")
_TIMEOUT = 30.0  # seconds
_PREVIEW = 512  # characters of an error's body
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

        The address is GOPHER_API_ROOT, else the service's test root when GOPHER_SDK_TEST is true, else its own.
        Raises ApiKeyError (missing or refused key), ConnectionError (no answer), TimeoutError, AgentError (bad answer).
        """
        if not isinstance(api_key, str) or not api_key.strip():
            raise ApiKeyError("API key is required")
        if any(character in api_key for character in "\r\n\0") or not api_key.isascii():
            raise ApiKeyError("The API key holds a line break or a character that no key has; copy it again")
        if route is not None and not isinstance(route, ServerConfigRoute):
            raise AgentError(f"The route must be a ServerConfigRoute or None, not {type(route).__name__}")
        if route is not None and (not isinstance(route.value, str) or not route.value.strip()):
            raise AgentError(f"The value of the route {route.key!r} must be a non-empty string")
        if route is not None and route.key not in _ROUTES:
            raise AgentError(f"Unknown server configuration route {route.key!r}; it is one of {', '.join(_ROUTES)}")
        return _checked(_request(_address(route), api_key.strip()))

    fetch_async = staticmethod(as_coroutine(fetch))


def _address(route: ServerConfigRoute | None) -> str:
    from urllib.parse import urlencode

    root = os.environ.get("GOPHER_API_ROOT", "").strip()
    if not root:
        testing = os.environ.get("GOPHER_SDK_TEST", "").strip().lower() in ("1", "true", "yes", "on")
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
    from urllib.request import Request, build_opener

    request = Request(address, headers={"Accept": "application/json"})
    # Unredirected: the key is for this host and goes to no other one.
    request.add_unredirected_header("Authorization", f"Bearer {api_key}")
    host = request.host
    try:
        with build_opener().open(request, timeout=_TIMEOUT) as response:
            return _limited(response.read(_LARGEST + 1), host)
    except HTTPError as error:
        with error:
            raise _refused(error.code, error.read(4 * _PREVIEW), host) from None
    except URLError as error:
        if isinstance(error.reason, OSError) and _is_timeout(error.reason):
            raise TimeoutError(f"{host} did not answer within {_TIMEOUT:.0f} s") from None
        raise ConnectionError(f"{host} could not be reached: {error.reason}") from None
    except (OSError, HTTPException) as error:
        if _is_timeout(error):
            raise TimeoutError(f"{host} did not answer within {_TIMEOUT:.0f} s") from None
        raise ConnectionError(f"The connection to {host} broke: {type(error).__name__}") from None


def _is_timeout(error: BaseException) -> bool:
    import builtins

    return isinstance(error, builtins.TimeoutError)


def _limited(body: bytes, host: str) -> bytes:
    if len(body) > _LARGEST:
        raise AgentError(f"The answer of {host} is larger than {_LARGEST // 1024 // 1024} MB")
    return body


def _refused(status: int, body: bytes, host: str) -> AgentError:
    from .display import safe_line
    from .redaction import redact_text

    preview = safe_line(redact_text(body.decode("utf-8", "replace")), limit=_PREVIEW)
    told = f": {preview}" if preview else ""
    if status in (401, 403):
        return ApiKeyError(f"{host} refused the API key (HTTP {status}){told}")
    if status >= 500:
        return ConnectionError(f"{host} can't answer now (HTTP {status}){told}")
    return AgentError(f"{host} answered HTTP {status}{told}")


def _checked(body: bytes) -> str:
    """The body as text when it is a JSON object that does not report a failure."""
    try:
        text = body.decode("utf-8")
        value: Any = json.loads(text)
    except ValueError:
        raise AgentError("The server configuration that was received is not JSON") from None
    if not isinstance(value, dict):
        raise AgentError("The server configuration that was received is not a JSON object")
    if value.get("succeeded") is False:
        raise AgentError("The service could not give a server configuration (it answered succeeded: false)")
    return text
