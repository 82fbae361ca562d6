"""Who the program is to an authorization server, and how it proves that."""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING

from mcp.client.auth import OAuthClientProvider, TokenStorage
from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata
from pydantic import AnyUrl

from .errors import SignInError
from .http import host_of

if TYPE_CHECKING:
    from ..oauth_options import GopherAgentOAuthOptions
    from .grants import Grant

__all__ = ["check_pkce", "choose_method", "known_client", "machine", "method_for"]

# The client authentication methods that can be used here, best first; a program on somebody's machine keeps no secret.
_METHODS = ("none", "client_secret_basic", "client_secret_post")


def known_client(
    options: GopherAgentOAuthOptions, prior: Grant | None, redirect_uri: str | None
) -> OAuthClientInformationFull | None:
    """The client to sign in as, where one is known: given in the options, or registered with this redirect."""
    if options.client_id:
        return OAuthClientInformationFull(
            client_id=options.client_id,
            client_secret=options.client_secret,
            token_endpoint_auth_method=options.token_endpoint_auth_method,
            redirect_uris=[AnyUrl(redirect_uri)] if redirect_uri else None,
        )
    known = prior.client if prior is not None else None
    if known is None or redirect_uri not in known.get("redirect_uris", ()):
        return None
    try:
        client = OAuthClientInformationFull.model_validate(known)
    except ValueError:  # damaged: registered anew
        return None
    ends = client.client_secret_expires_at
    return None if ends and ends < time.time() else client


def machine(url: str, staging: TokenStorage, options: GopherAgentOAuthOptions) -> OAuthClientProvider:
    """The SDK's client for a program that signs in by itself (RFC 6749 section 4.4)."""
    from mcp.client.auth.extensions import client_credentials as extension
    from mcp.shared.exceptions import MCPDeprecationWarning

    with warnings.catch_warnings():  # it wants to know the issuer, which only some of our users do
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        if options.private_key:
            signed = extension.SignedJWTParameters(
                issuer=options.client_id or "",
                subject=options.client_id or "",
                signing_key=options.private_key,
                signing_algorithm=_algorithm(options.private_key),
            )
            return extension.PrivateKeyJWTOAuthProvider(
                url,
                staging,
                options.client_id or "",
                signed.create_assertion_provider(),
                issuer=options.issuer,
            )
        method = options.token_endpoint_auth_method
        return extension.ClientCredentialsOAuthProvider(
            url,
            staging,
            options.client_id or "",
            options.client_secret or "",
            "client_secret_post" if method == "client_secret_post" else "client_secret_basic",
            issuer=options.issuer,
        )


def method_for(metadata: OAuthMetadata | None) -> str:
    """RFC 8414 section 2: where a server names none, it does client_secret_basic; one that has no metadata may do
    anything, and a program on somebody's machine is a public client."""
    if metadata is None:
        return "none"
    supported = metadata.token_endpoint_auth_methods_supported or ["client_secret_basic", "none"]
    return next((method for method in _METHODS if method in supported), "none")


def check_pkce(provider: OAuthClientProvider) -> None:
    """MCP 2025-11-25, "Authorization Code Protection": a server whose metadata do not name S256 is not to be used."""
    metadata = provider.context.oauth_metadata
    if metadata is not None and "S256" not in (metadata.code_challenge_methods_supported or ()):
        raise SignInError(
            f"{host_of(str(metadata.issuer))} does not say that it supports PKCE with S256 "
            "(code_challenge_methods_supported), without which a sign-in from a program is not safe. Nothing was "
            "opened; its operator has to enable it",
            "misconfigured",
        )


def choose_method(provider: OAuthClientProvider) -> None:
    """A client with a secret whose method nobody named uses the one that the server can do (RFC 7591 section 2)."""
    client, metadata = provider.context.client_info, provider.context.oauth_metadata
    if client is None or not client.client_secret or client.token_endpoint_auth_method is not None:
        return
    supported = (metadata.token_endpoint_auth_methods_supported if metadata else None) or ["client_secret_basic"]
    basic = "client_secret_basic" in supported or "client_secret_post" not in supported
    client.token_endpoint_auth_method = "client_secret_basic" if basic else "client_secret_post"


def _algorithm(pem: str) -> str:
    """The signature algorithm that goes with a private key (RFC 7518 section 3.1). Raises SignInError."""
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(pem.encode(), password=None)
    except (TypeError, ValueError):
        raise SignInError("The oauth private_key is not a PEM key without a password", "misconfigured") from None
    if isinstance(key, rsa.RSAPrivateKey):
        return "RS256"
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return "EdDSA"
    curves = {256: "ES256", 384: "ES384", 521: "ES512"}
    if isinstance(key, ec.EllipticCurvePrivateKey) and key.key_size in curves:
        return curves[key.key_size]
    raise SignInError("The oauth private_key is of a kind that signs no tokens (RSA, EC, Ed25519 do)", "misconfigured")
