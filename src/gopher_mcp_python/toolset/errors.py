"""What can go wrong between this package and an MCP server, as errors that name the server and the remedy."""

from __future__ import annotations

from typing import Any

from ..errors import AgentError, ConnectionError, TimeoutError

URL_ELICITATION_REQUIRED = -32042
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
CONNECTION_CLOSED = -32000
PARSE_ERROR = -32700


class ToolsetError(AgentError):
    """A call on a server failed. Base of the errors of this package's session layer."""


class ServerError(ToolsetError):
    """The server answered a request with a JSON-RPC error.

    Attributes:
        code: the JSON-RPC error code.
        data: what the server sent along; may hold URLs, so it is no part of the message.
    """

    def __init__(self, message: str, *, code: int, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), str(self), self.code, self.data)


def _rebuild(kind: type[ServerError], message: str, code: int, data: Any) -> ServerError:
    return kind(message, code=code, data=data)


class UnsendableError(ToolsetError):
    """The arguments can't be written as JSON in UTF-8. Nothing was sent; other calls go on."""


class SessionLostError(ToolsetError, ConnectionError):
    """The connection ended while a request was under way: whether it was carried out is not known."""


class CallTimeoutError(ToolsetError, TimeoutError):
    """The call's own time is up. Time in which a person was asked is not counted."""


class ElicitationRequiredError(ToolsetError):
    """Error -32042 could not be satisfied: declined, malformed, the same URL again, or too many rounds."""


class ElicitationHandlerError(ToolsetError):
    """A handler raised while it was asked; the server was told so, and `__cause__` holds what it raised."""


def refused_text(where: str, status: int) -> str:
    """What to say of a server that refuses (HTTP status 401, 403); `where` says what was tried with which server."""
    return (
        f"{where} failed: the server refused the credentials (HTTP status {status}). Give a valid access token "
        "(create option access_token, --token on the command line) or an Authorization header (headers of McpToolset)"
    )
