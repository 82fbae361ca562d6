"""`gopher-mcp gateway`: an MCP server in front of others that asks before anything is destroyed."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import options
from .failures import EXIT_OK, UsageError, as_usage
from .listening import add_address, check_address, end_when_told, is_local_address, tls_options
from .status import waiting
from .storing import add_store, store_of

if TYPE_CHECKING:
    from ..gateway.rules import Rules
    from ..gateway.server import Gateway
    from ..gateway.upstream import Upstream

_PORT = 8124


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `gateway` to the command line."""
    parser = commands.add_parser(
        "gateway",
        help="put a server in front of others that asks before anything is destroyed",
        description="Passes on what MCP servers offer. A tool that may destroy something is held until a person has "
        "confirmed the call: the client's own, where it can show a form, else whoever answers through the store "
        "(gopher-mcp serve).",
    )
    parser.add_argument(
        "--upstream", action="append", default=[], metavar="NAME=URL|COMMAND",
        help="a server behind the gateway; repeatable. With several, tools are called NAME_tool",
    )  # fmt: skip
    parser.add_argument(
        "--upstream-header", action="append", default=[], metavar="'NAME: HEADER: VARIABLE'",
        help="a header for one server, its value from a variable; repeatable",
    )  # fmt: skip
    add_store(parser)
    _add_gate(parser)
    _add_http(parser)
    _add_jwt(parser)


def _add_gate(parser: argparse.ArgumentParser) -> None:
    gate = parser.add_argument_group("what is held (docs/gateway.md)")
    gate.add_argument("--rules", metavar="FILE", help="lists and rules as JSON; the options below come on top")
    gate.add_argument("--trust", action="append", default=[], metavar="NAME",
                      help="a server whose readOnlyHint is believed; repeatable")  # fmt: skip
    for name, what in (("allow", "never held"), ("hold", "always held"), ("deny", "never run")):
        gate.add_argument(f"--{name}", action="append", default=[], metavar="NAME:TOOL",
                          help=f"tools that are {what}, with * as in file names; repeatable")  # fmt: skip
    gate.add_argument("--elsewhere", action="store_true",
                      help="ask no client for a confirmation; all are answered through the store")  # fmt: skip
    gate.add_argument("--confirm-timeout", type=int, default=300, metavar="SECONDS",
                      help="how long a confirmation waits for its answer, 1 to 1800 (default: 300)")  # fmt: skip
    gate.add_argument("--confirm-at", metavar="URL", default=os.environ.get("GOPHER_MCP_CONFIRM_AT") or None,
                      help="the page where people confirm (gopher-mcp serve), told to callers whose call is held "
                      "(default: $GOPHER_MCP_CONFIRM_AT)")  # fmt: skip


def _add_http(parser: argparse.ArgumentParser) -> None:
    where = parser.add_argument_group("where it is served")
    where.add_argument("--stdio", action="store_true", help="on standard input and output, for one client")
    hosts = "a further Host header that is let in (name:* for any port); repeatable"
    add_address(where, _PORT, allowed=hosts, metavar="HOST:PORT")
    where.add_argument("--allowed-origin", action="append", default=[], metavar="ORIGIN",
                       help="a page that may call; repeatable")  # fmt: skip
    where.add_argument("--anonymous", action="store_true", help="let everybody on this machine call without a token")
    where.add_argument("--caller", default="local", metavar="CALLER",
                       help="whose calls those without a token are (default: local)")  # fmt: skip
    where.add_argument("--state-key-env", metavar="VARIABLE",
                       help="a secret shared by replicas, so that a call's rounds may change between them")  # fmt: skip


def _add_jwt(parser: argparse.ArgumentParser) -> None:
    jwt = parser.add_argument_group("JSON Web Tokens as callers' tokens")
    jwt.add_argument("--jwks", metavar="URL", help="where the identity provider publishes its keys")
    jwt.add_argument("--jwt-issuer", metavar="ISSUER", help="what iss has to be")
    jwt.add_argument("--jwt-audience", metavar="AUDIENCE", help="what aud has to hold: this gateway's name there")
    jwt.add_argument("--jwt-algorithm", action="append", metavar="NAME",
                     help="an algorithm that is taken; repeatable (default: RS256, ES256, PS256, EdDSA)")  # fmt: skip
    jwt.add_argument("--jwt-leeway", type=float, default=30.0, metavar="SECONDS", help="default: 30")
    jwt.add_argument("--jwt-caller", default="sub", metavar="CLAIM", help="whose value is the caller (default: sub)")
    jwt.add_argument("--jwt-scope-prefix", default="", metavar="TEXT",
                     help="what stands before `call` in the token's scopes")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C, or the end of standard input."""
    _check(args)
    tls = tls_options(args)
    try:
        from ..gateway.server import Gateway
    except ImportError as error:
        raise OSError(f"{error.name} is not installed: pip install 'gopher-mcp-python[serve]'") from None
    from ..store.housekeeping import Housekeeping

    upstreams, rules, state_key = _upstreams(args), _rules(args), _state_key(args)
    with waiting("opening the store"):
        store = store_of(args)
    try:
        with Housekeeping(store):
            gateway = Gateway(
                upstreams, store, rules=rules, ask_clients=not args.elsewhere, caller=args.caller,
                confirm_seconds=args.confirm_timeout, state_key=state_key, confirm_at=args.confirm_at,
            )  # fmt: skip
            return _stdio(gateway) if args.stdio else _http(args, gateway, tls)
    finally:
        store.close()


def _stdio(gateway: Gateway) -> int:
    import anyio

    from ..gateway.serving import serve_stdio

    anyio.run(serve_stdio, gateway)
    return EXIT_OK


def _http(args: argparse.Namespace, gateway: Gateway, tls: dict[str, Any]) -> int:
    from ..gateway.http import create_app
    from ..gateway.serving import HttpServer
    from ..serve.server import bind

    listener = bind(args.host, args.port)
    try:
        port = listener.getsockname()[1]
        app = create_app(
            gateway, _authenticators(args), host=args.host, port=port, allowed_hosts=args.allowed_host,
            allowed_origins=args.allowed_origin, anonymous=args.anonymous,
        )  # fmt: skip
        shown = f"[{args.host}]" if ":" in args.host else args.host
        print(f"gateway on http{'s' if tls else ''}://{shown}:{port}/mcp   Ctrl-C stops", flush=True)
        if args.store == "memory":
            print("the store is this process's memory: only clients that can show a form can confirm", flush=True)
        end_when_told()
        HttpServer(app, **tls).serve_on(listener)
    except KeyboardInterrupt:
        pass
    finally:
        listener.close()
    return EXIT_OK


def _check(args: argparse.Namespace) -> None:
    if not args.upstream:
        raise UsageError("a server behind the gateway is missing: --upstream NAME=URL")
    if not 1 <= args.confirm_timeout <= 1800:
        raise UsageError("--confirm-timeout must be 1 to 1800 seconds")
    if not args.stdio:
        if args.anonymous and not is_local_address(args.host):
            raise UsageError("--anonymous: calls without a token are served on a loopback address only")
        check_address(args)
    if not 0 <= args.jwt_leeway <= 300:
        raise UsageError("--jwt-leeway must be 0 to 300 seconds")
    jwt = (args.jwks, args.jwt_issuer, args.jwt_audience)
    if any(jwt) and not all(jwt):
        raise UsageError("--jwks, --jwt-issuer and --jwt-audience go together")
    if args.confirm_at is not None:
        _check_page(args.confirm_at)
    if args.store == "memory" and args.elsewhere:
        raise UsageError("--elsewhere needs a store that others reach too: sqlite:PATH or postgresql://...")


def _check_page(url: str) -> None:
    from ..gateway.held import page_address

    with as_usage("--confirm-at"):
        page_address(url)


def _upstreams(args: argparse.Namespace) -> list[Upstream]:
    from ..gateway.upstream import read_upstream
    from ..toolset.connection import HttpConnection

    found: dict[str, Upstream] = {}
    for text in args.upstream:
        with as_usage():
            upstream = read_upstream(text)
        if upstream.name in found:
            raise UsageError(f"--upstream: two servers are called {upstream.name}")
        found[upstream.name] = upstream
    for text in args.upstream_header:
        parts = [part.strip() for part in text.split(":")]
        named = found.get(parts[0])
        if len(parts) != 3 or named is None or not isinstance(named.connection, HttpConnection):
            raise UsageError("--upstream-header: expected 'NAME: HEADER: VARIABLE' with the name of a server by URL")
        headers = {**named.connection.headers, parts[1]: options.variable(parts[2], "--upstream-header")}
        found[named.name] = replace(named, connection=replace(named.connection, headers=headers))
    return list(found.values())


def _rules(args: argparse.Namespace) -> Rules:
    from ..gateway.rules import Rules

    rules = Rules.read(Path(args.rules).expanduser()) if args.rules else Rules()
    names = {text.partition("=")[0].strip() for text in args.upstream}
    unknown = [name for name in (*args.trust, *rules.trusted) if name not in names]
    if unknown:
        raise UsageError(f"--trust: no server is called {unknown[0][:40]!r}")
    with as_usage():
        return replace(
            rules,
            trusted=(*rules.trusted, *args.trust),
            allow=(*rules.allow, *args.allow),
            hold=(*rules.hold, *args.hold),
            deny=(*rules.deny, *args.deny),
        )


def _state_key(args: argparse.Namespace) -> bytes | None:
    return options.variable(args.state_key_env, "--state-key-env").encode() if args.state_key_env else None


def _authenticators(args: argparse.Namespace) -> list[Any]:
    from .token import token_file

    found: list[Any] = []
    file = token_file(args.tokens)
    if args.tokens or any("call" in entry.scopes for entry in file.entries()):
        found.append(file)
    if args.jwks:
        from ..gateway.jwt_tokens import ALGORITHMS, JwtAuthenticator

        with as_usage():
            found.append(
                JwtAuthenticator(
                    args.jwks, issuer=args.jwt_issuer, audience=args.jwt_audience,
                    algorithms=args.jwt_algorithm or ALGORITHMS, leeway_s=args.jwt_leeway,
                    caller_claim=args.jwt_caller, scope_prefix=args.jwt_scope_prefix,
                )
            )  # fmt: skip
    if not found and not args.anonymous:
        print("nobody can call yet: gopher-mcp token add CALLER --scope call makes a token", file=sys.stderr)
        found.append(file)
    return found
