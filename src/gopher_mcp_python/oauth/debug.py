"""Debug lines of the sign-in, redacted, for the logger "gopher_mcp_python.oauth".

They exist only with GOPHER_MCP_OAUTH_DEBUG=1. What is secret never gets into a line, not even with it.
"""

from __future__ import annotations

import logging
import os

from ..display import safe_line
from ..redaction import is_sensitive_name, redact_text, redacted_error

__all__ = ["debug", "enabled"]

_log = logging.getLogger("gopher_mcp_python.oauth")
_OFF = frozenset(("", "0", "false", "no", "off"))


def enabled() -> bool:
    """Whether GOPHER_MCP_OAUTH_DEBUG asks for debug lines."""
    return os.environ.get("GOPHER_MCP_OAUTH_DEBUG", "").strip().lower() not in _OFF


def debug(text: str, **fields: object) -> None:
    """Logs `text` (written by us, without anything of anybody else) and what is known to it, as name=value.

    A field whose name may hold a secret is only said to be there; URLs lose the values of their parameters.
    """
    if enabled() and _log.isEnabledFor(logging.DEBUG):
        shown = "".join(f" {name}={_shown(name, value)}" for name, value in fields.items())
        _log.debug("%s%s", text, shown)


def _shown(name: str, value: object) -> str:
    if value is None or isinstance(value, (bool, int, float)):
        return str(value)
    if is_sensitive_name(name):
        return "<redacted>"
    if isinstance(value, BaseException):
        return f"{type(value).__name__}({redacted_error(value)})"
    if isinstance(value, (list, tuple, set, frozenset)):
        return "[" + ", ".join(_shown(name, item) for item in list(value)[:20]) + "]"
    return safe_line(redact_text(str(value)[:5000]), limit=300)
