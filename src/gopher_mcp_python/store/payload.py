"""JSON that is stored, and texts that stand beside it in clear: checked first, with no value in any error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..forms.bounds import is_number, is_unsendable
from ..toolset.canonical import canonical_json

__all__ = [
    "ARGUMENTS_BYTES",
    "CALLER_CHARACTERS",
    "MAX_DEPTH",
    "QUESTION_BYTES",
    "RESPONSE_BYTES",
    "clear_text",
    "json_text",
    "plain_json",
]

RESPONSE_BYTES = 256 * 1024  # of an answer as JSON
ARGUMENTS_BYTES = 1024 * 1024  # of a call's arguments
QUESTION_BYTES = 2 * 1024 * 1024  # of a server's form, or of arguments and what is around them
MAX_DEPTH = 64  # lists and objects inside each other
CALLER_CHARACTERS = 256


def json_text(value: Any, what: str, most_bytes: int) -> str:
    """The canonical JSON text of a value of dicts, lists, tuples and plain values.

    Raises ValueError, which names `what`, for what JSON doesn't have (NaN, infinity, names that are no text, other
    types), numbers of more than 400 digits, more than MAX_DEPTH levels and more than `most_bytes` bytes."""
    _check(value, what, most_bytes)
    text = canonical_json(value)
    if len(text) > most_bytes or (not text.isascii() and len(text.encode()) > most_bytes):
        raise ValueError(f"{what} may have {most_bytes} bytes as JSON; this is more")
    return text


def plain_json(value: Any, what: str, most_bytes: int) -> Any:
    """A copy of a JSON value that nobody else changes, as it comes back from the store, in its own order: people see
    a form's fields as their server has them. Raises ValueError as `json_text`; a mapping of another kind at the top is
    taken for a dict."""
    if isinstance(value, Mapping) and not isinstance(value, dict):
        value = dict(value)
    json_text(value, what, most_bytes)
    return json.loads(json.dumps(value))


def clear_text(name: str, value: str | None, most: int) -> str | None:
    """A text for a column in clear, as it is. Raises ValueError for an empty or too long one, and for characters that
    a database can't keep (NUL, half a character)."""
    if value is None:
        return None
    if not isinstance(value, str) or not 0 < len(value) <= most:
        raise ValueError(f"{name} must be a text of 1 to {most} characters")
    if "\0" in value or is_unsendable(value):
        raise ValueError(f"{name} holds a character that can't be stored (NUL, or half a character)")
    return value


def _check(value: Any, what: str, most_values: int) -> None:
    """Level by level, so that depth costs no stack; a value that holds itself is too deep."""
    level, seen = [value], 0
    for _ in range(MAX_DEPTH + 1):
        inside: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                if not all(isinstance(name, str) for name in one):
                    raise ValueError(f"{what} has a name that is no text")
                inside += one.values()
            elif isinstance(one, (list, tuple)):
                inside += one
            elif not (one is None or isinstance(one, (str, bool)) or is_number(one)):
                raise ValueError(f"{what} holds {_fault(one)}")
        seen += len(inside)
        if seen > most_values:  # each takes a byte at least
            raise ValueError(f"{what} may have {most_values} bytes as JSON; this is more")
        if not inside:
            return
        level = inside
    raise ValueError(f"{what} is nested too deeply: {MAX_DEPTH} levels are the most")


def _fault(value: Any) -> str:
    if isinstance(value, int):
        return "a number of more than 400 digits"
    if isinstance(value, float):
        return "a number that JSON does not have (NaN or infinity)"
    return f"something that JSON does not have (a {type(value).__name__})"
