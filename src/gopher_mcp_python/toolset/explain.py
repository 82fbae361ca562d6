"""Turns what the SDK, the HTTP client or the operating system raised into an error that a person can act on."""

from __future__ import annotations

import anyio
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from ..errors import AgentError, ApiKeyError, ConnectionError
from ..redaction import redact_text
from .connection import MAX_EVENT_BYTES, Connection, HttpConnection, StdioConnection, place
from .errors import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    CallTimeoutError,
    ServerError,
    SessionLostError,
    ToolsetError,
    refused_text,
)
from .record import Record
from .session import Session

# What the SDK says where a server's answer is not MCP at all.
_NO_ERROR_BODY = "Server returned an error response"
_NOT_MCP = ("Unexpected content type", "Redirect to", "server answered a request with 202")
_ENDPOINT = "Is this the address of an MCP endpoint (it often ends in /mcp)?"
_NOT_TRUSTED = "the server's certificate was not accepted"
# Server texts are quoted up to here.
_MAX_QUOTE = 500


async def explain(
    error: BaseException, record: Record, connection: Connection, session: Session | None, *, doing: str
) -> AgentError:
    """The error to raise for `error`; `doing` begins its text ("connecting to", "calling x of")."""
    where = f"{doing} {place(connection)}"
    if record.failure is not None:
        return record.failure
    if isinstance(error, CallTimeoutError):
        return CallTimeoutError(f"{where} took longer than its time limit")
    if isinstance(error, AgentError):
        return error
    status = getattr(getattr(error, "response", None), "status_code", None)  # of a stream that could not be opened
    if isinstance(status, int):
        record.http_status = status
    if record.http_status in (401, 403):
        return ApiKeyError(refused_text(where, record.http_status))
    if isinstance(error, MCPError):
        return await _protocol_error(error, record, connection, session, where)
    if isinstance(error, ValidationError):
        return ToolsetError(f"{where}: the server's answer breaks the protocol")
    if isinstance(error, OSError):
        return ConnectionError(f"{where} failed: {error.strerror or type(error).__name__}. {_remedy(connection)}")
    name = type(error).__module__.split(".")[0]
    if name in ("httpx2", "httpx"):
        reason = _http_reason(error)
        return ConnectionError(f"{where} failed: {reason}. {_remedy(connection, reason)}")
    if isinstance(error, anyio.ClosedResourceError | anyio.BrokenResourceError):
        return SessionLostError(f"{where} failed: the connection was closed")
    return ToolsetError(f"{where} failed: {_quoted(str(error)) or type(error).__name__}")


async def _protocol_error(
    error: MCPError, record: Record, connection: Connection, session: Session | None, where: str
) -> AgentError:
    code, message = error.error.code, error.error.message
    status = record.http_status
    if status is not None and status >= 400 and (record.what is None or message == _NO_ERROR_BODY):
        text = f"{where} failed: the server answered with HTTP status {status}. {_status_remedy(status)}"
        if record.what is None:
            return ConnectionError(text)
        return ServerError(text, code=code, data=error.error.data)
    if code == INVALID_REQUEST and message.startswith(_NOT_MCP):
        kind = ConnectionError if record.what is None else ToolsetError
        return kind(f"{where} failed: the answer is no MCP message ({_quoted(message)}). {_ENDPOINT}")
    if code == PARSE_ERROR and message.startswith("Failed to parse"):  # the SDK quotes what it could not read
        return ToolsetError(f"{where} failed: the server's answer is not valid JSON-RPC. {_ENDPOINT}")
    if code == CONNECTION_CLOSED:
        return await _lost(message, connection, session, where, connecting=record.what is None)
    text = f"{where} failed: {_quoted(message)} (error {code})"
    if code == INVALID_REQUEST and "back-channel" in message:
        text += ". The server wanted to ask its user, but this kind of session can't carry the question"
    if code == INTERNAL_ERROR and "invalid result" in message:
        text += (
            ". A tool that asks through its result needs protocol 2026-07-28: GOPHER_MCP_PROTOCOL=2026-07-28 "
            '(for agents) or protocol="2026-07-28" (of McpToolset) makes every call there'
        )
    return ServerError(text, code=code, data=error.error.data)


async def _lost(
    message: str, connection: Connection, session: Session | None, where: str, *, connecting: bool
) -> AgentError:
    """The connection ended under the request. The session's own task knows why, a moment later."""
    reason, failure = "the connection was lost", None
    if "exceeded" in message and "byte limit" in message:
        return ToolsetError(f"{where} failed: the answer is larger than {MAX_EVENT_BYTES // 2**20} MB")
    if session is not None and message == "Connection closed":  # the SDK's text for a transport that is down
        await session.wait_ended()
        failure = session.failure
    if failure is not None and not isinstance(failure, MCPError):
        reason = _http_reason(failure)
    if connecting or type(failure).__name__ in ("ConnectError", "ConnectTimeout"):
        return ConnectionError(f"{where} failed: {reason}. {_remedy(connection, reason)}")
    return SessionLostError(
        f"{where} failed: {reason} before the answer came. It is not known whether the tool ran, so it was not called "
        "again"
    )


def _quoted(text: str) -> str:
    """A server's own words, cut, without the secrets that can be recognised in them."""
    return redact_text(text[:_MAX_QUOTE])


def _status_remedy(status: int) -> str:
    if status == 429:
        return "It gets too many requests; try again later"
    if status >= 500:
        return "It, or a proxy before it, is in trouble; its own log says more"
    return _ENDPOINT


def _remedy(connection: Connection, reason: str = "") -> str:
    if reason == _NOT_TRUSTED:
        return "SSL_CERT_FILE=FILE names the authority that signed it"
    if isinstance(connection, HttpConnection):
        return "Is the server running, and is the address right?"
    if not isinstance(connection, StdioConnection):
        return "Is its client or server still open?"
    return "Is the command installed, and does it speak MCP on its standard output?"


def _http_reason(error: BaseException) -> str:
    """A reason without addresses: the HTTP client's texts may quote the URL."""
    name = type(error).__name__
    if "certificate" in str(error).lower():
        return _NOT_TRUSTED
    known = {
        "ConnectError": "connection refused or host not found",
        "ConnectTimeout": "no answer in time",
        "ReadError": "the connection broke",
        "RemoteProtocolError": "the server closed the connection",
        "InvalidURL": "the URL is not valid",
        "UnsupportedProtocol": "the URL is not http or https",
        "HTTPStatusError": "the server refused the request",
        "ReadTimeout": "the server did not confirm a message in time",
        "WriteTimeout": "the server did not take the message in time",
        "DecodingError": "the answer's content encoding (gzip or the like) is broken",
    }
    return known.get(name, name)
