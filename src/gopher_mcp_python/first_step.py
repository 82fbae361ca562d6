"""First-step OAuth: signing in to the MCP server itself, before any tool runs. Separate from elicitation in every way.

A factory asks `sign_ins` for what its agent may sign in with; the engine then takes one `ServerSignIn` for each server
that brings no credentials of its own. The options of elicitation have no part in it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from .oauth_options import GopherAgentOAuthOptions, GopherAgentTokenStore

if TYPE_CHECKING:
    from .oauth.signin import ServerSignIn
    from .runtime_options import GopherAgentCreateOptions
    from .toolset.connection import Connection

__all__ = ["SignIns", "sign_ins", "sign_ins_with"]


class SignIns:
    """The sign-ins of one agent: the same options and store for each of its servers, a token of its own for each."""

    def __init__(self, options: GopherAgentOAuthOptions, store: GopherAgentTokenStore) -> None:
        self._options = options
        self._store = store

    def to(self, url: str, label: str) -> ServerSignIn:
        """The sign-in of one server; `label` is what people know it by. Nothing happens before it is used."""
        from .oauth.signin import ServerSignIn

        return ServerSignIn(url, label, self._options, self._store)

    def before(self, connection: Connection) -> Connection:
        """The connection with a token of its own, where the caller brings no credentials for it."""
        from .oauth.auth import auth_for
        from .toolset.connection import HttpConnection

        if not isinstance(connection, HttpConnection) or connection.has_authorization:
            return connection
        return replace(connection, auth=auth_for(connection, self.to(connection.url, connection.label)))


def sign_ins(options: GopherAgentCreateOptions) -> SignIns | None:
    """None where nobody is to sign in: it was disabled, or the caller brings an Authorization of their own."""
    return None if options.has_authorization else sign_ins_with(options.oauth)


def sign_ins_with(options: GopherAgentOAuthOptions | None) -> SignIns | None:
    """None where it was disabled."""
    oauth = options or GopherAgentOAuthOptions()
    if oauth.mode == "disabled":
        return None
    from .oauth.stores import resolve_store

    return SignIns(oauth, resolve_store(oauth.token_store))
