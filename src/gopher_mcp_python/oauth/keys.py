"""Under which key a store keeps what a sign-in gave: one key for each protected server and kind of client."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from ..oauth_options import GopherAgentOAuthOptions

__all__ = ["canonical", "client_key", "token_key"]

_DEFAULT_PORTS = {"http": 80, "https": 443}


def canonical(url: str) -> str:
    """A server's address as it begins its keys: lower-case scheme and host, no default port, no user, query, fragment
    or slash at the end. Raises ValueError when it can't be read."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    host = f"[{host}]" if ":" in host else host
    port = "" if parts.port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"


def token_key(url: str, options: GopherAgentOAuthOptions) -> str:
    """The key of a server's token: readable up to the "#", so that `gopher-mcp logout URL` finds it. The rest tells
    servers apart that differ in their query, and clients and scopes that must not share a token."""
    scopes = sorted(set(options.scopes)) if options.scopes is not None else None
    facts = [urlsplit(url).query, options.client_id, options.client_metadata_url, options.grant, scopes]
    return f"{canonical(url)}#{hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:24]}"


def client_key(key: str) -> str:
    """The key beside a token's, of the client registration and the endpoints that a refresh needs."""
    return f"{key}/client"
