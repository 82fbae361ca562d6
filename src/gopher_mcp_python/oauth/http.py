"""Requests to authorization servers: bounded in time and size, and never less protected than the MCP server itself."""

from __future__ import annotations

from types import TracebackType
from urllib.parse import parse_qsl, urlsplit

import httpx2

from ..toolset.tls import shared_context
from .debug import debug
from .errors import SignInError, Unreachable
from .refusals import in_trouble

__all__ = ["REQUEST_SECONDS", "Http", "host_of"]

REQUEST_SECONDS = 15.0  # for each step of one request: connecting, sending, each piece of the answer
# Fields of a token request that are no secret.
_TOLD = frozenset("grant_type client_id redirect_uri resource scope client_assertion_type".split())
_SHORTEST_SECRET = 6  # characters; shorter ones stand in any text
_LARGEST = 1024 * 1024  # bytes of an answer; metadata and tokens have some kilobytes


class Http:
    """The HTTP client of one renewal.

    Attributes:
        last, answer: the request that was sent last, and its answer if one came.
        browser_was_last: whether the person's browser has brought an answer since.
        unwell: whether a server was in trouble at any of the requests (HTTP status 429, 5xx).
    """

    def __init__(self, server_url: str) -> None:
        self._encrypted_only = urlsplit(server_url).scheme == "https"
        self._client = httpx2.AsyncClient(
            timeout=httpx2.Timeout(REQUEST_SECONDS), follow_redirects=False, verify=shared_context()
        )
        self.last: httpx2.Request | None = None
        self.answer: httpx2.Response | None = None
        self.browser_was_last = self.unwell = False
        self._secrets: set[str] = set()

    def came_back(self) -> None:
        """The person's browser came back: what fails from here on, until the next request, is its answer."""
        self.browser_was_last = True

    def keep_secret(self, *values: str | None) -> None:
        """What servers may quote in their errors, and people must not read there."""
        self._secrets.update(value for value in values if value and len(value) >= _SHORTEST_SECRET)

    def masked(self, text: str) -> str:
        """A text without what this flow keeps secret."""
        for value in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(value, "<redacted>")
        return text

    async def __aenter__(self) -> Http:
        await self._client.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._client.__aexit__(kind, error, traceback)

    def refuse_unencrypted(self, url: str) -> None:
        """MCP 2025-11-25, "Communication Security", where the MCP server keeps to it. Raises SignInError."""
        if self._encrypted_only and urlsplit(url).scheme != "https":
            raise SignInError(
                f"The MCP server is reached by https, but its sign-in leads to {host_of(url)} without encryption: "
                "nothing was sent or opened there",
                "misconfigured",
            )

    async def send(self, request: httpx2.Request) -> httpx2.Response:
        """The whole answer. Raises SignInError when there is none, or it is larger than any such answer is."""
        self.last, self.answer, self.browser_was_last = request, None, False
        self.keep_secret(*_secrets_in(request))
        host = host_of(str(request.url))
        self.refuse_unencrypted(str(request.url))
        # Set here as the SDK builds its requests without a client, so without any time limit.
        request.extensions = {**request.extensions, "timeout": httpx2.Timeout(REQUEST_SECONDS).as_dict()}
        try:
            response = await self._client.send(request, stream=True)
            try:
                body = await _limited(response, host)
            finally:
                await response.aclose()
        except httpx2.ConnectError as error:
            raise Unreachable(f"{host} could not be reached ({_kind(error)})", "unavailable") from None
        except httpx2.TimeoutException:
            raise SignInError(f"{host} did not answer within {REQUEST_SECONDS:.0f} s", "unavailable") from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise SignInError(f"{host} could not be reached ({_kind(error)})", "unavailable") from None
        self.answer = _read(response, body)
        self.unwell = self.unwell or in_trouble(response.status_code)
        debug("request", method=request.method, url=str(request.url), status=response.status_code)
        return self.answer


def _secrets_in(request: httpx2.Request) -> list[str]:
    """All that a form holds but what names things; what a header proves."""
    found = [value for name, value in parse_qsl(request.content.decode("ascii", "replace")) if name not in _TOLD]
    found.append(request.headers.get("authorization", "").partition(" ")[2])
    return found


async def _limited(response: httpx2.Response, host: str) -> bytes:
    body = b""
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > _LARGEST:
            raise SignInError(f"The answer of {host} is larger than 1 MB, so it is no answer of an OAuth server")
    return body


def _read(response: httpx2.Response, body: bytes) -> httpx2.Response:
    """The same answer with its body read, and without the headers that told how it was packed."""
    packing = ("content-encoding", "content-length", "transfer-encoding")
    headers = [(name, value) for name, value in response.headers.multi_items() if name not in packing]
    read = httpx2.Response(response.status_code, headers=headers, content=body, request=response.request)
    read.next_request = response.next_request
    return read


def host_of(url: str) -> str:
    """The host of a URL, for people."""
    try:
        return urlsplit(url).hostname or "the authorization server"
    except ValueError:
        return "the authorization server"


def _kind(error: Exception) -> str:
    if "certificate" in str(error).lower():
        return "its certificate was not accepted"
    known = {
        "ConnectError": "connection refused or host not found",
        "ReadError": "the connection broke",
        "RemoteProtocolError": "the connection broke or the answer is not HTTP",
        "DecodingError": "the answer's content encoding is broken",
    }
    return known.get(type(error).__name__, type(error).__name__)
