"""Answer from elsewhere: REST and a page over the store (`gopher-mcp serve`).

    store = ...                                          # gopher_mcp_python.store
    tokens = TokenFile("tokens.json")
    app = create_app(store, tokens, allowed_hosts=["127.0.0.1:8123", "localhost:8123"])

Needs the extra `serve` (starlette, uvicorn) for the application; tokens need nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazily import names_of

if TYPE_CHECKING:
    from .app import create_app
    from .tokens import Authenticator, Principal, Scope, TokenFile, TokenFileError
    from .uploads import Uploads

__all__ = ["Authenticator", "Principal", "Scope", "TokenFile", "TokenFileError", "Uploads", "create_app"]

# What needs a web framework is imported on first use.
__getattr__, __dir__ = names_of(
    __name__,
    {
        "app": ("create_app",),
        "tokens": ("Authenticator", "Principal", "Scope", "TokenFile", "TokenFileError"),
        "uploads": ("Uploads",),
    },
)
