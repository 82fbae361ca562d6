"""First-step OAuth: signing in to the MCP server itself, before any tool runs. Separate from elicitation in every way.

A factory asks `sign_ins` for what its agent may sign in with; the engine then takes one `ServerSignIn` for each server
that brings no credentials of its own. The options of elicitation have no part in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .oauth_options import GopherAgentOAuthOptions, GopherAgentTokenStore

if TYPE_CHECKING:
    from .oauth.signin import ServerSignIn
    from .runtime_options import GopherAgentCreateOptions

__all__ = ["SignIns", "sign_ins"]


class SignIns:
    """The sign-ins of one agent: the same options and store for each of its servers, a token of its own for each."""

    def __init__(self, options: GopherAgentOAuthOptions, store: GopherAgentTokenStore) -> None:
        self._options = options
        self._store = store

    def to(self, url: str, label: str) -> ServerSignIn:
        """The sign-in of one server; `label` is what people know it by. Nothing happens before it is used."""
        from .oauth.signin import ServerSignIn

        return ServerSignIn(url, label, self._options, self._store)


def sign_ins(options: GopherAgentCreateOptions) -> SignIns | None:
    """None where nobody is to sign in: it was disabled, or the caller brings an Authorization of their own."""
    oauth = options.oauth or GopherAgentOAuthOptions()
    if oauth.mode == "disabled" or options.has_authorization:
        return None
    from .oauth.stores import resolve_store

    return SignIns(oauth, resolve_store(oauth.token_store))
