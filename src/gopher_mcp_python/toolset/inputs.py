"""What a program may give to `McpToolset`, checked and turned into what the session layer takes."""

from __future__ import annotations

import asyncio
import logging
import math
import sys
from collections.abc import Hashable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import replace
from inspect import isawaitable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import mcp_types as types

from ..first_step import sign_ins_with
from ..oauth_options import GopherAgentOAuthOptions, normalize_oauth_options
from ..redaction import log_failure
from ..runtime_options import checked_headers
from .calls import Progress
from .configuration import from_entry, from_url
from .connection import ClientConnection, Connection, HttpConnection, MemoryConnection, StdioConnection

if TYPE_CHECKING:
    from mcp.client.client import Client
    from mcp.client.session import ClientSession
    from mcp.server import Server
    from mcp.server.mcpserver import MCPServer

__all__ = [
    "ConnectionInput",
    "as_connection",
    "as_names",
    "as_person",
    "as_progress",
    "as_roots",
    "as_seconds",
    "with_sign_in",
]

ConnectionInput = Union[str, Connection, Mapping[str, Any], "MCPServer", "Server[Any]", "Client", "ClientSession"]
_log = logging.getLogger("gopher_mcp_python.toolset")


def as_connection(value: ConnectionInput, headers: Mapping[str, str], name: str) -> Connection:
    """Raises ValueError for what is no server, AgentError for an entry that can't be read."""
    if isinstance(value, str):
        (found,) = from_url(value, checked_headers(headers))
    elif isinstance(value, Mapping):
        found = from_entry(value, checked_headers(headers))
    elif headers:
        raise ValueError("headers are for a URL; a connection brings its own")
    else:
        found = _of_an_object(value)
    return replace(found, name=name) if name else found


def _of_an_object(value: object) -> Connection:
    if isinstance(value, (HttpConnection, StdioConnection, MemoryConnection, ClientConnection)):
        return value
    if _is_client(value):
        return ClientConnection(value)
    if _is_server(value):
        return MemoryConnection(value)
    raise ValueError(
        "an MCP server is given as its URL, a connection, a mapping with url or command, or a server or client of the "
        f"MCP SDK; not as {type(value).__name__}"
    )


def _is_server(value: object) -> bool:
    return _is_one_of(value, ("mcp.server.mcpserver", "MCPServer"), ("mcp.server.lowlevel", "Server"))


def _is_client(value: object) -> bool:
    return _is_one_of(value, ("mcp.client.client", "Client"), ("mcp.client.session", "ClientSession"))


def _is_one_of(value: object, *kinds: tuple[str, str]) -> bool:
    """Whether it is an instance of these of the SDK's classes; whoever has one has imported its module."""
    return any(isinstance(value, getattr(sys.modules.get(module), name, ())) for module, name in kinds)


def with_sign_in(connection: Connection, oauth: Any) -> Connection:
    """The connection with a sign-in of its own where one is possible. Raises ValueError for options of the wrong kind,
    and for options where there is nothing to sign in to."""
    options = GopherAgentOAuthOptions(mode="disabled") if oauth is False else normalize_oauth_options(oauth)
    if not isinstance(connection, HttpConnection):
        if oauth:
            raise ValueError("oauth options are for a server behind a URL")
        return connection
    sign_ins = sign_ins_with(options)
    return connection if sign_ins is None else sign_ins.before(connection)


def as_progress(on_progress: Progress) -> Any:
    """The SDK's progress callback from a sync or async one; its failure is logged and goes no further.

    Raises ValueError for what is no function.
    """
    if not callable(on_progress):
        raise ValueError("on_progress must be a function of progress, total and message")

    context = copy_context()  # of the call: what comes by stdio comes in its session's

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        try:
            told = context.copy().run(on_progress, progress, total, message)
            if isawaitable(told):
                await context.copy().run(asyncio.ensure_future, told)
        except Exception as error:
            log_failure(_log, "on_progress failed", error)

    return tell


def as_roots(roots: str | Path | Sequence[str | Path]) -> list[types.Root]:
    """One folder or several. Raises ValueError for what is neither."""
    given = [roots] if isinstance(roots, (str, Path)) else roots
    if not isinstance(given, (list, tuple)) or not all(isinstance(root, (str, Path)) for root in given):
        raise ValueError("roots must be a folder or a list of folders")
    return [as_root(root) for root in given]


def as_names(values: Any, name: str) -> dict[str, Any]:
    """Arguments or `_meta` of a request: names and values. Raises ValueError for what is none."""
    if not isinstance(values, Mapping) or not all(isinstance(key, str) for key in values):
        raise ValueError(f"{name} must be a mapping with texts as keys")
    return dict(values)


def as_person(person: Hashable) -> Hashable:
    """Raises ValueError for what can't be told from others."""
    try:
        hash(person)
    except TypeError:
        raise ValueError(f"person must be hashable, such as a name or an id; not {type(person).__name__}") from None
    return person


def as_root(root: str | Path) -> types.Root:
    """A folder, or its file:// address, as the protocol has it."""
    text = str(root)
    if not text.startswith("file://"):
        text = Path(text).absolute().as_uri()
    return types.Root.model_validate({"uri": text})


def as_seconds(value: Any, name: str) -> float | None:
    """A limit. Raises ValueError for what is none."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        raise ValueError(f"{name} must be a number of seconds above 0, or None")
    return float(value)
