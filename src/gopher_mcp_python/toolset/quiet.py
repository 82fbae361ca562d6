"""Keeps secrets and noise of the libraries below out of the program's logs.

The SDK logs whole messages at debug level, and some failures with the text of the message at error level; elicitation
URLs carry `state` and codes. A filter on those loggers redacts each record before any handler sees it. Without a
logging configuration Python prints warnings of every library to stderr; for these the errors that this package raises
already say it.
"""

from __future__ import annotations

import logging
import re

from ..redaction import redact_text

# Loggers (not parents: a filter sees only records of its own logger) that may quote messages or URLs.
_LOGGERS = (
    "client",
    "mcp.client.auth.oauth2",
    "mcp.client.client",
    "mcp.client.sse",
    "mcp.client.stdio",
    "mcp.client.streamable_http",
    "mcp.shared.dispatcher",
    "mcp.shared.jsonrpc_dispatcher",
    "httpcore2.connection",
    "httpcore2.http11",
    "httpcore2.http2",
    "httpx2",
    "anthropic._base_client",
    "openai._base_client",
)
# A header as the HTTP library prints it; the session's id is as good as a key.
_BYTES_HEADER = re.compile(r"(b'(?:mcp-session-id|authorization|set-cookie|cookie)', )b'[^']*'", re.IGNORECASE)
_SESSION_ID = re.compile(r"(session ID: )\S+", re.IGNORECASE)
_ROOTS = ("client", "mcp", "httpcore2", "httpx2")


class _Redact(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        if record.name == "mcp.client.auth.oauth2" and record.exc_info:
            return False  # logged and raised; what we raise for it says it without the servers' replies
        text = _SESSION_ID.sub(r"\1<redacted>", redact_text(record.getMessage()))
        record.msg, record.args = _BYTES_HEADER.sub(r"\1b'<redacted>'", text), ()
        if record.exc_info and record.exc_info[0] is not None:
            # A traceback may quote the message that could not be read.
            record.msg += f" [{record.exc_info[0].__name__}]"
            record.exc_info = record.exc_text = None
        return True


_filter = _Redact()


def hush() -> None:
    """Installs the filter. Idempotent."""
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if _filter not in logger.filters:
            logger.addFilter(_filter)
    for name in _ROOTS:
        logger = logging.getLogger(name)
        if not any(isinstance(handler, logging.NullHandler) for handler in logger.handlers):
            logger.addHandler(logging.NullHandler())
