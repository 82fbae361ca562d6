"""JSON Web Tokens of an identity provider as bearer tokens: signed by one of its published keys, for this gateway.

Only asymmetric algorithms that were listed are taken, so neither "none" nor a public key used as a secret works. A key
that is not known yet (the provider changed them) is looked up at once, but not more often than every ten seconds,
whatever tokens are sent.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..redaction import log_failure
from ..serve.tokens import MAX_CALLER, SCOPES, Principal, bearer_of

__all__ = ["ALGORITHMS", "JwtAuthenticator"]

_log = logging.getLogger("gopher_mcp_python.gateway")
ALGORITHMS = ("RS256", "ES256", "PS256", "EdDSA")
_ASYMMETRIC = frozenset((*ALGORITHMS, "RS384", "RS512", "ES384", "ES512", "PS384", "PS512"))
# Seconds for which a fetched key set is taken as it is, and between two looks for a key that it does not have.
KEYS_LAST_SECONDS = 300.0
LOOK_AGAIN_SECONDS = 10.0
FETCH_SECONDS = 10.0
MAX_LEEWAY_SECONDS = 300.0
MAX_KEY_SET_BYTES = 1024 * 1024


class JwtAuthenticator:
    """Tells callers by their JWTs.

    Args:
        jwks_url: where the provider publishes its keys (https, or http on this machine).
        issuer: what `iss` has to be, exactly.
        audience: what `aud` has to hold: this gateway's own name at the provider.
        algorithms: those that are taken.
        leeway_s: by how much clocks may differ, in seconds.
        caller_claim: whose value is the caller's name.
        scope_prefix: what stands before "call" and "answer" in the token's scopes ("gopher:").
        fetch: gets a URL's JSON; for tests.

    Raises ValueError for an algorithm that needs a shared secret, or none at all; another leeway than 0 to 300 s.
    """

    def __init__(
        self,
        jwks_url: str,
        *,
        issuer: str,
        audience: str,
        algorithms: Sequence[str] = ALGORITHMS,
        leeway_s: float = 30.0,
        caller_claim: str = "sub",
        scope_prefix: str = "",
        fetch: Callable[[str], Mapping[str, Any]] | None = None,
    ) -> None:
        unknown = [name for name in algorithms if name not in _ASYMMETRIC]
        if unknown or not algorithms:
            raise ValueError(f"JWT algorithms must be some of {', '.join(sorted(_ASYMMETRIC))}")
        if not 0 <= leeway_s <= MAX_LEEWAY_SECONDS:  # also what is no number
            raise ValueError(f"the leeway for JWTs must be 0 to {MAX_LEEWAY_SECONDS:.0f} seconds")
        if not issuer or not audience:
            raise ValueError("JWTs need an issuer and an audience: without them anybody's tokens would do")
        _check_url(jwks_url)
        self._url = jwks_url
        self._issuer = issuer
        self._audience = audience
        self._algorithms = list(algorithms)
        self._leeway_s = leeway_s
        self._claim = caller_claim
        self._prefix = scope_prefix
        self._fetch = fetch or _fetched
        self._lock, self._looking = threading.Lock(), threading.Lock()
        self._keys: dict[str | None, tuple[Any, str | None]] = {}
        self._fetched_at = float("-inf")
        self._tried_at = float("-inf")

    def authenticate(self, authorization: str | None) -> Principal | None:
        """See `serve.tokens.Authenticator`."""
        token = bearer_of(authorization)
        if token is None or token.count(".") != 2:
            return None
        import jwt

        try:
            header = jwt.get_unverified_header(token)
            known = self._key(header.get("kid")) if header.get("alg") in self._algorithms else None
            if known is None or known[1] not in (None, header["alg"]):  # a key is good for its own algorithm only
                return None
            claims = jwt.decode(
                token,
                known[0],
                algorithms=[header["alg"]],
                audience=self._audience,
                issuer=self._issuer,
                leeway=self._leeway_s,
                options={"require": ["exp", "iss", "aud", self._claim]},
            )
        except (jwt.PyJWTError, ValueError, TypeError):
            return None
        return self._principal(claims)

    def _principal(self, claims: Mapping[str, Any]) -> Principal | None:
        caller = claims.get(self._claim)
        if not isinstance(caller, str) or not caller.strip() or len(caller) > MAX_CALLER or not caller.isprintable():
            return None
        told = claims.get("scope", claims.get("scp", ""))
        given = told.split() if isinstance(told, str) else told if isinstance(told, list) else []
        scopes = frozenset(scope for scope in SCOPES if self._prefix + scope in given)
        return Principal(caller, "jwt", scopes)

    def _key(self, kid: str | None) -> tuple[Any, str | None] | None:
        """The key of this id, and its algorithm where the provider says so; a token without an id may be signed by the
        only key there is."""
        with self._lock:
            now = time.monotonic()
            known, age = self._found(kid), now - self._fetched_at
            due = (known is None or age > KEYS_LAST_SECONDS) and now - self._tried_at > LOOK_AGAIN_SECONDS
            if due:
                self._tried_at = now
        if known is not None and not due and age <= 2 * KEYS_LAST_SECONDS:
            return known  # also while another request looks
        with self._looking:  # whoever needs what is being looked up waits for it
            if due:
                self._look_up(now)
                self._tried_at = time.monotonic()
        with self._lock:
            return self._found(kid)

    def _found(self, kid: str | None) -> tuple[Any, str | None] | None:
        if kid is not None:
            return self._keys.get(kid)
        return next(iter(self._keys.values())) if len(self._keys) == 1 else None

    def _look_up(self, now: float) -> None:
        """Replaces the keys; a provider that can't be reached leaves those that were known."""
        import jwt

        try:
            listed = self._fetch(self._url).get("keys")
            keys: dict[str | None, tuple[Any, str | None]] = {}
            for entry in listed if isinstance(listed, list) else ():
                if not isinstance(entry, dict) or entry.get("use", "sig") != "sig" or entry.get("kty") == "oct":
                    continue
                if not isinstance(entry.get("kid"), str | None):
                    continue
                try:
                    keys[entry.get("kid")] = jwt.PyJWK(entry).key, entry.get("alg")
                except (jwt.PyJWTError, ValueError, TypeError):  # of a kind that is not known here
                    continue
        except Exception as error:
            log_failure(_log, "The key set for JWTs could not be fetched", error)
            return
        with self._lock:
            self._keys, self._fetched_at = keys, now


def _check_url(url: str) -> None:
    from urllib.parse import urlsplit

    from ..hostnames import is_local

    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and is_local(parts.hostname or "")):
        raise ValueError("the URL of a key set must be https (http on this machine only)")


def _fetched(url: str) -> Mapping[str, Any]:
    import httpx2

    from ..toolset.tls import shared_context

    end = time.monotonic() + FETCH_SECONDS
    with httpx2.Client(verify=shared_context(), timeout=FETCH_SECONDS, follow_redirects=False) as client:
        with client.stream("GET", url, headers={"accept": "application/json"}) as reply:
            reply.raise_for_status()
            data = b""
            for part in reply.iter_bytes():
                data += part
                if len(data) > MAX_KEY_SET_BYTES or time.monotonic() > end:
                    raise ValueError("the key set is too large, or comes too slowly")
    found = json.loads(data)
    if not isinstance(found, dict):
        raise ValueError("the key set is no JSON object")
    return found
