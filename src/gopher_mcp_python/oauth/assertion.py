"""The grant for which nobody signs in here: a company's identity provider vouches for the person (SEP-990).

The program has signed its person in there already and exchanges that for an assertion (ID-JAG) meant for one
authorization server and one MCP server; the authorization server gives a token for it (RFC 7523 section 2.1).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import httpx2
from mcp.client.auth import OAuthClientProvider, TokenStorage
from mcp.shared.auth import JWT_BEARER_GRANT_TYPE, OAuthClientMetadata

from ..awaiting import on_a_thread
from .errors import SignInError

if TYPE_CHECKING:
    from ..oauth_options import Assertion

__all__ = ["AssertionProvider"]


class AssertionProvider(OAuthClientProvider):
    """The SDK's OAuth client with this grant instead of a person's authorization.

    Args:
        assertion: the program's own function, see the option of that name.
        settle: called when the authorization server is known: refuses a wrong one, chooses how to prove who we are.
    """

    def __init__(
        self,
        url: str,
        storage: TokenStorage,
        assertion: Assertion,
        settle: Callable[[OAuthClientProvider], None],
    ) -> None:
        metadata = OAuthClientMetadata(redirect_uris=None, grant_types=[JWT_BEARER_GRANT_TYPE])
        super().__init__(url, metadata, storage)
        self._assertion = assertion
        self._settle = settle

    async def _perform_authorization(self) -> httpx2.Request:
        context = self.context
        self._settle(self)
        if context.oauth_metadata is None or context.client_info is None:
            raise SignInError("The server names no authorization server for an assertion", "misconfigured")
        resource = context.get_resource_url()
        data = {
            "grant_type": JWT_BEARER_GRANT_TYPE,
            "assertion": await self._asked(str(context.oauth_metadata.issuer), resource),
            "client_id": context.client_info.client_id,
            "resource": resource,
        }
        if context.client_metadata.scope:
            data["scope"] = context.client_metadata.scope
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        data, headers = context.prepare_token_auth(data, headers)
        return httpx2.Request("POST", self._get_token_endpoint(), data=data, headers=headers)

    async def _asked(self, audience: str, resource: str) -> str:
        """The assertion. Raises SignInError, without the text of what the function raised, which may hold secrets."""
        try:
            # On another thread, a daemon: it may wait for a server, which must hold up neither this loop nor the exit.
            given = await on_a_thread(partial(self._assertion, audience, resource))
            if inspect.isawaitable(given):
                given = await given
        except Exception as error:
            kind = type(error).__name__
            raise SignInError(f"The oauth option assertion gave no assertion ({kind})", "unavailable") from None
        if not isinstance(given, str) or not given:
            raise SignInError("The oauth option assertion must return the assertion as a text", "misconfigured")
        return given
