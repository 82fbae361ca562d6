"""One client in front of the gateway, with a connection of its own to each server behind it."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from mcp.shared.exceptions import MCPError

from ..redaction import log_failure
from ..toolset.canonical import canonical_json
from ..toolset.errors import INVALID_REQUEST
from .channel import Channel, Client
from .link import Link
from .upstream import Upstream, Upstreams

__all__ = ["Front", "Places", "Pool"]

_log = logging.getLogger("gopher_mcp_python.gateway")
# Seconds that a client's handshake waits for the servers to say what they offer.
WELCOME_SECONDS = 10.0
# Connections of a client without a session (2026-07-28) that wait for its next request: how many, and how long.
MAX_IDLE = 32
IDLE_SECONDS = 60.0
# The same, of all clients together.
MAX_ALL_IDLE = 256
# Sessions, and requests of clients without one, that one caller may have at the same time: each has connections (of a
# command, a process) of its own.
MAX_OF_CALLER = 500


class Front:
    """A client and its links to the servers. No link is shared with another client, so no answer reaches one."""

    def __init__(self, upstreams: Upstreams, client: Client, channel: Channel | None) -> None:
        self.client = client
        self.channel = channel
        self.upstreams = upstreams
        self.listeners: set[Callable[[str, Any], None]] = set()
        self._links = {upstream.name: Link(upstream, client, channel, self._told) for upstream in upstreams}
        self.log_level: dict[str, Any] | None = None

    @property
    def links(self) -> list[Link]:
        return list(self._links.values())

    def link(self, upstream: Upstream) -> Link:
        return self._links[upstream.name]

    async def welcomes(self) -> dict[str, dict[str, Any]]:
        """What each server said when it was connected to, by the server's name; one that can't be reached is left
        out: the client hears of it when it uses that server."""

        async def one(link: Link) -> dict[str, Any]:
            return (await link.session()).welcome

        tasks = {name: asyncio.ensure_future(one(link)) for name, link in self._links.items()}
        _, late = await asyncio.wait(tasks.values(), timeout=WELCOME_SECONDS)
        for task in late:
            task.cancel()
        found = {}
        for name, task in tasks.items():
            if task in late or task.cancelled():
                continue
            error = task.exception()
            if error is None:
                found[name] = task.result()
            else:
                log_failure(_log, f"The server {name} can't be reached", error)
        return found

    async def _told(self, method: str, params: Any) -> None:
        """A server's notice that belongs to no call."""
        for listener in list(self.listeners):
            listener(method, params)
        if self.channel is not None:
            await self.channel.notify(method, params)

    async def close(self) -> None:
        """Ends all links."""
        await asyncio.gather(*(link.close() for link in self._links.values()))


class Places:
    """How many fronts each caller has at once."""

    def __init__(self) -> None:
        self._taken: Counter[str] = Counter()

    def take(self, caller: str) -> None:
        """Raises MCPError when the caller has as many as one may have."""
        if self._taken[caller] >= MAX_OF_CALLER:
            raise MCPError(INVALID_REQUEST, f"this caller has {MAX_OF_CALLER} sessions or calls open already: end some")
        self._taken[caller] += 1

    def give_back(self, caller: str) -> None:
        self._taken[caller] -= 1
        if not self._taken[caller]:
            del self._taken[caller]


class Pool:
    """Fronts of clients without a session: each request has one for itself while it is under way, so what a server
    asks meanwhile is asked for that request. Afterwards it waits for the same client's next one."""

    def __init__(self, upstreams: Upstreams) -> None:
        self._upstreams = upstreams
        self._idle: dict[str, list[tuple[Front, asyncio.TimerHandle]]] = defaultdict(list)
        self._since: dict[Front, str] = {}  # all that are idle, the longest first, each with its key
        self._places = Places()
        self._closed = False
        self._ending: set[asyncio.Task[None]] = set()

    def take(self, client: Client) -> Front:
        """A front for one request, to be given back. Raises MCPError when the caller has too many."""
        self._places.take(client.caller)
        idle = self._idle.get(_key(client))
        return self._leave(idle[-1][0]) if idle else Front(self._upstreams, client, None)

    def give_back(self, front: Front) -> None:
        self._places.give_back(front.client.caller)
        key = _key(front.client)
        if self._closed or len(self._idle.get(key, ())) >= MAX_IDLE:
            self._end(front)
            return
        timer = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._expire, front)
        self._idle[key].append((front, timer))
        self._since[front] = key
        if len(self._since) > MAX_ALL_IDLE:
            self._expire(next(iter(self._since)))

    def _leave(self, front: Front) -> Front:
        """It is idle no longer."""
        key = self._since.pop(front)
        for entry in self._idle[key]:
            if entry[0] is front:
                entry[1].cancel()
        self._idle[key] = [entry for entry in self._idle[key] if entry[0] is not front]
        if not self._idle[key]:
            del self._idle[key]
        return front

    def _expire(self, front: Front) -> None:
        self._end(self._leave(front))

    def _end(self, front: Front) -> None:
        task = asyncio.ensure_future(front.close())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        """Ends all that wait."""
        self._closed = True
        for front in list(self._since):
            self._expire(front)
        if self._ending:
            await asyncio.wait(self._ending)


def _key(client: Client) -> str:
    """Requests share a connection when all that was declared on it is the same."""
    declared: Mapping[str, Any] = {
        "caller": client.caller, "version": client.version, "capabilities": client.capabilities, "info": client.info
    }  # fmt: skip
    return canonical_json(declared)


async def gathered(works: list[Any], names: list[str]) -> list[Any]:
    """The results of all servers that gave one, None for the others; when none did, the first failure is raised."""
    results = await asyncio.gather(*works, return_exceptions=True)
    failures = [result for result in results if isinstance(result, BaseException)]
    for failure in failures:
        if not isinstance(failure, MCPError):
            raise failure
    if failures and len(failures) == len(results):
        raise failures[0]
    for name, result in zip(names, results, strict=True):
        if isinstance(result, BaseException):
            log_failure(_log, f"The server {name} is left out of a list", result)
    return [None if isinstance(result, BaseException) else result for result in results]
