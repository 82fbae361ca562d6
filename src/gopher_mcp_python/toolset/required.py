"""Error -32042: the server refuses a request until its user has visited the URLs that it lists.

A refused request has not begun, so it may be made again once the person has accepted. Gateways wrap the error: in an
HTTP error, in the data of another error. A list that breaks the protocol is an error of its own, told once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..elicitation import GopherAgentElicitationRequest
from .canonical import canonical_json
from .errors import URL_ELICITATION_REQUIRED, ElicitationRequiredError

# How often one call may be refused and made again before it is given up.
MAX_ROUNDS = 5
# Pages that one refusal may list. A person is asked for each, one after another.
MAX_ENTRIES = 20
# How deep a gateway may wrap the error.
_MAX_DEPTH = 5


def find_required(value: Any, depth: int = 0) -> Mapping[str, Any] | None:
    """The JSON-RPC error object with code -32042 in `value` (an error object, or what a gateway made of one)."""
    if depth > _MAX_DEPTH:
        return None
    if isinstance(value, Mapping):
        if value.get("code") == URL_ELICITATION_REQUIRED:
            return value
        nested: Any = value.values()
    elif isinstance(value, list):
        nested = value
    else:
        return None
    return next((found for item in nested if (found := find_required(item, depth + 1)) is not None), None)


def read_required(
    error: Mapping[str, Any], *, server: str, tool: str | None, modes: frozenset[str]
) -> list[GopherAgentElicitationRequest]:
    """The requests that a -32042 lists, in order.

    Raises ElicitationRequiredError: naming what is wrong with the list, or that URL mode is not served here.
    """
    where = f"{server} requires its user to visit a URL first (error -32042)"
    if "url" not in modes:
        raise ElicitationRequiredError(f"{where}, and there is no handler here for elicitation in URL mode")
    data = error.get("data")
    listed = data.get("elicitations") if isinstance(data, Mapping) else None
    if not isinstance(listed, list) or not listed:
        raise ElicitationRequiredError(f"{where}, but its list of elicitations is missing, empty or not a list")
    if len(listed) > MAX_ENTRIES:
        raise ElicitationRequiredError(f"{where}, and lists {len(listed)} pages; {MAX_ENTRIES} at most are asked for")
    raw = canonical_json(dict(error))
    return [_entry(entry, raw, where, server, tool) for entry in listed]


def _entry(
    entry: Any, raw: str, where: str, server: str, tool: str | None
) -> GopherAgentElicitationRequest:
    if not isinstance(entry, Mapping):
        raise ElicitationRequiredError(f"{where}, but an entry of its list is not an object")
    if entry.get("mode", "url") != "url":
        raise ElicitationRequiredError(f"{where}, but an entry of its list is not in URL mode")
    for name in ("elicitationId", "url"):
        value = entry.get(name)
        if not isinstance(value, str) or not value.strip():
            raise ElicitationRequiredError(f"{where}, but an entry of its list has no {name}")
    message = entry.get("message")
    return GopherAgentElicitationRequest(
        "url",
        entry["elicitationId"],
        message if isinstance(message, str) else "",
        entry["url"],
        "null",
        raw,
        canonical_json(entry),
        server=server,
        tool=tool,
    )
