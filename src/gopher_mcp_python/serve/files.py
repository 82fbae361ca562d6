"""A file on its way from a request to the folder."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from .media import allows, is_media_type
from .problems import Problem
from .uploads import QuotaExceeded, Refused
from .views import file_rules

if TYPE_CHECKING:
    from ..store.core import Outcome
    from ..store.model import StoredElicitation
    from .uploads import Incoming, Upload, Uploads

__all__ = ["NAME_HEADER", "NO_FILES", "file_answer", "keeping_file", "receive"]

NAME_HEADER = "x-file-name"  # percent-encoded UTF-8
_MAX_NAME = 3000  # characters of it; file systems' names are shorter
_PIECE = 1 << 18  # bytes that are written at a time
NO_FILES = "this server takes no files: start it with --uploads FOLDER"
_NO_ROOM = "the file can't be stored: see to the disk of the server"
LONGEST = 1800.0  # seconds for one file; the longest that an elicitation is pending


async def receive(
    request: Request, uploads: Uploads, one: StoredElicitation, caller: str, claimed: str, length: int | None
) -> Upload:
    """Takes the body as a file for `one`. Raises Problem: 409, 413, 415, 422, 429, 507."""
    if one.type != "file_upload":
        raise Problem(409, "this elicitation takes no file", code="kind")
    if one.status != "pending":
        raise Problem(409, f"it has ended already ({one.status.value})", status=one.status.value)
    media_types, limit = file_rules(one)
    if not is_media_type(claimed) or claimed in ("application/x-www-form-urlencoded", "multipart/form-data"):
        raise Problem(415, "send the file itself as the body, with its media type as Content-Type")
    if not allows(media_types, claimed):
        raise Problem(415, "a file of another type is asked for", fields={"file": f"must be {', '.join(media_types)}"})
    most = min(limit or uploads.max_bytes, uploads.max_bytes)
    if (length or 0) > most:
        raise Problem(413, f"the file is larger than {most} bytes")
    told = request.headers.get(NAME_HEADER, "")
    if len(told) > _MAX_NAME:
        problem = {"name": f"at most {_MAX_NAME} characters"}
        raise Problem(422, f"X-File-Name is longer than {_MAX_NAME} characters", code="malformed", fields=problem)
    name = unquote(told, errors="replace")
    try:
        incoming = await run_in_threadpool(uploads.begin, caller, one.id, name=name, media_type=claimed, limit=limit)
        try:
            return await asyncio.wait_for(_take(request, incoming), LONGEST)
        finally:
            incoming.abort()
    except Refused as refused:
        headers = {"retry-after": "60"} if isinstance(refused, QuotaExceeded) else {}
        raise Problem(refused.status, str(refused), headers=headers) from None
    except asyncio.TimeoutError:
        raise Problem(408, f"the file took more than {LONGEST:.0f} s") from None
    except OSError:
        raise Problem(507, _NO_ROOM) from None


async def _take(request: Request, incoming: Incoming) -> Upload:
    """Writes the body in pieces, on threads: the loop goes on meanwhile."""
    piece = bytearray()
    async for chunk in request.stream():
        piece += chunk
        if len(piece) >= _PIECE:
            await run_in_threadpool(incoming.write, bytes(piece))
            piece.clear()
    if piece:
        await run_in_threadpool(incoming.write, bytes(piece))
    return await run_in_threadpool(incoming.finish)


def file_answer(uploads: Uploads | None, one: StoredElicitation, response: Mapping[str, Any]) -> Any:
    """The whole answer for a file that has come; `{"file_id": ...}` is enough, and nothing else is believed. Where it
    has ended, what can't be the answer goes on as it is, to be the conflict that it is. Raises Problem: 422, 503."""
    is_over = one.status != "pending"
    if uploads is None:
        if is_over:
            return response
        raise Problem(503, NO_FILES)
    upload = uploads.find(one.caller, one.id, response.get("file_id"))
    if upload is None:
        if is_over:
            return response
        fields = {"file_id": "must name a file that was sent for this elicitation (POST .../file)"}
        raise Problem(422, "there is no such file", fields=fields)
    answer = upload.answer()
    wrong = {name[:80]: "is not what was received" for name, value in response.items() if answer.get(name) != value}
    if wrong and not is_over:
        raise Problem(422, "this is not what was received", fields=wrong)
    return response if wrong else answer


async def keeping_file(
    uploads: Uploads, one: StoredElicitation, response: Mapping[str, Any], record: Callable[[], Awaitable[Outcome]]
) -> Outcome:
    """Records an answer that names a file. The file stays from before that on, others for the same elicitation go
    afterwards. A store that fails meanwhile leaves it, since it may be the answer. Raises Problem: 409, 507, and those
    of `record`."""
    upload = await run_in_threadpool(uploads.find, one.caller, one.id, response.get("file_id"))
    if upload is None:
        return await record()
    try:
        is_new = await run_in_threadpool(uploads.claim, upload)
    except Refused as refused:
        raise Problem(refused.status, str(refused)) from None
    except OSError:
        raise Problem(507, _NO_ROOM) from None
    outcome = await record()
    with suppress(OSError):  # what is left too much is all that can come of it
        if outcome.kind in ("recorded", "already_recorded"):
            await run_in_threadpool(uploads.drop, one.id, but=upload.file_id)
        elif is_new:
            await run_in_threadpool(uploads.release, upload)
    return outcome
