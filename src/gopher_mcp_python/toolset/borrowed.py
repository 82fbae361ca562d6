"""A session over a client of the caller's own, who opened it, closes it, and answers with callbacks of their own."""

from __future__ import annotations

from typing import Any

import mcp_types as types

from .calls import ServerRequest
from .connection import ClientConnection
from .session import Session

__all__ = ["BorrowedSession"]


class BorrowedSession(Session):
    """Declares nothing and asks nobody; rounds of questions are the client's own affair."""

    def __init__(self, connection: ClientConnection, client_info: types.Implementation) -> None:
        super().__init__(connection, None, "handshake", client_info)
        self._given: Any = connection.client
        self._closed = False

    async def open(self) -> None:
        """Nothing to open. Raises RuntimeError when the caller has not entered it."""
        self._client = getattr(self._given, "session", self._given)
        if self.client.protocol_version is None:
            raise RuntimeError("the client is not initialized; call its initialize() first")

    def begin_close(self, *, forgotten: bool = False) -> float:
        self._closed = True
        return 0.0

    async def wait_ended(self) -> None:
        """Its end is the caller's to see."""

    @property
    def alive(self) -> bool:
        return not self._closed

    @property
    def ended(self) -> bool:
        return self._closed

    async def send(self, request: ServerRequest, responses: Any = None, state: str | None = None) -> Any:
        return await request.send(self._given)
