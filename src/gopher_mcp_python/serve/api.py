"""The REST interface: a caller's own elicitations, listed, shown, answered and cancelled.

Not found and not yours look the same (404). Of two different answers one is recorded and the other gets 409; the same
answer again is fine. What a person typed into a form on the page (`fields`) is judged before it counts as an answer.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from ..forms import FormContentError
from .bodies import declared_length, media_type_of, read_json
from .drafts import fill, states_json
from .feed import TooMany
from .files import NO_FILES, file_answer, keeping_file, receive
from .problems import Problem
from .replies import Json
from .talk import ask
from .views import form_of, summary, view

if TYPE_CHECKING:
    from ..store.core import Outcome, Store
    from ..store.model import StoredElicitation
    from .access import Access
    from .feed import Feed, Subscription
    from .tokens import Principal
    from .uploads import Uploads

__all__ = ["Api"]

PREFIX = "/v1/mcp/elicitations"
_ID = re.compile(r"el_[A-Za-z0-9_-]{22}\Z")
_LIMIT = re.compile(r"[1-9][0-9]{0,2}\Z")
MAX_LIMIT = 100


class Api:
    """The endpoints over one store."""

    def __init__(self, store: Store, access: Access, feed: Feed, uploads: Uploads | None) -> None:
        self._store, self._access, self._feed, self._uploads = store, access, feed, uploads

    def routes(self) -> list[Route]:
        one = PREFIX + "/{id}"
        return [
            _route(PREFIX, self.list, "GET"),
            _route(PREFIX + "/events", self.events, "GET"),
            _route(one, self.show, "GET"),
            _route(one + "/respond", self.respond, "POST"),
            _route(one + "/cancel", self.cancel, "POST"),
            _route(one + "/check", self.check, "POST"),
            _route(one + "/file", self.file, "POST"),
            _route("/v1/whoami", self.whoami, "GET"),
        ]

    # ---- reading ---------------------------------------------------------------------------------------------------

    async def whoami(self, request: Request) -> Response:
        """Who the token is for."""
        who = await self._access.admit(request, None)
        return Json({"caller": who.caller, "name": who.name, "scopes": sorted(who.scopes)})

    async def list(self, request: Request) -> Response:
        """Pending ones, oldest first, in pages."""
        who = await self._access.admit(request)
        limit, after = _paging(request)
        page = await ask(self._store.pending, who.caller, limit=limit, after=after)
        return Json({"elicitations": [summary(one) for one in page], "next": page.next})

    async def show(self, request: Request) -> Response:
        """One in full, whatever its state."""
        who = await self._access.admit(request)
        one = await self._one(request, who)
        return Json(await run_in_threadpool(view, one))

    async def events(self, request: Request) -> Response:
        """The feed of changes."""
        who = await self._access.admit(request)
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        last = request.headers.get("last-event-id")
        try:
            subscription = self._feed.subscribe(who.caller, last[:80] if last else None)
        except TooMany:
            raise Problem(429, "too many open feeds: close one", headers={"retry-after": "10"}) from None

        async def is_welcome() -> bool:
            return await self._access.is_still_good(request)

        return _FeedResponse(subscription, self._feed.heartbeat, is_welcome)

    # ---- answering -------------------------------------------------------------------------------------------------

    async def respond(self, request: Request) -> Response:
        """Records an answer: `response` as it is, or `fields` as typed into a form."""
        who = await self._access.admit(request)
        body = await read_json(request)
        one = await self._one(request, who)
        response = await self._response(body, one)

        async def record() -> Outcome:
            return await ask(self._store.respond, who.caller, one.id, response, by=who.name)

        if one.type == "file_upload" and self._uploads is not None:
            return _outcome(await keeping_file(self._uploads, one, response, record), one.id)
        return _outcome(await record(), one.id)

    async def cancel(self, request: Request) -> Response:
        """Ends it without an answer."""
        who = await self._access.admit(request)
        if await read_json(request, most=1024, empty=True):
            raise Problem(422, "cancel takes no members", code="malformed")
        one = await self._one(request, who)
        outcome = await ask(self._store.cancel, who.caller, one.id, by=who.name)
        result = _outcome(outcome, one.id)
        if self._uploads is not None:
            await run_in_threadpool(self._uploads.drop, one.id)
        return result

    async def check(self, request: Request) -> Response:
        """Judges what is typed into a form so far; nothing is recorded and no try is used up."""
        who = await self._access.admit(request)
        body = await read_json(request)
        if body.keys() != {"fields"}:
            raise Problem(422, 'send {"fields": [...]}', code="malformed")
        one = await self._one(request, who)
        return Json(await run_in_threadpool(_judged, one, body["fields"]))

    async def file(self, request: Request) -> Response:
        """Takes a file for a file_upload; the answer then names its file_id."""
        who = await self._access.admit(request)
        one = await self._one(request, who)
        if self._uploads is None:
            raise Problem(503, NO_FILES, headers={"connection": "close"})
        upload = await receive(
            request, self._uploads, one, who.caller, media_type_of(request), declared_length(request)
        )
        return Json(upload.answer(), 201)

    # ---- helpers ---------------------------------------------------------------------------------------------------

    async def _one(self, request: Request, who: Principal) -> StoredElicitation:
        identity = request.path_params["id"]
        if not _ID.match(identity):
            raise Problem(404, "there is no such elicitation")
        return await ask(self._store.get, who.caller, identity)

    async def _response(self, body: dict[str, Any], one: StoredElicitation) -> Any:
        if body.keys() == {"fields"}:
            return await run_in_threadpool(_filled, one, body["fields"])
        if body.keys() != {"response"} or not isinstance(body["response"], dict):
            raise Problem(422, 'send {"response": {...}} (or, for a form, {"fields": [...]})', code="malformed")
        response: dict[str, Any] = body["response"]
        if one.type == "file_upload":
            return await run_in_threadpool(file_answer, self._uploads, one, response)
        return response


class _FeedResponse(StreamingResponse):
    """A stream that gives its place back however it ends."""

    def __init__(self, subscription: Subscription, heartbeat: float, is_welcome: Callable[[], Awaitable[bool]]) -> None:
        headers = {"x-accel-buffering": "no"}  # a proxy would hold events back
        super().__init__(subscription.chunks(heartbeat, is_welcome), media_type="text/event-stream", headers=headers)
        self._subscription = subscription

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._subscription.close()


def _route(path: str, endpoint: Callable[[Request], Awaitable[Response]], method: str) -> Route:
    return Route(path, endpoint, methods=[method])


def _paging(request: Request) -> tuple[int, str | None]:
    query = request.query_params
    if set(query) - {"limit", "after"} or len(query.multi_items()) != len(query):
        raise Problem(422, "the query takes limit and after, once each", code="malformed")
    limit, after = query.get("limit", str(MAX_LIMIT)), query.get("after")
    if not _LIMIT.match(limit) or int(limit) > MAX_LIMIT:
        raise Problem(422, f"limit must be 1 to {MAX_LIMIT}", code="malformed", fields={"limit": f"1 to {MAX_LIMIT}"})
    if after is not None and not _ID.match(after):
        problem = {"after": "must be the next of the page before"}
        raise Problem(422, "after is no id", code="malformed", fields=problem)
    return int(limit), after


def _outcome(outcome: Outcome, identity: str) -> Response:
    """What became of an answer. Raises Problem for what was not taken."""
    state = str(outcome.status.value)
    if outcome.kind in ("recorded", "already_recorded"):
        return Json({"id": identity, "outcome": outcome.kind, "status": state})
    if outcome.kind == "conflict":
        raise Problem(409, f"it has ended already ({state}); this changed nothing", status=state)
    more: dict[str, Any] = {"fields": dict(outcome.errors or {}), "retries_left": outcome.retries_left, "status": state}
    if outcome.kind == "validation_failed":
        raise Problem(422, "the last try was no valid answer: it has ended", code="validation_failed", **more)
    raise Problem(422, "this is no valid answer", **more)


def _judged(one: StoredElicitation, draft: object) -> dict[str, Any]:
    model = form_of(one)
    fill(model, draft)
    return states_json(model)


def _filled(one: StoredElicitation, draft: object) -> dict[str, Any]:
    """The answer that a filled-in form is. Raises Problem with what is wrong; no try is used up by that."""
    model = form_of(one)
    fill(model, draft)
    try:
        return {"action": "accept", "content": model.content()}
    except FormContentError:
        judged = states_json(model)
    problems = {field["name"]: field["problem"] for field in judged["fields"] if field["problem"]}
    raise Problem(422, "the form is not complete", code="incomplete", fields=problems, general=judged["general"])
