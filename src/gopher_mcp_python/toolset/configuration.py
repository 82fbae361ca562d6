"""Server configurations as JSON, in the forms that the native library takes and those that MCP clients share.

    {"succeeded": true, "data": {"servers": [{"name": ..., "url": ...}]}}     the Gopher service's answer
    {"servers": [{"name": ..., "transport": "stdio", "config": {"command": ..., "args": [...]}}]}
    {"mcpServers": {"mail": {"url": ..., "headers": {...}}, "files": {"command": ..., "args": [...], "env": {...}}}}

`url`, `headers`, `command` and so on stand at the top of an entry or under its `config`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from ..errors import AgentError
from .connection import Connection, HttpConnection, StdioConnection

_SSE = ("sse", "http_sse", "http-sse")


def from_url(url: str, headers: Mapping[str, str]) -> list[Connection]:
    """One server behind a URL. Raises AgentError when it is not an http or https URL with a host."""
    return [_http(url, headers, "", "")]


def from_entry(entry: Mapping[str, Any], headers: Mapping[str, str]) -> Connection:
    """The server of one entry, or of a configuration with one entry. Raises AgentError."""
    if any(entry.get(name) for name in ("url", "command", "config")):
        return _entry("", entry, headers)
    found = entries(entry)
    if len(found) != 1:
        raise AgentError(f"one server is wanted: a url or a command; this configuration names {len(found)}")
    return _entry(*found[0], headers)


def from_json(text: str, headers: Mapping[str, str]) -> list[Connection]:
    """The servers of a configuration; `headers` go to each, its own win.

    Raises AgentError: naming the entry that can't be read, or that there is none.
    """
    try:
        parsed = json.loads(text)
    except ValueError as error:
        raise AgentError(f"the server configuration is not valid JSON: {error}") from None
    if isinstance(parsed, Mapping) and parsed.get("succeeded") is False:
        raise AgentError("the server configuration reports a failure (succeeded is false); fetch it again")
    connections = [_entry(name, entry, headers) for name, entry in entries(parsed)]
    if not connections:
        raise AgentError("the server configuration names no server; expected a list under data.servers or servers")
    return connections


def entries(parsed: Any) -> list[tuple[str, Any]]:
    """The entries of any of these forms, each with the name that it stands under, if it does. null is none."""
    return [(name, entry) for name, entry in _listed(parsed) if entry is not None]


def _listed(parsed: Any) -> list[tuple[str, Any]]:
    if isinstance(parsed, Mapping):
        named = parsed.get("mcpServers", parsed.get("mcp_servers"))
        if isinstance(named, Mapping):
            return [(str(name), entry) for name, entry in named.items()]
        data = parsed.get("data", parsed)
        parsed = data.get("servers") if isinstance(data, Mapping) else data
        if isinstance(parsed, Mapping):
            return [(str(name), entry) for name, entry in parsed.items()]
    return [("", entry) for entry in parsed] if isinstance(parsed, list) else []


def _entry(name: str, entry: Any, headers: Mapping[str, str]) -> Connection:
    if not isinstance(entry, Mapping):
        raise AgentError(f"the server configuration's entry {name or '(unnamed)'} is not an object")
    nested = entry.get("config")
    fields = {**(nested if isinstance(nested, Mapping) else {}), **entry}
    name = str(entry.get("name") or name or entry.get("serverId") or entry.get("server_id") or "")
    own = fields.get("headers")
    all_headers = _merge(headers, own if isinstance(own, Mapping) else {})
    transport = str(fields.get("transport") or fields.get("type") or "").lower()
    command = fields.get("command")
    if isinstance(command, str) and command:
        return _stdio(command, fields, name)
    url = fields.get("url")
    if not isinstance(url, str) or not url:
        raise AgentError(f"the server configuration's entry {name or '(unnamed)'} has neither a url nor a command")
    return _http(url, all_headers, transport, name)


def _merge(common: Mapping[str, str], own: Mapping[Any, Any]) -> dict[str, str]:
    taken = {str(key).lower() for key in own}
    merged = {key: value for key, value in common.items() if key.lower() not in taken}
    return {**merged, **{str(key): str(value) for key, value in own.items()}}


def _stdio(command: str, fields: Mapping[str, Any], name: str) -> StdioConnection:
    arguments, env, cwd = fields.get("args"), fields.get("env"), fields.get("cwd")
    if arguments is not None and not isinstance(arguments, list):
        raise AgentError(f"the server configuration's entry {name or command} has args that are not a list")
    return StdioConnection(
        command=command,
        args=tuple(str(argument) for argument in arguments or ()),
        env={str(key): str(value) for key, value in env.items()} if isinstance(env, Mapping) else None,
        cwd=str(cwd) if cwd else None,
        name=name,
    )


def _http(url: str, headers: Mapping[str, str], transport: str, name: str) -> HttpConnection:
    try:
        parts = urlsplit(url)
        host = parts.hostname
        parts.port  # noqa: B018 - raises for a port that is none
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https"):
        raise AgentError(f"the URL of {name or 'the MCP server'} is not an http or https address with a host")
    # The Gopher service says "http_sse" of any HTTP server; only an endpoint called /sse speaks the older transport.
    older = transport == "sse" or (transport in _SSE and parts.path.rstrip("/").endswith("/sse"))
    return HttpConnection(url, dict(headers), "sse" if older else "streamable-http", name)
