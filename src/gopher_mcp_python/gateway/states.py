"""What a client of 2026-07-28 carries from one round of a call to the next on the gateway's behalf.

It is signed, and good for the same caller and the same call only.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from typing import Any

__all__ = ["States"]

_MARK = "gopher-mcp."


class States:
    """Seals and opens `requestState`.

    Args:
        key: of the signature; gateways that share one can go on with each other's calls. None: this process's own.
    """

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key or secrets.token_bytes(32)

    def seal(self, facts: dict[str, Any], whose: str) -> str:
        body = base64.urlsafe_b64encode(json.dumps(facts).encode()).decode()
        return f"{_MARK}{body}.{self._mac(body, whose)}"

    def open(self, state: Any, whose: str) -> dict[str, Any] | None:
        """The facts; None for a state that is not the gateway's, or another call's."""
        if not isinstance(state, str) or not state.startswith(_MARK):
            return None
        body, _, mac = state[len(_MARK) :].rpartition(".")
        if not hmac.compare_digest(mac.encode(), self._mac(body, whose).encode()):
            return None
        facts: dict[str, Any] = json.loads(base64.urlsafe_b64decode(body))
        return facts

    def _mac(self, body: str, whose: str) -> str:
        return hmac.new(self._key, f"{body}\n{whose}".encode(), hashlib.sha256).hexdigest()


def is_ours(state: Any) -> bool:
    """Whether a state was made by a gateway; such a one never goes to a server."""
    return isinstance(state, str) and state.startswith(_MARK)
