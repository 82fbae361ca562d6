"""Running a gateway: on standard input and output, or as an HTTP server."""

from __future__ import annotations

import logging
import re
import socket
from typing import Any

import uvicorn

from ..serve.server import MAX_HEAD, BoundedProtocol
from ..toolset.quiet import hush
from .server import Gateway

__all__ = ["HttpServer", "keep_quiet", "serve_stdio"]

# As uvicorn has them by default, but for the end: open streams of clients are not waited for longer.
GRACE_SECONDS = 3
MAX_CONNECTIONS = 1000


# The SDK's server tells the ids of sessions, which are as good as keys where callers need no token.
_LOGGERS = ("mcp.server.streamable_http_manager", "mcp.server.streamable_http")
_ID = re.compile(r"\b[0-9a-f]{32}\b")


class _NoIds(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = _ID.sub("<redacted>", record.getMessage()), ()
        return True


_no_ids = _NoIds()


def keep_quiet() -> None:
    """Keeps ids of sessions, URLs and messages out of the program's logs. Idempotent."""
    hush()
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if _no_ids not in logger.filters:
            logger.addFilter(_no_ids)


async def serve_stdio(gateway: Gateway) -> None:
    """Serves one client on standard input and output until its input ends."""
    from mcp.server.stdio import stdio_server

    keep_quiet()
    server = gateway.server
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


class HttpServer(uvicorn.Server):
    """Serves the application on a socket that is bound already."""

    def __init__(self, app: Any, **options: Any) -> None:
        keep_quiet()
        config = uvicorn.Config(
            app,
            http=BoundedProtocol,
            h11_max_incomplete_event_size=MAX_HEAD,
            limit_concurrency=MAX_CONNECTIONS,
            lifespan="on",
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
            **options,
        )
        super().__init__(config)

    def serve_on(self, listener: socket.socket) -> None:
        """Until it is told to end (Ctrl-C, SIGTERM)."""
        self.run(sockets=[listener])
