"""The SDK's JSON-RPC dispatcher with the elicitation part done here, on the messages as they came.

The SDK's own callback sees parsed parameters only, declares both modes whenever there is one, and answers a malformed
request for us. Its `ClientSession` takes a dispatcher from outside, so this is a public seam: `run` gets the handlers
to call for what the server sends, `send_raw_request` gets every request of ours before it leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import anyio.abc
from anyio import TASK_STATUS_IGNORED
from mcp.shared.dispatcher import CallOptions, DispatchContext, OnNotify, OnNotifyIntercept, OnRequest
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types import CLIENT_CAPABILITIES_META_KEY

from .record import current_record

# Whose results are kept as they came. The SDK makes requests of its own within a call (it lists the tools).
_KEPT = frozenset(("tools/call", "prompts/get", "resources/read"))


class Answering(Protocol):
    """What a session does with what its server asks; see `Questions`."""

    @property
    def modes(self) -> frozenset[str]: ...

    async def answer(self, request_id: Any, params: Any) -> dict[str, Any]: ...

    def completed(self, params: Any) -> None: ...


class ElicitingDispatcher(JSONRPCDispatcher[TransportContext]):
    """Declares exactly the served modes, answers `elicitation/create`, notes completions and raw results. `lost` is
    called when the server's stream has ended."""

    def __init__(self, read_stream: Any, write_stream: Any, questions: Answering, lost: Callable[[], None]) -> None:
        super().__init__(read_stream, write_stream)
        self._questions = questions
        self._lost = lost

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,
        *,
        _related_request_id: Any = None,
    ) -> dict[str, Any]:
        declared = self._declare(method, params)
        result = await super().send_raw_request(method, declared, opts, _related_request_id=_related_request_id)
        if method in _KEPT and (record := current_record()) is not None:
            record.raw_result = result
        return result

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = TASK_STATUS_IGNORED,
    ) -> None:
        async def request(
            context: DispatchContext[TransportContext], method: str, params: Mapping[str, Any] | None
        ) -> dict[str, Any]:
            if method == "elicitation/create":
                return await self._questions.answer(context.request_id, params)
            return await on_request(context, method, params)

        def intercept(method: str, params: Mapping[str, Any] | None) -> bool:
            if method == "notifications/elicitation/complete":
                self._questions.completed(params)
                return True
            return on_notify_intercept(method, params) if on_notify_intercept is not None else False

        try:
            await super().run(request, on_notify, intercept, task_status=task_status)
        finally:
            self._lost()

    def _declare(self, method: str, params: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        if not self._questions.modes or params is None:
            return params
        modes = {mode: {} for mode in sorted(self._questions.modes)}  # type: dict[str, dict[str, Any]]
        if method == "initialize":
            return {**params, "capabilities": {**params.get("capabilities", {}), "elicitation": modes}}
        meta = params.get("_meta")
        if isinstance(meta, Mapping) and isinstance(meta.get(CLIENT_CAPABILITIES_META_KEY), Mapping):
            declared = {**meta[CLIENT_CAPABILITIES_META_KEY], "elicitation": modes}
            return {**params, "_meta": {**meta, CLIENT_CAPABILITIES_META_KEY: declared}}
        return params
