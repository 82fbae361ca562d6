"""What a sign-in gave, and how it stands in a store: the token under its key, the client that got it beside it."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from ..oauth_options import GopherAgentTokenRecord, GopherAgentTokenStore
from ..redaction import redacted_error
from .errors import SignInError
from .keys import client_key

__all__ = ["Grant", "can_be_sent", "forget", "load", "save"]

# A token is renewed so many seconds before its end: it must still be good when the request arrives.
EARLY_SECONDS = 20.0
_CLIENT_TYPE = "client-registration"  # the token_type of the record beside the token's


@dataclass(frozen=True, repr=False)
class Grant:
    """A token with what renewing it takes.

    Attributes:
        record: the token; None: only the client is known.
        client: the client's registration, as RFC 7591 names its fields.
        server: the authorization server's issuer and endpoints, as RFC 8414 names them; empty where it has no metadata.
        resource: what the token was asked for (RFC 8707); None: nothing was named.
        early: how long before its end the token is renewed (in seconds).
        kept: whether the store has it; else it is good for the agent that got it only.
    """

    record: GopherAgentTokenRecord | None
    client: dict[str, Any] | None = None
    server: dict[str, Any] | None = None
    resource: str | None = None
    early: float = EARLY_SECONDS
    kept: bool = True

    @property
    def token(self) -> str | None:
        return None if self.record is None else self.record.access_token

    @property
    def expired(self) -> bool:
        """Whether the token is over, or will be in a moment."""
        if self.record is None or self.record.expires_at is None:
            return self.record is None
        return time.time() >= self.record.expires_at - self.early

    @property
    def over(self) -> bool:
        """Whether the token's time is up, to the second."""
        ends = None if self.record is None else self.record.expires_at
        return self.record is None or (ends is not None and time.time() >= ends)

    def covers(self, scope: str) -> bool:
        """Whether the token is known to be good for these scopes."""
        granted = (self.record.scope or "") if self.record is not None else ""
        return set(scope.split()) <= set(granted.split())

    @property
    def renewable(self) -> bool:
        return bool(self.record is not None and self.record.refresh_token and self.client)


async def load(store: GopherAgentTokenStore, key: str) -> Grant | None:
    """What is stored; None when there is nothing. Raises SignInError when the store fails."""
    record = await _asked(store.get(key))
    if record is not None and not can_be_sent(getattr(record, "access_token", None)):
        record = None
    beside = await _asked(store.get(client_key(key)))
    facts = _facts(beside)
    if record is None and facts is None:
        return None
    facts = facts or {}
    return Grant(record, facts.get("client"), facts.get("server"), facts.get("resource"))


async def save(store: GopherAgentTokenStore, key: str, grant: Grant) -> None:
    """The client first: a token without it could not be renewed. Raises SignInError when the store fails."""
    if grant.client is not None:
        facts = {"client": grant.client, "server": grant.server, "resource": grant.resource}
        await _asked(store.set(client_key(key), GopherAgentTokenRecord(json.dumps(facts), _CLIENT_TYPE)))
    if grant.record is not None:
        await _asked(store.set(key, grant.record))


async def forget(store: GopherAgentTokenStore, key: str, *, token: bool, client: bool) -> None:
    """What is worthless of the two. Raises SignInError when the store fails."""
    if token:
        await _asked(store.delete(key))
    if client:
        await _asked(store.delete(client_key(key)))


async def _asked(operation: Any) -> Any:
    try:
        return await operation
    except Exception as error:
        told = f"{type(error).__name__}: {redacted_error(error)}"
        raise SignInError(f"The token store failed ({told})", "misconfigured") from None


def can_be_sent(token: object) -> bool:
    """Whether a token can stand in a header (RFC 6750 has a narrower set, which real tokens leave)."""
    return isinstance(token, str) and token.isascii() and token.isprintable() and " " not in token and bool(token)


def _facts(record: Any) -> dict[str, Any] | None:
    """The client's facts; None when there are none that can be used, as after damage."""
    try:
        facts = json.loads(record.access_token)
        client, server, resource = facts.get("client"), facts.get("server"), facts.get("resource")
    except (AttributeError, TypeError, ValueError):
        return None
    if not _texts(client, "client_id", optional=("client_secret", "token_endpoint_auth_method", "issuer")):
        return None
    if server is not None and not _texts(server, "issuer", "authorization_endpoint", "token_endpoint"):
        return None
    return {"client": client, "server": server, "resource": resource if isinstance(resource, str) else None}


def _texts(facts: Any, *names: str, optional: tuple[str, ...] = ()) -> bool:
    """Whether these members are texts."""
    if not isinstance(facts, dict) or not all(isinstance(facts.get(name), str) for name in names):
        return False
    return all(isinstance(facts.get(name, ""), str) for name in optional)
