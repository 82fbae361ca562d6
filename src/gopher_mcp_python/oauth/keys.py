"""Under which key a store keeps what a sign-in gave: one key for each protected server and kind of client.

"https://host:8443/mcp#<hash>" is a token's key, "https://host:8443/mcp#<hash>/client" that of the client beside it.
What stands before the "#" is the server's address, so that a person can sign out of a server.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from ..oauth_options import GopherAgentOAuthOptions

__all__ = ["address_of", "canonical_address", "client_key", "token_key"]

_DEFAULT_PORTS = {"http": 80, "https": 443}


def token_key(url: str, options: GopherAgentOAuthOptions) -> str:
    """The key of a server's token. The hash tells servers apart that differ in their query, and clients and scopes that
    must not share a token. Raises ValueError for what is no http or https URL."""
    scopes = sorted(set(options.scopes)) if options.scopes is not None else None
    facts = [urlsplit(url).query, options.client_id, options.client_metadata_url, options.grant, scopes]
    return f"{canonical_address(url)}#{hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:24]}"


def client_key(key: str) -> str:
    """The key beside a token's, of the client registration and the endpoints that a refresh needs."""
    return f"{key}/client"


def address_of(key: str) -> str | None:
    """The server's address in a stored key; None when the key has none (another program's)."""
    address, mark, _ = key.partition("#")
    try:
        return canonical_address(address) if mark else None
    except ValueError:
        return None


def canonical_address(url: str) -> str:
    """A server's address in the one spelling that keys use: scheme and host in lower case, no default port, no user
    info, no query, no fragment, no slash at the end. Raises ValueError, without the URL, when it is none."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        raise ValueError("not a URL that can be read (its host or port is malformed)") from None
    scheme, host = parts.scheme.lower(), (parts.hostname or "").lower()
    if scheme not in _DEFAULT_PORTS or not host:
        raise ValueError("not an http or https URL with a host")
    shown = f"[{host}]" if ":" in host else _ascii(host)
    place = shown if port in (None, _DEFAULT_PORTS[scheme]) else f"{shown}:{port}"
    return f"{scheme}://{place}{parts.path.rstrip('/')}"


def _ascii(host: str) -> str:
    from ..hostnames import ascii_host

    return host if host.isascii() else ascii_host(host)
