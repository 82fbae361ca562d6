"""The REST interface: any request at all gets an answer in the documented shape; nothing fails, nothing leaks.

Input: {"requests": [{"method": ..., "path": ..., "query": ..., "headers": {...}, "json": ... or "body": "...",
"to": number of a pending elicitation, "chunks": how many pieces}]}; in a path {id} stands for the elicitation's id.
"""

from __future__ import annotations

import asyncio
import json
import logging
import tempfile
from pathlib import Path
from typing import Any

from gopher_mcp_python.serve import Principal, Uploads, create_app, tokens
from gopher_mcp_python.store import model
from gopher_mcp_python.store.core import Store
from gopher_mcp_python.store.keys import KeyRing
from gopher_mcp_python.store.memory import MemoryBackend

from ..reading import document
from .store import FORM

LARGEST = 4_000
BASE = "/v1/mcp/elicitations"
HOST = "127.0.0.1:8123"
GOOD = "Bearer good"
MOST_REQUESTS = 6
LOG = logging.getLogger("gopher_mcp_python")
WORDS: tuple[Any, ...] = (
    "requests", "method", "path", "query", "headers", "json", "body", "to", "chunks", "GET", "POST", "HEAD", "PUT",
    "OPTIONS", BASE, BASE + "/{id}", BASE + "/{id}/respond", BASE + "/{id}/cancel", BASE + "/{id}/check",
    BASE + "/{id}/file", "/v1/whoami", "/openapi.json", "/health", "/ready", "/", "/app.js", "limit=1", "limit=0",
    "after={id}", "host", "origin", "content-type", "content-length", "authorization", "x-file-name",
    "application/json",
    "text/csv", "application/json; charset=utf-16", "Bearer bad", "Basic Z29vZA==", "http://127.0.0.1:8123",
    "http://evil.example", "sec-fetch-site", "cross-site", "transfer-encoding", "response", "fields", "name", "text",
    "picked", "state", "value", "choice", "confirmed", "action", "accept", "decline", "content", "a", "b",
    {"response": {"value": "x"}}, {"response": {"choice": "a"}}, {"response": {"confirmed": True}}, {"fields": []},
    {"fields": [{"name": "a", "text": "x"}]}, {"response": {"action": "accept", "content": {"a": "x"}}},
)  # fmt: skip
NEW = (
    model.string_input("Which branch?", max_length=10),
    model.single_choice("Where?", ["a", "b"]),
    model.confirmation("Delete it?", tool="drop", arguments={"id": 7}),
    model.file_upload("The list?", media_types=["text/*"], max_bytes=50),
)


class OneCaller:
    """Knows one token."""

    def authenticate(self, authorization: str | None) -> Principal | None:
        good = tokens.bearer_of(authorization) == "good"
        return Principal("ada", "laptop", frozenset({"answer"})) if good else None


class House:
    """An application over a store, in a loop of its own; made once."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory()
        self.store = Store(MemoryBackend(), KeyRing.generate(), rate=None)
        self.app = create_app(
            self.store,
            OneCaller(),
            allowed_hosts=[HOST],
            uploads=Uploads(Path(self.folder.name) / "uploads", max_per_caller=10_000),
            requests_per_minute=1 << 40,
            failures_per_minute=1 << 40,
        )
        self.inputs = 0
        self.failures: list[str] = []
        self.noticing = logging.Handler(logging.WARNING)
        self.noticing.emit = lambda record: self.failures.append(record.getMessage())  # type: ignore[method-assign]
        LOG.addHandler(self.noticing)

    def close(self) -> None:
        LOG.removeHandler(self.noticing)
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()
        self.store.close()
        self.folder.cleanup()

    def fresh(self) -> list[str]:
        """New questions in place of those that are pending: their ids."""
        for one in self.store.pending("ada", limit=1000):
            self.store.cancel("ada", one.id)
        from gopher_mcp_python import GopherAgentElicitationRequest

        form = GopherAgentElicitationRequest("form", message="Who?", requested_schema=FORM)
        return [self.store.create("ada", new).id for new in (*NEW, model.mcp_form(form))]


_house: House | None = None


def one_input(data: bytes) -> None:
    global _house
    told = document(data)
    requests = told.get("requests") if told else None
    if not isinstance(requests, list):
        return
    house = _house = _house or House()
    ids = house.fresh()
    for request in requests[:MOST_REQUESTS]:
        if isinstance(request, dict):
            check_request(house, request, ids)
    assert not house.failures, house.failures
    house.inputs += 1
    if house.inputs == 300:  # nothing of what was asked goes
        close()


def close() -> None:
    global _house
    if _house is not None:
        _house.close()
    _house = None


def check_request(house: House, request: dict[str, Any], ids: list[str]) -> None:
    to = request.get("to")
    id = ids[to % len(ids)] if type(to) is int else ids[0]
    scope, body = scope_of(request, id), body_of(request)
    if scope is None:
        return
    status, headers, answer = house.loop.run_until_complete(asyncio.wait_for(talk(house, scope, body, request), 60))
    assert status in (200, 201, 307, 403, 401, 404, 405, 408, 409, 413, 415, 422, 429, 503), (status, answer)
    kind = headers.get("content-type", "")
    if status >= 400 and scope["method"] != "HEAD":
        error = json.loads(answer)["error"]
        assert isinstance(error["code"], str) and isinstance(error["message"], str) and len(error["message"]) < 400
    if kind.startswith("application/json") and scope["method"] != "HEAD":
        json.loads(answer)
    assert headers.get("x-content-type-options") == "nosniff"
    sent = scope["headers"]
    if not any(name == b"authorization" and value == GOOD.encode() for name, value in sent):
        assert not scope["path"].startswith(BASE) or status >= 400, "an answer without a token"


def scope_of(request: dict[str, Any], id: str) -> dict[str, Any] | None:
    method, path = request.get("method", "GET"), request.get("path", BASE)
    query, given = request.get("query", ""), request.get("headers", {})
    if not all(isinstance(one, str) for one in (method, path, query)) or not isinstance(given, dict):
        return None
    if path.partition("{")[0].rstrip("/") == BASE + "/events" or not method.isascii() or not path.startswith("/"):
        return None  # the feed has no end
    told: dict[str, Any] = {"host": HOST, "authorization": GOOD, **given}
    headers = [
        (name.lower().encode("utf-8", "replace"), value.encode("utf-8", "replace"))
        for name, value in told.items()
        if isinstance(value, str)
    ]
    if "json" in request and "content-type" not in given:
        headers.append((b"content-type", b"application/json"))
    path = path.replace("{id}", id).encode("utf-8", "replace").decode()
    return {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method.upper(), "scheme": "http",
        "path": path, "raw_path": path.encode(), "root_path": "", "headers": headers, "client": ("127.0.0.1", 5),
        "query_string": query.replace("{id}", id).encode("utf-8", "replace"), "server": ("127.0.0.1", 8123),
    }  # fmt: skip


def body_of(request: dict[str, Any]) -> bytes:
    if "json" in request:
        return json.dumps(request["json"]).encode()
    body = request.get("body", "")
    return body.encode("utf-8", "surrogatepass") if isinstance(body, str) else b""


async def talk(
    house: House, scope: dict[str, Any], body: bytes, request: dict[str, Any]
) -> tuple[int, dict[str, str], bytes]:
    pieces = request.get("chunks")
    step = max(1, len(body) // (pieces % 5 + 1)) if type(pieces) is int else max(1, len(body))
    left = [body[at : at + step] for at in range(0, len(body), step)] or [b""]
    replies: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        if not left:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}

    async def send(message: dict[str, Any]) -> None:
        replies.append(message)

    await house.app(scope, receive, send)  # type: ignore[arg-type]
    start, *parts = replies
    assert start["type"] == "http.response.start" and not parts[-1].get("more_body", False), "an answer has an end"
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in start["headers"]}
    return start["status"], headers, b"".join(part.get("body", b"") for part in parts)
