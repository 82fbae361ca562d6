"""`subscriptions/listen` (2026-07-28): the servers' notices of change on one stream of the client."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ServerEvent, event_from_wire
from mcp_types import SubscriptionsListenRequestParams

from .front import Front
from .inbound import Inbound
from .link import Link

__all__ = ["listen"]

_log = logging.getLogger("gopher_mcp_python.gateway")


class _Bus:
    """The SDK's seam for events, fed by the servers of one client."""

    def __init__(self, front: Front) -> None:
        self._front = front

    async def publish(self, event: ServerEvent) -> None:
        raise NotImplementedError("events come from the servers")

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        def told(method: str, params: Any) -> None:
            event = event_from_wire(method, params)
            if event is not None:
                listener(event)

        self._front.listeners.add(told)
        return lambda: self._front.listeners.discard(told)


async def listen(inbound: Inbound) -> Any:
    """Serves one stream until its client leaves."""
    params = SubscriptionsListenRequestParams.model_validate(inbound.params, by_name=False)
    watching = [asyncio.ensure_future(_watch(link, inbound)) for link in inbound.front.links]
    try:
        return await ListenHandler(_Bus(inbound.front))(inbound.context, params)
    finally:
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)


async def _watch(link: Link, inbound: Inbound) -> None:
    """Has one server tell: an open session of the older protocols does so by itself, but for single resources."""
    wanted = inbound.params.get("notifications") or {}
    with suppress(MCPError):
        session = await link.session()
        if session.modern:
            await link.ask("subscriptions/listen", {"notifications": wanted})
            return
        for uri in wanted.get("resourceSubscriptions") or ():
            with suppress(MCPError):
                await link.ask("resources/subscribe", {"uri": uri})
