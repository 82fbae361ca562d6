"""Expected failures in one or a few plain lines, each with what to do next."""

from __future__ import annotations

from ..display import safe_text
from ..errors import AgentError, ApiKeyError, ConnectionError, TimeoutError

EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_INTERRUPTED = 0, 1, 2, 130


class UsageError(Exception):
    """The command line can't be understood; the text names the argument."""


def explain(error: BaseException) -> list[str] | None:
    """What to print for this failure; None when it is not an expected one (then a traceback is of use)."""
    if isinstance(error, AgentError):
        lines = [f"gopher-mcp: {safe_text(str(error))}"]
    elif isinstance(error, (ValueError, OSError)):
        lines = [f"gopher-mcp: {safe_text(str(error)) or type(error).__name__}"]
    else:
        return None
    remedy = _remedy(error, str(error))
    return [*lines, f"  try: {remedy}"] if remedy else lines


def _remedy(error: BaseException, text: str) -> str | None:
    """The next thing to type, unless the message has one already."""
    if "gopher-mcp doctor" in text or "pip install" in text or "environment variable" in text or "?" in text:
        return None
    if isinstance(error, TimeoutError):
        return "--timeout SECONDS gives the run more time (0: no limit)"
    if isinstance(error, (ApiKeyError, ConnectionError)):
        return "--token-env NAME sends a token to the MCP server; models take theirs from OPENAI_API_KEY and its like"
    return None
