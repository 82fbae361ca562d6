"""One request of a client on its way through the gateway."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import (
    MCP_PARAM_HEADER_PREFIX,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    validate_mcp_param_headers,
    x_mcp_header_map,
)
from mcp_types import methods
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from ..toolset.canonical import canonical_json
from ..toolset.errors import INTERNAL_ERROR, INVALID_PARAMS
from ..toolset.rounds import MAX_INPUT_ROUNDS
from .channel import Channel, Client, Passage, RequestContext
from .front import Front
from .link import Link
from .rounds import OpenCall, OpenCalls, input_required
from .session import ASKED
from .states import States, is_ours

__all__ = ["Inbound"]

_log = logging.getLogger("gopher_mcp_python.gateway")
_PARAM_PREFIX = MCP_PARAM_HEADER_PREFIX.lower()


@dataclass
class Inbound:
    """A request, who made it, and the way back.

    Attributes:
        context: the SDK's, with the request as it came.
        front: the client's links.
        states: what seals and opens its rounds.
        calls: those that wait for a round.
        open: the call that goes on after this request was answered with a question.
    """

    context: RequestContext
    front: Front
    states: States
    calls: OpenCalls
    open: OpenCall | None = None
    state: dict[str, Any] | None = None
    passage: Passage = field(init=False)
    _own_token: str | None = field(default=None, init=False)
    _mirrored: dict[str, str] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        # The SDK's client in this process (2026-07-28) takes progress without a token, which no server could name.
        unnamed = self.client.modern and self.context.request is None and "progressToken" not in self._meta
        self._own_token = secrets.token_urlsafe(12) if unnamed else None
        self.channel = Channel(self.context.session, self.context.request_id, self._own_token)
        self.passage = Passage(what=self.method, channel=self.channel)
        if is_ours(self.params.get("requestState")):
            self.state = self.states.open(self.params["requestState"], self.whose)
            if self.state is None:
                raise MCPError(
                    INVALID_PARAMS, "requestState is for another call, or of another gateway: call the tool anew"
                )

    @property
    def method(self) -> str:
        return self.context.method

    @property
    def params(self) -> Mapping[str, Any]:
        return self.context.params or {}

    @property
    def _meta(self) -> Mapping[str, Any]:
        return self.params.get("_meta") or {}

    @property
    def client(self) -> Client:
        return self.front.client

    @property
    def whose(self) -> str:
        """What makes two requests rounds of one call."""
        params = {key: value for key, value in self.params.items() if key in ("name", "arguments", "uri")}
        return canonical_json({"caller": self.client.caller, "method": self.method, "params": params})

    def onward(self, **changed: Any) -> dict[str, Any]:
        """The parameters for the server: as they came, without what is the gateway's own."""
        params = {**self.params, **changed}
        if self._own_token is not None:
            params["_meta"] = {**self._meta, "progressToken": self._own_token}
        params.pop("task", None)  # tasks are not passed on, so nobody could ask for what became of one
        if is_ours(params.get("requestState")):
            params.pop("requestState")
            inner = (self.state or {}).get("inner")
            if inner is not None:
                params["requestState"] = inner
            if "confirm" in (self.state or {}):
                params.pop("inputResponses", None)
        return params

    @property
    def headers(self) -> dict[str, str]:
        """Arguments mirrored into headers: by the tool's schema where it is known, else as the client did. Nothing else
        of its request goes on."""
        if self._mirrored is not None:
            return self._mirrored
        request = self.context.request
        if request is None or not self.client.modern:
            return {}
        return {name: value for name, value in request.headers.items() if name.startswith(_PARAM_PREFIX)}

    def mirror(self, tool: Mapping[str, Any]) -> None:
        """From here on the headers are made of the arguments, which is what is judged and confirmed, so that no server
        and no proxy acts on another value. Raises MCPError when the client's own headers say something else."""
        schema, arguments = tool.get("inputSchema"), self.params.get("arguments") or {}
        request = self.context.request
        if find_invalid_x_mcp_header(schema) is not None:  # nobody may mirror by such a schema
            self._mirrored = {}
            return
        wrong = None
        if request is not None and self.client.modern:
            wrong = validate_mcp_param_headers(schema, arguments, request.headers)
        if wrong is not None:
            raise MCPError(wrong.code, wrong.message, data=wrong.data)
        self._mirrored = mcp_param_headers(x_mcp_header_map(schema), arguments)

    async def forward(self, link: Link, params: Mapping[str, Any]) -> dict[str, Any]:
        """To the server and back; what a server asks through its result is asked on the client's way back, if it has
        one. Raises MCPError."""
        for _ in range(MAX_INPUT_ROUNDS):
            result = await link.ask(self.method, params, self.passage, self.headers)
            await self.passage.told()
            if self.client.modern or result.get("resultType") != "input_required":
                return await self.shaped(link, result)
            params = {**params, "inputResponses": await self._answers(link, result.get("inputRequests") or {})}
            params.pop("requestState", None)
            if "requestState" in result:
                params["requestState"] = result["requestState"]
        raise MCPError(INTERNAL_ERROR, f"{link.upstream.name} asked for input more than {MAX_INPUT_ROUNDS} times")

    async def passed(self, link: Link, params: Mapping[str, Any]) -> dict[str, Any]:
        """As `forward`, for what no confirmation is about: the state of a gateway behind this one is kept within one of
        this one's, which go to no server. Raises MCPError."""
        result = await self.forward(link, params)
        inner = result.get("requestState")
        return {**result, "requestState": self.states.seal({"inner": inner}, self.whose)} if is_ours(inner) else result

    async def _answers(self, link: Link, requests: Mapping[str, Any]) -> dict[str, Any]:
        """What the client answers to a server's questions, as far as it declared that it can. Raises MCPError."""
        found = {}
        for key, entry in requests.items():
            method = entry.get("method") if isinstance(entry, Mapping) else None
            needed = ASKED.get(method) if isinstance(method, str) else None
            if needed is None or self.client.capabilities.get(needed) is None:
                what = f"does not support {needed}" if needed else "can't be asked that"
                raise MCPError(INTERNAL_ERROR, f"{link.upstream.name} asks for input, and the client {what}")
            found[key] = await self.channel.request(str(method), _with_id(entry.get("params")))
        return found

    async def shaped(self, link: Link, result: dict[str, Any]) -> dict[str, Any]:
        """The result as it came; where the two sides speak different versions, as the client's has it."""
        session = await link.session()
        if session.version == self.client.version:
            return result
        return shaped(self.method, self.client.version, result)

    async def deliver(self, link: Link, work: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        """Does the work of this request, in rounds where the server asks on a way back that the client has not."""
        session = await link.session()
        if not self.client.modern or session.modern:
            return await self._finished(work)
        self.open = OpenCall(self.passage, self.whose)
        self.passage.rounds = self.open
        self.open.start(lambda: self._finished(work))
        return await self.wait(self.open)

    async def _finished(self, work: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        try:
            return await work()
        finally:
            self.passage.finish()

    async def wait(self, call: OpenCall) -> dict[str, Any]:
        """The next thing that comes of an open call: its result, or what it asks."""
        result = await call.next()
        if result is not None:
            return result
        self.calls.park(call)
        return input_required(call.requests, self.states.seal({"round": call.id}, self.whose))

    async def next_round(self) -> dict[str, Any] | None:
        """Goes on with the open call that this request is a round of; None: it is none."""
        id = (self.state or {}).get("round")
        if id is None:
            return None
        call = self.calls.take(id, self.whose)
        try:
            call.answered(self.params.get("inputResponses"), self.channel)
        except MCPError:
            self.calls.park(call)
            raise
        return await self.wait(call)


def _with_id(params: Any) -> Any:
    """A question of 2026-07-28 for a client of the older versions, which want an id for each page."""
    if isinstance(params, Mapping) and params.get("mode") == "url" and not params.get("elicitationId"):
        return {**params, "elicitationId": secrets.token_urlsafe(16)}
    return params


def shaped(method: str, version: str, result: dict[str, Any]) -> dict[str, Any]:
    """A result as a version of the protocol has it."""
    if version in MODERN_PROTOCOL_VERSIONS:
        result = {"resultType": "complete", **result}
        if method.endswith("/list") or method == "resources/read":
            result = {"ttlMs": 0, "cacheScope": "private", **result}
    try:
        return methods.serialize_server_result(method, version, result)
    except KeyError:
        return result
    except ValidationError:
        _log.warning("A server's result of %s does not fit protocol %s", method, version)
        raise MCPError(INTERNAL_ERROR, f"the server's result of {method} does not fit protocol {version}") from None
