"""Bodies of requests: JSON only, bounded, and read in one way only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from starlette.requests import Request

from .problems import Problem

__all__ = ["MAX_JSON", "declared_length", "is_simple", "media_type_of", "read_json"]

MAX_JSON = 2 << 20  # bytes; one answer of a form has at most a million characters
# What a page may send to another site without asking it first (Fetch, "CORS-safelisted request-header").
_SIMPLE = frozenset({"application/x-www-form-urlencoded", "multipart/form-data", "text/plain"})


async def read_json(request: Request, *, most: int = MAX_JSON, empty: bool = False) -> dict[str, Any]:
    """The object that the body is; with `empty` nothing at all is an empty object.

    Raises Problem: 413, 415, and 422 for text that is no JSON object, has one name twice or is no Unicode text.
    """
    kind = media_type_of(request)
    if kind != "application/json" and not (empty and not kind):
        raise Problem(415, "send JSON (Content-Type: application/json)")
    data = await _read(request, most)
    if empty and not data.strip():
        return {}
    if empty and not kind:
        raise Problem(415, "send JSON (Content-Type: application/json)")
    return _object(data)


def media_type_of(request: Request) -> str:
    """The Content-Type without parameters, in lower case."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def is_simple(request: Request) -> bool:
    """Whether a page of any site can have made a browser send it: a form's body, or one without a type."""
    if request.method != "POST":
        return False
    if "content-type" in request.headers:
        return media_type_of(request) in _SIMPLE
    return "transfer-encoding" in request.headers or request.headers.get("content-length", "0") != "0"


def declared_length(request: Request) -> int | None:
    """The Content-Length. Raises Problem when it is no number."""
    text = request.headers.get("content-length")
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise Problem(422, "Content-Length is no number", code="malformed")
    return int(text)


async def _read(request: Request, most: int) -> bytes:
    if (declared_length(request) or 0) > most:
        raise _too_large(most)
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > most:
            raise _too_large(most)
    return bytes(data)


def _too_large(most: int) -> Problem:
    return Problem(413, f"the body is larger than {most} bytes")


def _object(data: bytes) -> dict[str, Any]:
    try:
        text = data.decode("utf-8")
        value = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_without_doubles)
        json.dumps(value, ensure_ascii=False).encode()  # an escaped half of a character has no UTF-8 form
    except (ValueError, RecursionError):  # also UnicodeError; not chained: its text would be what was sent
        value = None
    if not isinstance(value, dict):
        raise Problem(422, "the body is no JSON object, has a name twice or a number or text that can't be read",
                      code="malformed")  # fmt: skip
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError("no JSON number")


def _without_doubles(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    """`{"confirmed": false, "confirmed": true}` is read in two ways by two readers: in none here."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name is there twice")
    return found
