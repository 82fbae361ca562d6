"""Running a gateway: on standard input and output, or as an HTTP server."""

from __future__ import annotations

import socket
from typing import Any

import uvicorn

from .server import Gateway

__all__ = ["HttpServer", "serve_stdio"]

# As uvicorn has them by default, but for the end: open streams of clients are not waited for longer.
GRACE_SECONDS = 3


async def serve_stdio(gateway: Gateway) -> None:
    """Serves one client on standard input and output until its input ends."""
    from mcp.server.stdio import stdio_server

    server = gateway.server
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


class HttpServer(uvicorn.Server):
    """Serves the application on a socket that is bound already."""

    def __init__(self, app: Any, **options: Any) -> None:
        config = uvicorn.Config(
            app,
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
