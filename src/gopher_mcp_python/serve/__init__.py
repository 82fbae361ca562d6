"""Answer from elsewhere: REST and a page over the store (`gopher-mcp serve`).

    store = ...                                          # gopher_mcp_python.store
    tokens = TokenFile("tokens.json")
    app = create_app(store, tokens, allowed_hosts=["127.0.0.1:8123", "localhost:8123"])

Needs the extra `serve` (starlette, uvicorn) for the application; tokens need nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .tokens import Authenticator, Principal, Scope, TokenFile, TokenFileError

if TYPE_CHECKING:
    from .app import create_app
    from .uploads import Uploads

__all__ = ["Authenticator", "Principal", "Scope", "TokenFile", "TokenFileError", "Uploads", "create_app"]


def __getattr__(name: str) -> Any:
    """What needs a web framework is imported on first use."""
    if name == "create_app":
        from .app import create_app

        return create_app
    if name == "Uploads":
        from .uploads import Uploads

        return Uploads
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
