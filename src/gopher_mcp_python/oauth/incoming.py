"""One connection of a browser, or of anything else, to the loopback listener: its request is read and answered once.

A protocol and not a pair of streams: asyncio in debug mode logs the results of tasks, and a task that reads a request
has the code for its result. Here nothing that asyncio knows of holds a byte of it.
"""

from __future__ import annotations

import asyncio
import re
from http import HTTPStatus
from typing import Protocol, cast

from . import pages

__all__ = ["Connection", "Receiver", "Request"]

_REQUEST_SECONDS = 5.0  # for a whole request, from the first moment of the connection
_LINGER_SECONDS = 1.0  # in which a peer that still sends may read its answer
_LONGEST_LINE = 64 * 1024  # bytes; codes of a few kilobytes exist
_LONGEST_HEAD = 256 * 1024  # bytes; a browser sends the cookies of all programs on this host
_END = re.compile(rb"\r?\n\r?\n")


class Request:
    """The parts of a request that count."""

    __slots__ = ("hosts", "method", "target")

    def __init__(self, method: str, target: str, hosts: list[str]) -> None:
        self.method = method
        self.target = target
        self.hosts = hosts


class Receiver(Protocol):
    """What connections belong to."""

    def opened(self, connection: Connection) -> None: ...

    def closed(self, connection: Connection) -> None: ...

    def requested(self, connection: Connection, request: Request) -> None: ...


class Connection(asyncio.Protocol):
    """`requested` is called with the one request; somebody calls `answer`, at once or later (`hold`)."""

    def __init__(self, receiver: Receiver, loop: asyncio.AbstractEventLoop) -> None:
        self._receiver = receiver
        self._loop = loop
        self._data = bytearray()
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._lingers = False
        self.since = loop.time()
        self.is_read = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # of other loops' classes, too
        self._after(_REQUEST_SECONDS, self.abort)
        self._receiver.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timer()
        self._transport = None
        self._data.clear()
        self._receiver.closed(self)

    def data_received(self, data: bytes) -> None:
        if self.is_read:
            return
        start = max(0, len(self._data) - 3)
        self._data += data
        if not b"A" <= self._data[:1] <= b"Z":
            self.abort()  # no HTTP: TLS, or noise
        elif end := _END.search(self._data, start):
            self._read(bytes(self._data[: end.start()]), surplus=end.end() < len(self._data))
        elif len(self._data) > _LONGEST_HEAD or (
            len(self._data) > _LONGEST_LINE and self._data.find(b"\n", 0, _LONGEST_LINE) < 0
        ):
            self._refuse(HTTPStatus.REQUEST_URI_TOO_LONG, "The address is too long.")

    def hold(self, seconds: float) -> None:
        """Leaves the browser waiting; after so many seconds it is told to go on elsewhere."""
        self._after(seconds, self._let_go)

    def answer(
        self, status: HTTPStatus, page: bytes, *, head_only: bool = False, allow: str | None = None
    ) -> None:
        """Sends the page and closes."""
        self._cancel_timer()
        if self._transport is None:
            return
        self._transport.write(pages.response(status, page, head_only=head_only, allow=allow))
        if not self._lingers:
            self._transport.close()
            return
        # Closing now would reset the connection under a peer that still sends, before it reads what we said.
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._after(_LINGER_SECONDS, self.abort)

    def abort(self) -> None:
        """Closes at once; nothing more is sent."""
        self._cancel_timer()
        if self._transport is not None:
            self._transport.abort()

    def _read(self, head: bytes, *, surplus: bool) -> None:
        self._data.clear()
        self.is_read = True
        lines = head.replace(b"\r\n", b"\n").decode("latin-1").split("\n")
        words = lines[0].split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            self._refuse(HTTPStatus.BAD_REQUEST, "The request could not be read.")
            return
        hosts = [value.strip() for name, _, value in (line.partition(":") for line in lines[1:])
                 if name.lower() == "host"]  # fmt: skip
        self._lingers = surplus or words[0] not in ("GET", "HEAD")
        self._cancel_timer()
        self._receiver.requested(self, Request(words[0], words[1], hosts))

    def _refuse(self, status: HTTPStatus, text: str) -> None:
        self._data.clear()
        self.is_read = self._lingers = True
        self.answer(status, pages.stray(text))

    def _let_go(self) -> None:
        self.answer(HTTPStatus.OK, pages.pending())

    def _after(self, seconds: float, action: object) -> None:
        self._cancel_timer()
        self._timer = self._loop.call_later(seconds, action)  # type: ignore[arg-type]

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
