"""A server configuration as the native library reads it.

The library (0.1.39, by experiment) takes one form only and passes over others in silence: an agent without tools. So
every form that `_servers` reads is written in that one; members that are not ours stay as they are.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from typing import Any

from ..errors import AgentError
from ..ffi import _bridge
from ..toolset.configuration import entries, from_json
from ..toolset.connection import Connection, HttpConnection

__all__ = ["named", "native_form", "own_credentials"]

_TRANSPORTS = ("http_sse", "http", "streamable_http", "streamable-http")
_MOVED = ("url", "headers")  # members that may stand beside `config` elsewhere


def native_form(text: str) -> str:
    """The configuration in the library's form; the text itself where it is in it, or can't be read (the library then
    says what is wrong)."""
    try:
        parsed = json.loads(text)
        listed = entries(parsed)
        found = [
            _entry(name, entry) for name, (_, entry) in zip(_names(listed), listed, strict=True) if _is_http(entry)
        ]
    except (ValueError, RecursionError):
        return text
    if not found or (isinstance(parsed, dict) and parsed.get("succeeded") is False):
        return text
    top = parsed if isinstance(parsed, dict) and isinstance(parsed.get("data"), dict) else {}
    written = {**top, "succeeded": True, "message": "success", "data": {**top.get("data", {}), "servers": found}}
    return text if written == parsed else json.dumps(written)


def named(text: str, headers: Mapping[str, str]) -> list[tuple[str, Connection]]:
    """The servers of a configuration under the names that `native_form` gives them. Raises AgentError like `from_json`.

    To the library such a name alone says which server an option is for: with an address beside it, the option goes to
    every server that has either of them (0.1.39, by experiment), and a token to somebody else's.
    """
    connections = from_json(text, headers)
    return list(zip(_names(entries(json.loads(text))), connections, strict=True))


def own_credentials(text: str) -> tuple[_bridge.ServerOptions, ...]:
    """Authorization headers that stand in the configuration: to the library they are the weakest, here the strongest,
    as they are for that server."""
    try:
        found = named(text, {})
    except AgentError:
        return ()
    return tuple(
        _bridge.ServerOptions(server_name=server, headers={name: value})
        for server, one in found
        if isinstance(one, HttpConnection)
        for name, value in one.headers.items()
        if name.lower() == "authorization"
    )


def _names(listed: list[tuple[str, Any]]) -> list[str]:
    """A name for each entry, its own where no other has it (in whatever case)."""
    names: list[str] = []
    taken: set[str] = set()
    for number, (name, entry) in enumerate(listed, 1):
        own = str((entry.get("name") if isinstance(entry, Mapping) else None) or name or f"server_{number}")
        others = (f"{own}_{count}" for count in itertools.count(2))
        names.append(next(one for one in itertools.chain((own,), others) if one.casefold() not in taken))
        taken.add(names[-1].casefold())
    return names


def _is_http(entry: Any) -> bool:
    if not isinstance(entry, Mapping):
        return False
    config = entry.get("config")
    return bool(entry.get("url") or (isinstance(config, Mapping) and config.get("url")))


def _entry(name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    nested = entry.get("config")
    config = dict(nested) if isinstance(nested, Mapping) else {}
    config.update({member: entry[member] for member in _MOVED if member in entry})
    kept = {member: value for member, value in entry.items() if member not in _MOVED}
    return {
        **kept,
        "name": name,
        "transport": entry["transport"] if entry.get("transport") in _TRANSPORTS else "http_sse",
        "config": {"headers": {}, **config},
    }
