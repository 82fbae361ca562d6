"""What is asked through the store: kinds, states, and the questions as a program writes them.

    string_input("Which branch?", max_length=100)
    single_choice("Deploy where?", ["staging", "production"])
    confirmation("Delete the project?", tool="delete_project", arguments={"id": 7})
    mcp_form(request)              # what a server asked in form mode, as it came

The answers' shapes are in responses.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any

from ..elicitation import GopherAgentElicitationRequest
from .payload import ARGUMENTS_BYTES, QUESTION_BYTES, clear_text, json_text, plain_json

__all__ = [
    "LONGEST_TIMEOUT_S",
    "MAX_RETRIES",
    "ElicitationStatus",
    "ElicitationType",
    "NewElicitation",
    "StoredElicitation",
    "confirmation",
    "file_upload",
    "mcp_form",
    "mcp_url",
    "multi_choice",
    "single_choice",
    "string_input",
]

MAX_RETRIES = 3  # invalid answers; the third is the last
LONGEST_TIMEOUT_S = 1_800
MAX_MESSAGE = 20_000  # characters
MAX_CHOICES = 5_000
MAX_CHOICE = 2_000  # characters of one
MAX_LENGTH = 100_000  # of a string_input, whose answer must fit into payload.RESPONSE_BYTES
MAX_FILE_BYTES = 1 << 40


class ElicitationType(str, Enum):
    """What is asked for. The labels are the wire's and the database's."""

    STRING_INPUT = "string_input"
    SINGLE_CHOICE = "single_choice"
    MULTI_CHOICE = "multi_choice"
    CONFIRMATION = "confirmation"
    FILE_UPLOAD = "file_upload"

    __str__ = str.__str__


class ElicitationStatus(str, Enum):
    """Where an elicitation stands. All but PENDING are final."""

    PENDING = "pending"
    RESPONDED = "responded"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    VALIDATION_FAILED = "validation_failed"

    __str__ = str.__str__


@dataclass(frozen=True)
class NewElicitation:
    """A question to be stored. The functions of this module make and check it.

    Attributes:
        mode: "fixed" (one of the five types), or "form" or "url": an MCP request as it came.
        type: of the fixed ones; else None.
        params: what the question is made of beside the message; for "form" and "url" the MCP request's params.
        server, tool: who asks, and in which tool's call; of a confirmation: the tool that is to be called.
    """

    mode: str
    type: ElicitationType | None
    message: str = field(repr=False)
    params: dict[str, Any] = field(repr=False)
    server: str | None = None
    tool: str | None = None


@dataclass(frozen=True)
class StoredElicitation:
    """An elicitation as the store has it, question in clear.

    Attributes:
        id: unguessable, `el_` and 22 characters.
        caller: to whom it belongs.
        mode, type, message, params, server, tool: as in NewElicitation; after a prune the message is "" and params {}.
        retries: invalid answers so far.
        created_at, expires_at, ended_at: UTC; ended_at is None while it is pending.
        confirmed: the answer to a confirmation, None before it and for other types.
    """

    id: str
    caller: str
    mode: str
    type: ElicitationType | None
    status: ElicitationStatus
    message: str = field(repr=False)
    server: str | None
    tool: str | None
    params: dict[str, Any] = field(repr=False)
    retries: int
    created_at: datetime
    expires_at: datetime
    ended_at: datetime | None
    confirmed: bool | None

    @property
    def ended(self) -> bool:
        """Whether it waits for no answer any more."""
        return self.status is not ElicitationStatus.PENDING


def string_input(
    message: str,
    *,
    min_length: int = 0,
    max_length: int = 10_000,
    server: str | None = None,
    tool: str | None = None,
) -> NewElicitation:
    """Asks for a text of `min_length` to `max_length` characters (code points). Raises ValueError."""
    _whole("min_length", min_length, 0, MAX_LENGTH)
    _whole("max_length", max_length, max(min_length, 1), MAX_LENGTH)
    return _fixed(
        ElicitationType.STRING_INPUT, message, {"min_length": min_length, "max_length": max_length}, server, tool
    )


def single_choice(
    message: str, choices: Sequence[str], *, server: str | None = None, tool: str | None = None
) -> NewElicitation:
    """Asks for exactly one of `choices`. Raises ValueError."""
    return _fixed(ElicitationType.SINGLE_CHOICE, message, {"choices": _choices(choices)}, server, tool)


def multi_choice(
    message: str,
    choices: Sequence[str],
    *,
    min_items: int = 0,
    max_items: int | None = None,
    server: str | None = None,
    tool: str | None = None,
) -> NewElicitation:
    """Asks for `min_items` to `max_items` (None: all) different ones of `choices`. Raises ValueError."""
    told = _choices(choices)
    _whole("min_items", min_items, 0, len(told))
    most = len(told) if max_items is None else max_items
    _whole("max_items", most, max(min_items, 1), len(told))
    params = {"choices": told, "min_items": min_items, "max_items": most}
    return _fixed(ElicitationType.MULTI_CHOICE, message, params, server, tool)


def confirmation(
    message: str, *, tool: str | None = None, arguments: Mapping[str, Any] | None = None, server: str | None = None
) -> NewElicitation:
    """Asks for yes or no. With a `tool`, a yes is an approval of exactly that call: of this tool of this server with
    exactly these arguments (up to 1 MB as JSON). Raises ValueError."""
    if tool is None and arguments is not None:
        raise ValueError("a confirmation with arguments needs the tool that they are for")
    params: dict[str, Any] = {}
    if tool is not None:
        params["arguments"] = plain_json(arguments or {}, "the arguments", ARGUMENTS_BYTES)
        if not isinstance(params["arguments"], dict):
            raise ValueError("the arguments are no JSON object: pass a mapping of names to values")
    return _fixed(ElicitationType.CONFIRMATION, message, params, server, tool)


def file_upload(
    message: str,
    *,
    media_types: Sequence[str] = (),
    max_bytes: int = 10_000_000,
    server: str | None = None,
    tool: str | None = None,
) -> NewElicitation:
    """Asks for a file of at most `max_bytes`, of one of `media_types` ("text/csv", "image/*"; none: any). Raises
    ValueError."""
    _whole("max_bytes", max_bytes, 1, MAX_FILE_BYTES)
    types = [_media_type(one) for one in _texts("media_types", media_types, 100)]
    return _fixed(ElicitationType.FILE_UPLOAD, message, {"media_types": types, "max_bytes": max_bytes}, server, tool)


def mcp_form(request: GopherAgentElicitationRequest) -> NewElicitation:
    """What a server asked in form mode, kept as it came (up to 2 MB). Raises ValueError (FormSchemaError where the
    schema can't be read as a form)."""
    from ..forms import read_form

    params = _as_it_came(request, "form", {"requestedSchema": request.requested_schema})
    read_form(params.get("requestedSchema"))  # type: ignore[arg-type]  # None is no form either
    return _mcp("form", request, params)


def mcp_url(request: GopherAgentElicitationRequest) -> NewElicitation:
    """What a server asked in URL mode, kept as it came. Whether the URL is safe to open is for whoever shows it to
    judge (`weburl`). Raises ValueError."""
    params = _as_it_came(request, "url", {"url": request.url, "elicitationId": request.elicitation_id})
    if not isinstance(params.get("url"), str) or not params["url"]:
        raise ValueError("the request has no URL, so there is nothing to open")
    return _mcp("url", request, params)


def _mcp(mode: str, request: GopherAgentElicitationRequest, params: dict[str, Any]) -> NewElicitation:
    kept = plain_json(params, "the request", QUESTION_BYTES)
    message = kept.get("message")
    return _checked(mode, None, message if isinstance(message, str) else "", kept, request.server, request.tool)


def _as_it_came(request: GopherAgentElicitationRequest, mode: str, built: dict[str, Any]) -> dict[str, Any]:
    """The request's own params where the engine passed them on, else the same members from its attributes."""
    if request.mode != mode:
        raise ValueError(f'the request is not one of mode "{mode}"')
    raw: Any = None
    if request.raw_params_json:
        try:
            raw = json.loads(request.raw_params_json)
        except (ValueError, RecursionError):
            raw = None  # cut off or too deep; what the engine made of it is below
    facts = {"mode": mode, "message": request.message or "", **built}
    told = {name: value for name, value in facts.items() if value is not None}
    return {**raw, **told} if isinstance(raw, dict) else told


def _fixed(
    type: ElicitationType, message: str, params: dict[str, Any], server: str | None, tool: str | None
) -> NewElicitation:
    if not isinstance(message, str) or not message.strip():
        raise ValueError("the message is empty: say what is asked")
    return _checked("fixed", type, message, params, server, tool)


def _checked(
    mode: str,
    type: ElicitationType | None,
    message: str,
    params: dict[str, Any],
    server: str | None,
    tool: str | None,
) -> NewElicitation:
    if len(message) > MAX_MESSAGE:
        raise ValueError(f"the message is longer than {MAX_MESSAGE} characters")
    json_text(params, "the question", QUESTION_BYTES)
    return NewElicitation(
        mode, type, message, params, clear_text("server", server, 2_000), clear_text("tool", tool, 1_000)
    )


def _choices(choices: Sequence[str]) -> list[str]:
    told = _texts("choices", choices, MAX_CHOICES)
    if not told:
        raise ValueError("choices is empty: name at least one")
    if len(set(told)) < len(told):
        raise ValueError("choices holds the same text twice")
    return told


def _texts(name: str, values: Sequence[str], most: int) -> list[str]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence):
        raise ValueError(f"{name} is no list of texts")
    if len(values) > most:
        raise ValueError(f"{name} holds more than {most} texts")
    for value in values:
        if not isinstance(value, str) or not value or len(value) > MAX_CHOICE:
            raise ValueError(f"{name} holds something else than texts of 1 to {MAX_CHOICE} characters")
    return list(values)


def _media_type(text: str) -> str:
    kind, slash, rest = text.partition("/")
    if not slash or not kind or not rest or not text.isascii() or any(mark in text for mark in " \t\r\n;,\"'<>\\"):
        raise ValueError('media_types holds something else than media types such as "text/csv" or "image/*"')
    return text.lower()


def _whole(name: str, value: object, least: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError(f"{name} must be a whole number from {least} to {most}")
