"""What every request passes first: whom it was meant for, which page sent it, how much and how fast it comes.

A page of another site can make a browser send requests here; it can't make the browser lie about Host, Origin and
Sec-Fetch-Site. Host names other than ours are what DNS rebinding brings.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .problems import Problem

__all__ = ["PAGE_POLICY", "Guard", "host_names"]

_LOG = logging.getLogger("gopher_mcp_python.serve")
SECONDS_PER_CHUNK = 20.0  # a client that sends or reads nothing for so long is left
MAX_QUERY = 2_000  # bytes
# Without 'unsafe-inline', without anything from elsewhere; and no text can become markup (Trusted Types).
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; form-action 'none'; "
    "frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "cache-control": "no-store",
}
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?\Z")


def host_names(allowed: Iterable[str]) -> frozenset[str]:
    """Host headers that are ours, in lower case. Raises ValueError for what is no `host` or `host:port`."""
    names = frozenset(name.lower() for name in allowed)
    for name in names:
        if not _HOST.match(name):
            raise ValueError(
                f"allowed host {name[:80]!r} is no host name with an optional port, such as mcp.example:8123"
            )
    if not names:
        raise ValueError("no allowed host: name the hosts under which this server is reached, such as localhost:8123")
    return names


class Guard:
    """Refuses foreign requests, bounds the others, adds the strict headers, and answers what went wrong inside."""

    def __init__(
        self, app: ASGIApp, *, allowed_hosts: frozenset[str], patience: float = SECONDS_PER_CHUNK, https: bool = False
    ) -> None:
        self._app, self._hosts, self._patience = app, allowed_hosts, patience
        self._https = https

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] != "http":
            return  # a websocket: closed by the server
        exchange = _Exchange(receive, send, self._headers_for(scope), self._patience)
        try:
            self._check(scope)
            await self._app(scope, exchange.receive, exchange.send)
        except Problem as problem:
            await self._refuse(problem, exchange, scope)
        except (_Left, ClientDisconnect):
            # The server closes what was begun and not ended.
            _LOG.debug("a client went, or was left since it neither read nor sent")
        except Exception as error:
            _LOG.error("a request failed: %s", _where(error))
            await self._refuse(Problem(500, "the server failed; its log says where"), exchange, scope)

    @staticmethod
    async def _refuse(problem: Problem, exchange: _Exchange, scope: Scope) -> None:
        if exchange.is_started:
            return
        if problem.status in (408, 413, 415):  # what is left of the body is not waited for
            problem.headers["connection"] = "close"
        await problem.response()(scope, exchange.receive, exchange.send)

    def _headers_for(self, scope: Scope) -> dict[str, str]:
        name = Headers(scope=scope).get("host", "").lower().partition(":")[0]
        if not self._https or name == "localhost" or name.endswith(".localhost"):
            return _HEADERS  # a name that other programs of this machine share, which may have no https
        return {**_HEADERS, "strict-transport-security": "max-age=31536000"}

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            raise Problem(403, "this server is not reached under that name (--allowed-host adds one)", code="host")
        for origin in headers.getlist("origin"):
            if not _is_origin_of(origin, hosts[0]):
                raise Problem(403, "requests of other sites' pages are refused", code="origin")
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and not _is_link(scope, headers):
            raise Problem(403, "requests of other sites' pages are refused", code="origin")
        if len(scope["query_string"]) > MAX_QUERY:
            raise Problem(422, f"the query is longer than {MAX_QUERY} bytes", code="malformed")


def _is_origin_of(origin: str, host: str) -> bool:
    """Whether a page of this origin came from the host that the request names. A proxy may have taken TLS off."""
    scheme, _, place = origin.lower().partition("://")
    default = _DEFAULT_PORTS.get(scheme)
    if default is None or not _HOST.match(place):
        return False
    return place.removesuffix(default) == host.lower().removesuffix(default)


def _is_link(scope: Scope, headers: Headers) -> bool:
    """Somebody followed a link to the page: that shows it, and sends nothing."""
    return scope["method"] in ("GET", "HEAD") and scope["path"] == "/" and headers.get("sec-fetch-dest") == "document"


class _Left(Exception):
    """The client takes nothing any more."""


class _Exchange:
    """One request and its answer, with a limit for each wait."""

    def __init__(self, receive: Receive, send: Send, headers: dict[str, str], patience: float) -> None:
        self._receive, self._send, self._headers, self._patience = receive, send, headers, patience
        self.is_started = False
        self._body_read = False

    async def receive(self) -> Message:
        if self._body_read:
            return await self._receive()  # waits for the end of the connection
        try:
            message = await _within(self._patience, self._receive)
        except asyncio.TimeoutError:
            raise Problem(408, f"nothing of the body came for {self._patience:.0f} s") from None
        self._body_read = not message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.is_started = True
            headers = MutableHeaders(scope=message)
            for name, value in self._headers.items():
                headers.setdefault(name, value)
        try:
            await _within(self._patience, lambda: self._send(message))
        except asyncio.TimeoutError:
            raise _Left from None


async def _within(seconds: float, step: Callable[[], Awaitable[Message | None]]) -> Message:
    """One step, or asyncio.TimeoutError."""
    result = await asyncio.wait_for(step(), seconds)
    return result if result is not None else {}


def _where(error: BaseException) -> str:
    """What an error was and where it was raised. Not its text, which may hold what somebody sent."""
    trace, place = error.__traceback__, "?"
    while trace is not None:
        code = trace.tb_frame.f_code
        place = f"{code.co_filename.rpartition('/')[2]}:{trace.tb_lineno} in {code.co_name}"
        trace = trace.tb_next
    return f"{type(error).__name__} at {place}"
