"""A proxy between a client and an HTTP server of the tests that breaks what it is told to break, per path.

    proxy = FaultProxy(idp.base)
    proxy.fault("/token", cut_body, times=1)      the next answer of that path is cut in its body
    hold = proxy.hold("/token")                   requests wait until hold.release(): slow, without any sleeping

It speaks raw TCP, so that it can also say what no HTTP server would. The Host header is passed on as it came: provider
and servers of the tests name themselves by it, so that all that follows goes through the proxy too. What came stands
in `proxy.seen`, by method and path.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
import struct
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from tests.support.hosting import LOOPBACK, Hold, listener

_HUGE = 64 * 1024 * 1024  # bytes of a body that nobody should read to its end


@dataclass
class Exchange:
    """One request, and the way to answer it."""

    method: str
    path: str
    raw: bytes
    host: str
    target: tuple[str, int]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def reply(self, status: int, body: bytes = b"", kind: str = "application/json", *headers: str) -> None:
        lines = [f"HTTP/1.1 {status} Fault", f"Content-Type: {kind}", f"Content-Length: {len(body)}",
                 "Connection: close", *headers]  # fmt: skip
        await self.send("\r\n".join([*lines, "", ""]).encode() + body)

    @contextlib.asynccontextmanager
    async def asked(self) -> AsyncIterator[asyncio.StreamReader]:
        """The server's answer as it comes. Nothing is awaited before it is closed: a cancellation may come there."""
        reader, writer = await asyncio.open_connection(*self.target)
        try:
            writer.write(self.raw)
            await writer.drain()
            yield reader
        finally:
            writer.close()

    async def upstream(self) -> tuple[bytes, bytes]:
        """The server's whole answer: head (with the empty line) and body."""
        async with self.asked() as reader:
            head, _, body = (await reader.read(-1)).partition(b"\r\n\r\n")
        return head + b"\r\n\r\n", body

    def reset(self) -> None:
        """Ends the connection with a RST."""
        raw = self.writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.close()


Fault = Callable[[Exchange], Awaitable[None]]


async def passed(exchange: Exchange) -> None:
    """No fault: the answer as it comes, streams included."""

    async def relay() -> None:
        while data := await reader.read(65536):
            await exchange.send(data)

    async with exchange.asked() as reader:
        tasks = {asyncio.ensure_future(relay()), asyncio.ensure_future(exchange.reader.read(1))}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)  # the server ended, or the client went
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def cut_head(exchange: Exchange) -> None:
    """The connection ends in the middle of the answer's headers."""
    head, _ = await exchange.upstream()
    await exchange.send(head[: len(head) // 2])


async def cut_body(exchange: Exchange) -> None:
    """The connection ends in the middle of the answer's body (at its beginning when it is chunked)."""
    head, body = await exchange.upstream()
    await exchange.send(head + body[: len(body) // 2])


async def half_json(exchange: Exchange) -> None:
    """A whole HTTP answer with half a JSON document."""
    _, body = await exchange.upstream()
    await exchange.reply(200, body[: len(body) // 2])


async def garbage(exchange: Exchange) -> None:
    """Bytes that are no HTTP."""
    await exchange.send(b"\x00\xff\x16\x03\x01 not HTTP at all \r\n\r\n" * 3)


async def reset(exchange: Exchange) -> None:
    """The connection is reset as soon as the request was read."""
    exchange.reset()


async def dropped(exchange: Exchange) -> None:
    """The connection is closed without a byte."""


async def empty(exchange: Exchange) -> None:
    """200 without a body."""
    await exchange.reply(200)


async def html(exchange: Exchange) -> None:
    """A login page, or a captive portal's, with 200."""
    await exchange.reply(200, b"<!doctype html><title>Welcome</title><h1>Welcome to the hotel</h1>", "text/html")


async def wrong_type(exchange: Exchange) -> None:
    """The right body, called an image."""
    _, body = await exchange.upstream()
    await exchange.reply(200, body, "image/png")


async def redirect_loop(exchange: Exchange) -> None:
    """Redirects to itself for ever."""
    await exchange.reply(307, b"", "text/plain", f"Location: http://{exchange.host}{exchange.path}")


async def drip(exchange: Exchange) -> None:
    """A byte every 50 ms, for as long as somebody reads: never slow enough for a limit between two bytes."""
    await exchange.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n")
    with contextlib.suppress(OSError):
        while True:
            await exchange.send(b" ")
            await asyncio.sleep(0.05)


async def huge(exchange: Exchange) -> None:
    """A body of 64 MB that is JSON to its end; sent for as long as somebody reads it."""
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {_HUGE}\r\nConnection: close\r\n\r\n"
    with contextlib.suppress(OSError):
        await exchange.send(head.encode() + b'{"x": "')
        for _ in range(_HUGE // 65536):
            await exchange.send(b"a" * 65536)


def status(code: int, body: bytes = b"the server is unwell", kind: str = "text/plain", *headers: str) -> Fault:
    """An HTTP status, such as 500, 503 or 429."""

    async def answer(exchange: Exchange) -> None:
        await exchange.reply(code, body, kind, *headers)

    return _named(answer, f"status {code}")


def reply(document: object, code: int = 200) -> Fault:
    """A JSON document of the test's own."""

    async def answer(exchange: Exchange) -> None:
        await exchange.reply(code, json.dumps(document).encode())

    return _named(answer, f"reply {code}")


def redirect(to: str, code: int = 307) -> Fault:
    """A redirect to somewhere else, such as another host."""

    async def answer(exchange: Exchange) -> None:
        await exchange.reply(code, b"", "text/plain", f"Location: {to}")

    return _named(answer, f"redirect {code}")


def _named(fault: Fault, name: str) -> Fault:
    fault.__name__ = name
    return fault


@dataclass
class _Plan:
    path: str
    fault: Fault
    times: int | None


class FaultProxy:
    """One proxy. `target` is the base URL of the server behind it."""

    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        self._target = (parts.hostname or LOOPBACK, parts.port or 80)
        self.seen: list[str] = []
        self._plans: list[_Plan] = []
        self._holds: list[Hold] = []
        self._sockets: set[asyncio.Task[None]] = set()
        self._listener = listener()
        self.port = self._listener.getsockname()[1]
        self.base = f"http://{LOOPBACK}:{self.port}"
        self._loop = asyncio.new_event_loop()
        self._server: asyncio.Server | None = None
        self._thread = threading.Thread(target=self._loop.run_forever, name="test fault proxy", daemon=True)
        self._thread.start()
        self._call(self._listen(self._listener))

    def __enter__(self) -> FaultProxy:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self.clear()
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    # ---- for tests ---------------------------------------------------------------------------------------------------

    def fault(self, path: str, fault: Fault, times: int | None = None) -> None:
        """Answers of this path are broken so from now on; `times` is how many of them. "*" is any path."""
        self._plans.append(_Plan(path, fault, times))

    def hold(self, path: str, then: Fault = passed) -> Hold:
        """Requests of this path wait until the hold is released."""
        hold = Hold()

        async def wait(exchange: Exchange) -> None:
            await hold.here()
            await then(exchange)

        self._holds.append(hold)
        self.fault(path, _named(wait, "hold"))
        return hold

    def clear(self) -> FaultProxy:
        """No fault any more, nobody waits, nothing seen."""
        for hold in self._holds:
            hold.release()
        for kept in (self._holds, self._plans, self.seen):
            kept.clear()
        return self

    def refuse(self) -> None:
        """Nobody listens any more: connections are refused, until `accept`."""
        self._call(self._end())

    def accept(self) -> None:
        """Listens again, on the same port."""
        self._call(self._listen(listener(self.port)))

    # ---- on the proxy's thread ---------------------------------------------------------------------------------------

    def _call(self, work: Awaitable[None]) -> None:
        async def run() -> None:
            await work

        asyncio.run_coroutine_threadsafe(run(), self._loop).result(10)

    async def _listen(self, on: socket.socket) -> None:
        self._server = await asyncio.start_server(self._serve, sock=on)

    async def _end(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        tasks = list(self._sockets)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._sockets.add(task)
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                exchange = await self._read(reader, writer)
                fault = self._take(exchange.path)
                self.seen.append(f"{exchange.method} {exchange.path}")
                await fault(exchange)
        except asyncio.CancelledError:
            pass  # the proxy ends; asyncio would report the cancellation as a failure of its callback
        finally:
            self._sockets.discard(task)
            writer.close()

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Exchange:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        lines = [line for line in head.split("\r\n")[:-2] if not line.lower().startswith("connection:")]
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        method, where, _ = lines[0].split(" ", 2)
        raw = "\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1") + body
        path = re.sub(r"^https?://[^/]*", "", where).partition("?")[0]
        return Exchange(method, path, raw, headers.get("host", ""), self._target, reader, writer)

    def _take(self, path: str) -> Fault:
        for plan in self._plans:
            if plan.path in ("*", path) and plan.times != 0:
                if plan.times is not None:
                    plan.times -= 1
                return plan.fault
        return passed
