"""What a server says when it refuses a request for want of a token (RFC 6750, RFC 9728, RFC 9110 section 11.6.1)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx2

__all__ = ["Challenge", "challenge_of", "read_challenge"]

_TOKEN = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"
# A scheme, or a parameter of the scheme before it: name=token or name="quoted".
_PIECE = re.compile(rf"({_TOKEN})(?:\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|([^\s,\"]+)))?")
_LONGEST = 8192  # characters of a header that are looked at


@dataclass(frozen=True)
class Challenge:
    """A refused request.

    Attributes:
        status: 401 (no token, or not a good one) or 403 (a good token that may not do this).
        resource_metadata: where the server describes itself (RFC 9728).
        scope: what the token needs to be for, separated by spaces.
    """

    status: int
    resource_metadata: str | None = None
    scope: str | None = None

    @property
    def step_up(self) -> bool:
        """Whether the token is good but for too little."""
        return self.status == 403


def read_challenge(response: httpx2.Response) -> Challenge | None:
    """None when the answer is no demand for a token: another status, or only schemes that are not OAuth's."""
    return challenge_of(response.status_code, response.headers.get_list("www-authenticate"))


def challenge_of(status: int, headers: list[str]) -> Challenge | None:
    """`read_challenge` for a status and the WWW-Authenticate headers that came with it."""
    if status not in (401, 403):
        return None
    schemes: dict[str, dict[str, str]] = {}
    for scheme, parameters in _schemes(", ".join(headers)[:_LONGEST]):
        # Of several challenges the first stands; what it leaves out may stand in another, as of a proxy.
        schemes[scheme] = {**parameters, **schemes.get(scheme, {})}
    bearer = schemes.get("bearer")
    if status == 403 and (bearer is None or bearer.get("error") != "insufficient_scope"):
        return None
    if bearer is None and schemes:
        return None
    bearer = bearer or {}
    return Challenge(status, bearer.get("resource_metadata"), bearer.get("scope"))


def _schemes(header: str) -> Iterator[tuple[str, dict[str, str]]]:
    name, parameters = "", {}  # type: str, dict[str, str]
    for found in _PIECE.finditer(header):
        word, quoted, plain = found.groups()
        if quoted is None and plain is None:
            if name:
                yield name, parameters
            name, parameters = word.lower(), {}
        else:
            value = plain if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
            parameters.setdefault(word.lower(), value)
    if name:
        yield name, parameters
