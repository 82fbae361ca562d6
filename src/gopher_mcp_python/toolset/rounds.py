"""One call on one session, with the rounds of questions that 2026-07-28 lets a server ask through its result.

Several questions of one round are asked one after another, in the server's order, and their answers go back together;
`requestState` is echoed as it came, or left out. Nothing of it leaks to another call: it lives in this one's frame.
"""

from __future__ import annotations

import asyncio
from typing import Any

import mcp_types as types

from .calls import ServerRequest
from .elicitation import InvalidElicitation, read_request
from .errors import ToolsetError
from .record import Record
from .session import Session

# Rounds of questions that one call may ask through its result (the SDKs' own limit).
MAX_INPUT_ROUNDS = 10
# Seconds after which a server that sent only a state is asked again.
_AGAIN_SECONDS = 0.1


async def call_with_rounds(session: Session, request: ServerRequest, record: Record) -> Any:
    """Raises MCPError as the SDK does, or ToolsetError for input that can't be given."""
    session.questions.calls.add(record)
    try:
        result = await session.send(request)
        for _ in range(MAX_INPUT_ROUNDS):
            if not isinstance(result, types.InputRequiredResult):
                return result
            responses = await _fulfil(session, result, record)
            result = await session.send(request, responses, result.request_state)
    except asyncio.CancelledError:
        session.questions.given_up(record)
        raise
    finally:
        session.questions.calls.discard(record)
    if not isinstance(result, types.InputRequiredResult):
        return result
    raise ToolsetError(f"{_who(session, record)} asked for input more than {MAX_INPUT_ROUNDS} times")


async def _fulfil(session: Session, result: types.InputRequiredResult, record: Record) -> Any:
    if not result.input_requests:
        await asyncio.sleep(_AGAIN_SECONDS)
        return None
    # A round is a request of its own: what the last one asked may be asked again, since its answer was not enough.
    record.prompts = {key: prompt for key, prompt in record.prompts.items() if prompt.open}
    raw = (record.raw_result or {}).get("inputRequests") or {}
    responses: dict[str, Any] = {}
    for key, entry in result.input_requests.items():
        if isinstance(entry, types.ListRootsRequest) and session.roots:
            responses[key] = types.ListRootsResult(roots=list(session.roots))
            continue
        if not isinstance(entry, types.ElicitRequest):
            raise ToolsetError(f"{_who(session, record)} asked for {entry.method}, which is not served here")
        params = raw.get(key, {}).get("params") or entry.params.model_dump(mode="json", by_alias=True)
        responses[key] = types.ElicitResult(**await _ask(session, key, params, raw.get(key), record))
    return responses


async def _ask(session: Session, key: str, params: Any, raw: Any, record: Record) -> dict[str, Any]:
    try:
        request = read_request(
            params, modes=session.questions.modes, version=session.version, request_id=key,
            raw={"id": key, **(raw if isinstance(raw, dict) else {})}, server=session.connection.label,
            tool=record.tool,
        )  # fmt: skip
    except InvalidElicitation as error:
        raise ToolsetError(f"{_who(session, record)}: {error}") from None
    return await session.questions.answer_for_call(request, record)


def _who(session: Session, record: Record) -> str:
    return f"{record.what} of {session.connection.label}"
