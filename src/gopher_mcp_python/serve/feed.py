"""The feed of changes: server-sent events, each caller's own only, ids and states, never what was asked or answered.

    event: change            id: 3f2a-17           data: {"id": "el_...", "status": "responded"}
    event: reset             the list has to be read anew: changes were missed (or nobody can tell)
    : heartbeat              every 15 s

After a break a browser sends the last id that it saw (Last-Event-ID): what came since is sent again while it is
remembered, which is a matter of a few thousand changes of this process; otherwise `reset` says so.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

__all__ = ["Feed", "Subscription", "TooMany"]

_LOG = logging.getLogger("gopher_mcp_python.serve")
REMEMBERED = 2_000  # changes of all callers
QUEUE = 500  # changes that one subscriber may be behind
PER_CALLER, ALL = 10, 200  # subscribers
HEARTBEAT = 15.0  # seconds


class TooMany(Exception):
    """There are as many subscribers as there may be."""


@dataclass(frozen=True)
class _Event:
    number: int
    caller: str
    text: str


class Feed:
    """Changes in, streams out. All of it on one event loop but `tell`, which any thread may call.

    Args:
        heartbeat: seconds.
    """

    def __init__(self, *, heartbeat: float = HEARTBEAT, per_caller: int = PER_CALLER) -> None:
        self._boot = secrets.token_hex(4)
        self.heartbeat, self._per_caller = heartbeat, per_caller
        self._number = 0
        self._past: deque[_Event] = deque(maxlen=REMEMBERED)
        self._subscribers: list[Subscription] = []
        self._loop: asyncio.AbstractEventLoop | None = None

    def open(self) -> None:
        """Begins, on the running loop."""
        self._loop = asyncio.get_running_loop()

    def close(self) -> None:
        """Ends all streams."""
        self._loop = None
        for subscriber in self._subscribers:
            subscriber.put(None)

    def tell(self, caller: str, elicitation: str, status: str) -> None:
        """A change happened. Any thread."""
        text = json.dumps({"id": elicitation, "status": status})
        self._on_loop(lambda: self._add(caller, text))

    def tell_missed(self) -> None:
        """Changes may have been missed. Any thread."""
        self._on_loop(self._forget)

    def _on_loop(self, step: Callable[[], None]) -> None:
        loop = self._loop
        if loop is None:
            return
        try:
            loop.call_soon_threadsafe(step)
        except RuntimeError:  # the loop has ended meanwhile
            _LOG.debug("a change came after the end")

    def _forget(self) -> None:
        """Everybody reads the list anew, also who comes back later."""
        self._past.clear()
        self._number += 1
        for subscriber in self._subscribers:
            subscriber.put_missed()

    def _add(self, caller: str, text: str) -> None:
        self._number += 1
        event = _Event(self._number, caller, text)
        self._past.append(event)
        for subscriber in self._subscribers:
            if subscriber.caller == caller:
                subscriber.put(event)

    def subscribe(self, caller: str, last_id: str | None) -> Subscription:
        """A new subscriber, to be closed by whoever asked. Raises TooMany."""
        mine = sum(subscriber.caller == caller for subscriber in self._subscribers)
        if mine >= self._per_caller or len(self._subscribers) >= ALL:
            raise TooMany
        subscription = Subscription(self, caller, self._missed(caller, last_id))
        self._subscribers.append(subscription)
        return subscription

    def _missed(self, caller: str, last_id: str | None) -> list[bytes]:
        """What somebody who comes back has to be told."""
        here = f"id: {self._boot}-{self._number}\n".encode()
        if last_id is None:
            return [b"retry: 2000\n" + here + b"event: ready\ndata: {}\n\n"]
        boot, _, number = last_id.partition("-")
        known = boot == self._boot and number.isascii() and number.isdigit() and len(number) < 18
        oldest = self._past[0].number if self._past else self._number + 1
        if not known or not oldest - 1 <= int(number) <= self._number:
            return [here + b"event: reset\ndata: {}\n\n"]
        return [self.bytes_of(event) for event in self._past if event.number > int(number) and event.caller == caller]

    @property
    def is_open(self) -> bool:
        return self._loop is not None

    def reset(self) -> bytes:
        """That the list has to be read anew."""
        return f"id: {self._boot}-{self._number}\nevent: reset\ndata: {{}}\n\n".encode()

    def leave(self, subscription: Subscription) -> None:
        """Forgets a subscriber."""
        if subscription in self._subscribers:
            self._subscribers.remove(subscription)

    def bytes_of(self, event: _Event) -> bytes:
        return f"id: {self._boot}-{event.number}\nevent: change\ndata: {event.text}\n\n".encode()


class Subscription:
    """One reader of the feed."""

    def __init__(self, feed: Feed, caller: str, first: list[bytes]) -> None:
        self.caller = caller
        self._feed, self._first = feed, first
        self._queue: asyncio.Queue[_Event | None] = asyncio.Queue(QUEUE)
        self._is_behind = False

    def put(self, event: _Event | None) -> None:
        """Hands on a change; None is the end."""
        try:
            self._queue.put_nowait(event)
        except asyncio.QueueFull:
            self._is_behind = True

    def put_missed(self) -> None:
        """Hands on that changes were missed."""
        self._is_behind = True
        if self._queue.empty():
            self._queue.put_nowait(_Event(0, self.caller, ""))  # wakes it

    def close(self) -> None:
        self._feed.leave(self)

    async def chunks(self, heartbeat: float, is_welcome: Callable[[], Awaitable[bool]]) -> AsyncIterator[bytes]:
        """What goes to the client, until the feed ends or `is_welcome` says no. It is asked every `heartbeat` seconds,
        however much happens meanwhile."""
        yield b"".join([b": connected\n\n", *self._first])
        now = asyncio.get_running_loop().time
        beat = now() + heartbeat
        while self._feed.is_open:
            if now() >= beat:
                if not await is_welcome():
                    return
                beat = now() + heartbeat
                yield b": heartbeat\n\n"
            try:
                event = await asyncio.wait_for(self._queue.get(), max(0.001, beat - now()))
            except asyncio.TimeoutError:
                continue
            if event is None:
                return
            yield self._catch_up() if self._is_behind else self._feed.bytes_of(event)

    def _catch_up(self) -> bytes:
        """A slow reader is told to read the list instead of every change."""
        while not self._queue.empty():
            self._queue.get_nowait()
        self._is_behind = False
        return self._feed.reset()
