"""Where `serve` and `gateway` listen: on this machine unless told otherwise, and with certificates that can be used."""

from __future__ import annotations

import argparse
import signal
from typing import Any

from . import options
from .failures import EXIT_OK, UsageError

__all__ = ["add_address", "check_address", "end_when_told", "is_local_address", "tls_options"]


def add_address(parser: argparse._ActionsContainer, port: int, *, allowed: str, metavar: str) -> None:
    """--port, --host, --public, --allowed-host (with that help), --tls-cert, --tls-key, --tokens."""
    parser.add_argument("--port", type=options.port, default=port, help=f"default: {port}; 0: a free one")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("--public", action="store_true", help="really listen on an address that others reach; "
                        "needs --allowed-host, and https (--tls-cert, or a proxy that has it)")  # fmt: skip
    parser.add_argument("--allowed-host", action="append", default=[], metavar=metavar, help=allowed)
    parser.add_argument("--tls-cert", metavar="FILE", help="certificate (PEM), for https")
    parser.add_argument("--tls-key", metavar="FILE", help="its key (PEM)")
    parser.add_argument("--tokens", metavar="FILE", help="the file of tokens (default: in this user's data folder)")


def end_when_told() -> None:
    """SIGTERM ends the command as Ctrl-C does, with exit code 0; servers hand signals on when they have ended."""
    signal.signal(signal.SIGTERM, _end)


def _end(*_: Any) -> None:
    raise SystemExit(EXIT_OK)


def is_local_address(host: str) -> bool:
    """Whether only this machine reaches it."""
    from ..hostnames import is_local

    return is_local(f"[{host}]" if ":" in host else host)


def check_address(args: argparse.Namespace) -> None:
    """Raises UsageError for an address that others reach where nobody said that it is meant."""
    if is_local_address(args.host):
        return
    if not args.public:
        raise UsageError(f"--host {args.host} is reached by others: say --public as well if that is meant")
    if not args.allowed_host:
        raise UsageError("--public needs --allowed-host: the name under which others reach this server")


def tls_options(args: argparse.Namespace) -> dict[str, Any]:
    """The server's options for https. Raises UsageError when certificate and key are no pair that can be used."""
    import ssl

    if bool(args.tls_cert) != bool(args.tls_key):
        raise UsageError("--tls-cert and --tls-key go together")
    if not args.tls_cert:
        return {}
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(args.tls_cert, args.tls_key)
    except (OSError, ssl.SSLError) as error:
        reason = getattr(error, "strerror", None) or getattr(error, "reason", None) or type(error).__name__
        raise UsageError(
            f"--tls-cert {args.tls_cert} and --tls-key {args.tls_key} can't be used: {reason}; give a certificate and "
            "its key, both as PEM"
        ) from None
    return {"ssl_certfile": args.tls_cert, "ssl_keyfile": args.tls_key}
