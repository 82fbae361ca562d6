"""A server configuration as the native library reads it.

The library (0.1.39, by experiment) takes one form only and passes over others in silence: an agent without tools. So
every form that `_servers` reads is written in that one; members that are not ours stay as they are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..errors import AgentError
from ..ffi import _bridge
from ..toolset.connection import HttpConnection
from ._servers import entries, from_json

__all__ = ["native_form", "own_credentials"]

_TRANSPORTS = ("http_sse", "http", "streamable_http", "streamable-http")
_MOVED = ("url", "headers")  # members that may stand beside `config` elsewhere


def native_form(text: str) -> str:
    """The configuration in the library's form; the text itself where it is in it, or can't be read (the library then
    says what is wrong)."""
    try:
        parsed = json.loads(text)
        found = [_entry(name, entry, at) for at, (name, entry) in enumerate(entries(parsed), 1) if _is_http(entry)]
    except (ValueError, RecursionError):
        return text
    if not found or (isinstance(parsed, dict) and parsed.get("succeeded") is False):
        return text
    top = parsed if isinstance(parsed, dict) and isinstance(parsed.get("data"), dict) else {}
    written = {**top, "succeeded": True, "message": "success", "data": {**top.get("data", {}), "servers": found}}
    return text if written == parsed else json.dumps(written)


def own_credentials(text: str) -> tuple[_bridge.ServerOptions, ...]:
    """Authorization headers that stand in the configuration: to the library they are the weakest, here the strongest,
    as they are for that server."""
    try:
        found = [one for one in from_json(text, {}) if isinstance(one, HttpConnection)]
    except AgentError:
        return ()
    return tuple(
        _bridge.ServerOptions(server_name=one.name or None, url=one.url, headers={name: value})
        for one in found
        for name, value in one.headers.items()
        if name.lower() == "authorization"
    )


def _is_http(entry: Any) -> bool:
    if not isinstance(entry, Mapping):
        return False
    config = entry.get("config")
    return bool(entry.get("url") or (isinstance(config, Mapping) and config.get("url")))


def _entry(name: str, entry: Mapping[str, Any], number: int) -> dict[str, Any]:
    nested = entry.get("config")
    config = dict(nested) if isinstance(nested, Mapping) else {}
    config.update({member: entry[member] for member in _MOVED if member in entry})
    kept = {member: value for member, value in entry.items() if member not in _MOVED}
    return {
        **kept,
        "name": str(entry.get("name") or name or f"server_{number}"),
        "transport": entry["transport"] if entry.get("transport") in _TRANSPORTS else "http_sse",
        "config": {"headers": {}, **config},
    }
