"""The server under the application: uvicorn, with a limit for whoever is slow from the first byte on."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from starlette.applications import Starlette

__all__ = ["BoundedProtocol", "Server", "bind", "is_loopback"]

HEAD_SECONDS = 10.0  # in which a connection has to send the whole head of a request
MAX_HEAD = 32 << 10  # bytes
MAX_CONNECTIONS = 500
KEEP_ALIVE = 15  # seconds between two requests of a connection
GRACE = 5  # seconds for requests that are under way when the server ends


class BoundedProtocol(H11Protocol):
    """Closes connections that take too long over the head of a request; uvicorn itself has no such limit."""

    _timer: asyncio.TimerHandle | None = None
    head_seconds = HEAD_SECONDS

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.access_log = False  # on whatever handlers there are: paths and queries are a stranger's text

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unwatch()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._is_in_head and self.conn.trailing_data[0]:  # the next head has begun already
            self._watch()

    @property
    def _is_in_head(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _watch(self) -> None:
        """Begins when a head begins, ends when it is there."""
        if not self._is_in_head:
            self._unwatch()
        elif self._timer is None and not self.transport.is_closing():
            self._timer = self.loop.call_later(self.head_seconds, self._too_slow)

    def _unwatch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        self._timer = None
        if self._is_in_head and not self.transport.is_closing():
            self.transport.close()


class Server(uvicorn.Server):
    """Serves an application on sockets that are bound already.

    Args:
        options: further settings of uvicorn (certificates).
    """

    def __init__(self, app: Starlette, **options: Any) -> None:
        self._feed = app.state.feed
        logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
        config = uvicorn.Config(
            app,
            http=BoundedProtocol,
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=MAX_CONNECTIONS,
            timeout_keep_alive=KEEP_ALIVE,
            timeout_graceful_shutdown=GRACE,
            h11_max_incomplete_event_size=MAX_HEAD,
            **options,
        )
        super().__init__(config)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Ends the feeds first, which would otherwise be waited for."""
        self._feed.close()
        await super().shutdown(sockets)


def bind(host: str, port: int) -> socket.socket:
    """A listening socket. Raises OSError that names the address and the remedy."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named: asyncio switches the delay of small packets (TCP_NODELAY) off for such sockets only.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        reason = error.strerror or type(error).__name__
        raise OSError(f"can't listen on {host}:{port}: {reason}; choose another --port or --host") from None
    return listener


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it."""
    from ..hostnames import is_local

    return is_local(f"[{host}]" if ":" in host else host)
