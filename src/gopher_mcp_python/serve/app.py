"""The application: REST, feed, page, health and the OpenAPI document, behind the guard."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..redaction import log_failure
from ..store.errors import StoreError
from .access import Access
from .api import Api
from .feed import HEARTBEAT, Feed
from .guard import SECONDS_PER_CHUNK, Guard, host_names
from .openapi import document
from .pages import page_routes
from .problems import Problem
from .replies import Json

if TYPE_CHECKING:
    from ..store.core import Store
    from ..store.outcome import Change
    from .tokens import Authenticator
    from .uploads import Uploads

__all__ = ["create_app"]

_LOG = logging.getLogger("gopher_mcp_python.serve")
_SWEEP_EVERY = 3600.0  # seconds
_READY_FOR = 1.0  # seconds for which what the store was found to be is taken to be so


def create_app(
    store: Store,
    authenticator: Authenticator,
    *,
    allowed_hosts: Iterable[str],
    uploads: Uploads | None = None,
    https: bool = False,
    requests_per_minute: int = 1200,
    failures_per_minute: int = 60,
    heartbeat_s: float = HEARTBEAT,
    patience_s: float = SECONDS_PER_CHUNK,
) -> Starlette:
    """The application over a store, which stays the caller's to close.

    Args:
        authenticator: tells who sends a request (TokenFile, or your own).
        allowed_hosts: what the Host header may be, such as "127.0.0.1:8123"; a port that is the scheme's own is left
            out ("mcp.example"). Pages of these hosts only may send requests.
        uploads: where files go that people answer with; None: file_upload can't be answered here.
        https: whether it is reached by https, so that browsers are told to stay there.
        requests_per_minute: of one caller.
        failures_per_minute: requests without a good token from one address.
        heartbeat_s: seconds between two signs of life of the feed.
        patience_s: seconds that a client may neither send nor read.

    Raises ValueError: no allowed host, or what is none.
    """
    access = Access(authenticator, per_minute=requests_per_minute, failures_per_minute=failures_per_minute)
    feed = Feed(heartbeat=heartbeat_s)
    api = Api(store, access, feed, uploads)
    app = Starlette(
        routes=[*api.routes(), *_health_routes(store), Route("/openapi.json", _openapi), *page_routes()],
        middleware=[Middleware(Guard, allowed_hosts=host_names(allowed_hosts), patience=patience_s, https=https)],
        exception_handlers={HTTPException: _http_exception},
        lifespan=_lifespan_of(store, feed, uploads),
    )
    app.router.redirect_slashes = False
    app.state.feed = feed
    return app


def _lifespan_of(store: Store, feed: Feed, uploads: Uploads | None) -> Any:
    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        def tell(change: Change) -> None:
            if change.id is None or change.caller is None or change.status is None:
                feed.tell_missed()
            else:
                feed.tell(change.caller, change.id, change.status.value)

        feed.open()
        unsubscribe = store.subscribe(tell)
        sweeping = asyncio.create_task(_sweep(uploads)) if uploads is not None else None
        try:
            yield
        finally:
            if sweeping is not None:
                sweeping.cancel()
            unsubscribe()
            feed.close()

    return lifespan


async def _sweep(uploads: Uploads) -> None:
    """Removes files that nobody answered with, now and then."""
    while True:
        await asyncio.sleep(_SWEEP_EVERY)
        try:
            await run_in_threadpool(uploads.sweep)
        except OSError as error:
            log_failure(_LOG, "files that nobody answered with can't be removed", error)


@dataclass
class _Found:
    """How the store was found to be, and when (monotonic)."""

    at: float = float("-inf")
    is_good: bool = False


def _health_routes(store: Store) -> list[Route]:
    asked, found = asyncio.Lock(), _Found()

    async def health(request: Request) -> Response:
        """The process answers."""
        return Json({"status": "ok"})

    async def ready(request: Request) -> Response:
        """The store answers as well. Anybody may ask, so the store is asked once a second at most, away or not."""
        async with asked:
            if time.monotonic() - found.at > _READY_FOR:
                try:
                    await run_in_threadpool(store.check)
                    found.is_good = True
                except StoreError:
                    found.is_good = False
                found.at = time.monotonic()
        if not found.is_good:
            raise Problem(503, "the store can't be reached", headers={"retry-after": "5"})
        return Json({"status": "ok"})

    return [Route("/health", health), Route("/ready", ready)]


async def _openapi(request: Request) -> Response:
    return Json(document())


async def _http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    texts = {404: "there is nothing at this path", 405: "not by this method"}
    problem = Problem(error.status_code, texts.get(error.status_code, "refused"), headers=error.headers)
    return problem.response()
