"""One TLS context for all HTTP clients of this process, with certificates that are read when one of them needs them.

An HTTP client of its own would read all certificate authorities of the machine when it is made (30 ms and more), also
for a server that is reached by plain http, and each one again.
"""

from __future__ import annotations

import os
import ssl
import threading
from collections.abc import Iterable
from typing import Any

__all__ = ["shared_context"]

_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
_lock = threading.Lock()
_contexts: dict[tuple[str | None, ...], ssl.SSLContext] = {}


def shared_context() -> ssl.SSLContext:
    """The context for an HTTP client's `verify`: its own default one, made at the first handshake, wherever that comes
    from (an https address, a redirect to one, a proxy).

    SSL_CERT_FILE and SSL_CERT_DIR count as they do for the HTTP client; what they name is read once. By itself the
    context trusts no authority, so nothing can slip past it.
    """
    key = tuple(os.environ.get(name) for name in _VARIABLES)
    with _lock:
        context = _contexts.get(key)
        if context is None:
            context = _contexts[key] = _standing_before(_Default())
        return context


def _standing_before(default: _Default) -> ssl.SSLContext:
    """No class of its own: for a handshake with one of those anyio starts a thread that the end of the process waits
    for as long as the session lives."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for name in ("wrap_bio", "wrap_socket", "set_alpn_protocols"):
        setattr(context, name, getattr(default, name))
    return context


class _Default:
    """The HTTP client's default context, once there is one."""

    def __init__(self) -> None:
        self._making = threading.Lock()
        self._real: ssl.SSLContext | None = None
        self._protocols: list[str] | None = None

    def wrap_bio(self, *args: Any, **options: Any) -> ssl.SSLObject:
        return self._made().wrap_bio(*args, **options)

    def wrap_socket(self, *args: Any, **options: Any) -> ssl.SSLSocket:
        return self._made().wrap_socket(*args, **options)

    def set_alpn_protocols(self, protocols: Iterable[str]) -> None:
        """The HTTP client says the same before each connection. Once is enough, and with handshakes of other threads
        under way it is also all that is safe."""
        wanted = list(protocols)
        with self._making:
            if wanted != self._protocols:
                self._protocols = wanted
                if self._real is not None:
                    self._real.set_alpn_protocols(wanted)

    def _made(self) -> ssl.SSLContext:
        with self._making:
            if self._real is None:
                import httpx2

                real = httpx2.create_ssl_context()
                if self._protocols is not None:
                    real.set_alpn_protocols(self._protocols)
                self._real = real
            return self._real
