"""What of this package needs the second generation of the MCP SDK, and what to say where the first is installed.

A program that needs mcp 1.x (langchain-mcp-adapters does) can have this package beside it, for its callbacks and
handlers. All that talks to servers by itself needs 2.3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from .errors import AgentError

__all__ = ["NEEDED", "REMEDY", "needed_for", "require", "trouble"]

NEEDED = (2, 3)
_WANTED = ".".join(map(str, NEEDED))
REMEDY = f"pip install -U 'mcp>={_WANTED}'"
_PACKAGES = frozenset(("mcp", "mcp_types", "httpx2"))


def trouble() -> str | None:
    """Why the installed SDK can't be used by what needs the second generation; None: it can."""
    from importlib import metadata

    try:
        version = metadata.version("mcp")
    except metadata.PackageNotFoundError:
        return f"needs mcp {_WANTED} or newer, and none is installed: {REMEDY}"
    found = re.match(r"(\d+)\.(\d+)", version)
    if found is not None and (int(found[1]), int(found[2])) >= NEEDED:
        return None
    return f"needs mcp {_WANTED} or newer; {version} is installed: {REMEDY}"


def require(what: str) -> None:
    """Raises AgentError where the installed SDK can't be used. Takes a tenth of a second; see `needed_for`."""
    reason = trouble()
    if reason is not None:
        raise AgentError(f"{what} {reason}")


@contextmanager
def needed_for(what: str) -> Iterator[None]:
    """Around an import that needs the SDK: where that is why it fails, the error names `what`, the version, the remedy.

    Raises AgentError.
    """
    try:
        yield
    except ImportError as error:
        missing = (error.name or "").partition(".")[0]
        reason = trouble() if missing in _PACKAGES else None
        if reason is None:
            raise
        raise AgentError(f"{what} {reason}") from error
