"""A file on its way from a request to the folder."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import unquote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from .media import allows, is_media_type
from .problems import Problem
from .uploads import QuotaExceeded, Refused
from .views import file_rules

if TYPE_CHECKING:
    from ..store.model import StoredElicitation
    from .uploads import Incoming, Upload, Uploads

__all__ = ["NAME_HEADER", "receive"]

NAME_HEADER = "x-file-name"  # percent-encoded UTF-8
_PIECE = 1 << 18  # bytes that are written at a time
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
    name = unquote(request.headers.get(NAME_HEADER, "")[:3000], errors="replace")
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
        raise Problem(507, "the file can't be stored: see to the disk of the server") from None


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
