"""Where an MCP server is and how to reach it: streamable HTTP, SSE (older), a command on stdio, in this process."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit, urlunsplit

from ..redaction import redact_url
from ..sdk_import import load
from .errors import SessionLostError
from .record import current_record

if TYPE_CHECKING:
    import httpx2

# Seconds for connecting, sending and getting a connection from the pool (the SDK's own default). Reading has no limit
# here: a server may hold a stream open for as long as its user needs, and each call has a clock of its own.
HTTP_TIMEOUT_SECONDS = 30.0
# Seconds for the receipt of a message that no answer follows: the SDK sends nothing else until it has come, so a server
# that keeps it back would stop the whole session.
RECEIPT_SECONDS = 10.0
GOODBYE_SECONDS = 1.0
# The largest event of a stream, in bytes. A tool's result is one event, images and files included.
MAX_EVENT_BYTES = 256 * 1024 * 1024
SESSION_HEADER = "mcp-session-id"
# A JSON-RPC message with a result or an error of its own; deeper down these names, and "method", may be anybody's.
_ANSWER = re.compile(rb'\s*\{[^{}\[\]]*"(?:result|error)"\s*:')


@dataclass(frozen=True)
class HttpConnection:
    """A server behind a URL.

    Attributes:
        url: its endpoint, http or https.
        headers: sent with every request; they may hold credentials, so the repr leaves them out.
        transport: "streamable-http" or "sse".
        name: shown to people; the URL's host by default.
        auth: puts a credential on each request, and renews it; None: the headers are all there is.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    transport: Literal["streamable-http", "sse"] = "streamable-http"
    name: str = ""
    auth: httpx2.Auth | None = field(default=None, repr=False, compare=False)

    @property
    def has_authorization(self) -> bool:
        """Whether the caller brings credentials: an Authorization header, or a user in the address."""
        named = any(name.lower() == "authorization" for name in self.headers)
        return named or "@" in urlsplit(self.url).netloc

    @property
    def label(self) -> str:
        """What the server is called in questions and errors: its name, else its host."""
        return self.name or urlsplit(self.url).hostname or "MCP server"

    def __repr__(self) -> str:
        return f"HttpConnection({self.label!r}, transport={self.transport!r})"


@dataclass(frozen=True)
class StdioConnection:
    """A server that is a command, spoken to over its standard input and output.

    Attributes:
        command: the program.
        args: its arguments.
        env: variables on top of the few that the SDK lets through; may hold secrets, so the repr leaves them out.
        cwd: its working directory.
        name: shown to people; the command by default.
    """

    command: str
    args: Sequence[str] = field(default=(), repr=False)
    env: Mapping[str, str] | None = field(default=None, repr=False)
    cwd: str | None = None
    name: str = ""

    @property
    def label(self) -> str:
        """What the server is called in questions and errors: its name, else the command."""
        return self.name or self.command


@dataclass(frozen=True)
class MemoryConnection:
    """A server of the SDK in this very process, spoken to over streams in memory.

    Attributes:
        server: the SDK's `MCPServer` or its low-level `Server`.
        name: shown to people; the server's own name by default.
    """

    server: Any = field(repr=False)
    name: str = ""

    @property
    def label(self) -> str:
        return self.name or str(getattr(self.server, "name", "") or "MCP server")


@dataclass(frozen=True)
class ClientConnection:
    """A client of the caller's own, which has its server, its capabilities and its callbacks already.

    Attributes:
        client: the SDK's `Client` or `ClientSession`, entered by the caller, who also closes it.
        name: shown to people; the server's own name by default.
    """

    client: Any = field(repr=False)
    name: str = ""

    @property
    def label(self) -> str:
        try:
            info = self.client.server_info
        except RuntimeError:  # the caller has not entered it yet
            info = None
        return self.name or str(getattr(info, "name", "") or "MCP server")


Connection = HttpConnection | StdioConnection | MemoryConnection | ClientConnection


def context_tells(connection: Connection) -> bool:
    """Whether what the server asks within a call comes in the context of that call: the SDK's transports hand on what
    comes on a message's own stream so. The older ones have one stream for all."""
    if isinstance(connection, HttpConnection):
        return connection.transport == "streamable-http"
    return isinstance(connection, MemoryConnection)


def place(connection: Connection) -> str:
    """The server as it may be printed: no user-info, no query, no fragment, no token in its path."""
    if not isinstance(connection, HttpConnection):
        return connection.label
    parts = urlsplit(connection.url)
    return redact_url(urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "")))


@dataclass
class Farewell:
    """What ending an HTTP session takes: its id, whether the server still knows it, and how many of our answers it has
    got."""

    session_id: str | None = None
    forgotten: bool = False
    delivered: int = 0

    async def note(self, response: httpx2.Response) -> None:
        self.session_id = response.headers.get(SESSION_HEADER, self.session_id)
        if is_answer(response.request):
            self.delivered += 1

    async def say(self, client: httpx2.AsyncClient, url: str) -> None:
        """Tells the server that the session is over; a server that does not answer in time finds out by itself."""
        if self.session_id is None or self.forgotten:
            return
        with contextlib.suppress(Exception):
            await client.delete(url, headers={SESSION_HEADER: self.session_id}, timeout=GOODBYE_SECONDS)


@contextlib.asynccontextmanager
async def open_transport(connection: Connection, farewell: Farewell) -> AsyncIterator[tuple[Any, Any]]:
    """Opens the transport and yields its (read, write) streams; closes everything it opened."""
    if isinstance(connection, StdioConnection):
        load("mcp.client.stdio")
        from mcp.client.stdio import StdioServerParameters, stdio_client

        parameters = StdioServerParameters(
            command=connection.command,
            args=list(connection.args),
            env=dict(connection.env) if connection.env is not None else None,
            cwd=connection.cwd,
            encoding_error_handler="replace",  # one stray byte must not end the whole stream
        )
        async with stdio_client(parameters) as streams:
            yield streams
    elif isinstance(connection, MemoryConnection):
        from mcp.client._memory import InMemoryTransport

        async with InMemoryTransport(connection.server) as streams:
            yield streams
    elif isinstance(connection, ClientConnection):
        raise AssertionError("a client of the caller's own has its transport")
    elif connection.transport == "sse":
        load("mcp.client.sse")
        from mcp.client.sse import sse_client

        def client_factory(headers: Any = None, timeout: Any = None, auth: Any = None) -> httpx2.AsyncClient:
            return http_client(connection)

        async with sse_client(connection.url, httpx_client_factory=client_factory) as streams:
            yield streams
    else:
        load("mcp.client.streamable_http")
        from mcp.client.streamable_http import streamable_http_client

        # The SDK's own goodbye has no time limit and logs a refusal as a warning, so it is said here.
        async with http_client(connection, farewell.note) as client:
            async with streamable_http_client(
                connection.url,
                http_client=client,
                terminate_on_close=False,
                max_sse_event_size=MAX_EVENT_BYTES,
            ) as streams:
                yield streams
            await farewell.say(client, connection.url)


def http_client(connection: HttpConnection, *hooks: Callable[[Any], Awaitable[None]]) -> httpx2.AsyncClient:
    """The HTTP client of one connection: its headers, no read limit, and an eye on what each answer's status is."""
    import httpx2

    from .tls import shared_context

    return httpx2.AsyncClient(
        # As bytes: the client itself takes no more than ASCII.
        headers=[(name.encode(), value.encode()) for name, value in connection.headers.items()],
        auth=connection.auth,
        verify=shared_context(),
        timeout=httpx2.Timeout(HTTP_TIMEOUT_SECONDS, read=None),
        event_hooks={"request": [limit_receipt], "response": [note_status, *hooks]},
    )


def is_answer(request: httpx2.Request) -> bool:
    """Whether a request carries an answer of ours to what the server asked."""
    return request.method == "POST" and _ANSWER.match(request.content) is not None


def is_notification(request: httpx2.Request) -> bool:
    """Whether nobody waits for what comes of a request."""
    return request.method == "POST" and b'"method":"notifications/' in request.content[:200]


async def limit_receipt(request: httpx2.Request) -> None:
    """Answers to requests may take for ever; the receipt of a notification or of an answer of ours may not."""
    if request.method != "POST":
        return
    await request.aread()  # a redirected one is not read yet
    if is_answer(request) or is_notification(request):
        request.extensions["timeout"] = {**request.extensions.get("timeout", {}), "read": RECEIPT_SECONDS}


async def note_status(response: httpx2.Response) -> None:
    """The SDK reports an HTTP failure without its status; the record of the request under way keeps it.

    The transport sends each message in its sender's context, so the record here is the sender's own.
    """
    record = current_record()
    if record is None or response.request.method != "POST":
        return
    if is_answer(response.request):
        if response.status_code >= 500:  # the server goes on waiting for it, and the call for the server
            told = f"The server could not take an answer that it had asked for (HTTP status {response.status_code})"
            record.give_up(SessionLostError(told))
        return
    record.http_status = response.status_code
    record.http_session = SESSION_HEADER in response.request.headers
    if response.status_code >= 400 and "json" in response.headers.get("content-type", ""):
        with contextlib.suppress(Exception):  # an unreadable body says nothing; the SDK reports the failure itself
            record.http_error = json.loads(await response.aread())
