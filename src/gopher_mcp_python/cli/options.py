"""The arguments that say which servers, which model and which credentials: shared by `run` and `demo`."""

from __future__ import annotations

import argparse
import getpass
import os
import re
import sys
from collections.abc import Mapping
from typing import Any, Literal

from ..oauth_options import TOKEN_STORE_NAMES, GopherAgentTokenStore
from .failures import UsageError
from .secrecy import keep_out

DEFAULT_PROVIDER = "DirectProvider"


def add_model(parser: argparse.ArgumentParser) -> None:
    """--provider, --model, --engine, --timeout."""
    group = parser.add_argument_group("agent")
    group.add_argument(
        "--provider",
        default=os.environ.get("GOPHER_MCP_PROVIDER") or DEFAULT_PROVIDER,
        help="AnthropicProvider, OpenAIProvider, ... or DirectProvider: no model, it calls the tool that the query "
        "names (default: $GOPHER_MCP_PROVIDER, else DirectProvider)",
    )
    group.add_argument(
        "--model", default=os.environ.get("GOPHER_MCP_MODEL") or None, help="model name (default: $GOPHER_MCP_MODEL)"
    )
    group.add_argument(
        "--engine",
        choices=("auto", "native", "embedded"),
        default=None,
        help="default: $GOPHER_MCP_ENGINE, else auto; `gopher-mcp doctor` says what auto takes here and why",
    )
    group.add_argument(
        "--timeout",
        type=_seconds,
        default=60.0,
        metavar="SECONDS",
        help="limit for the run, without the time that you need for a prompt; 0: none (default: 60)",
    )


def add_elicitation(parser: argparse.ArgumentParser) -> None:
    """--elicitation, --no-browser, --elicitation-timeout."""
    group = parser.add_argument_group("when a server asks something of you")
    group.add_argument(
        "--elicitation",
        choices=("ask", "decline", "cancel", "off"),
        default="ask",
        help="ask here (default); always decline or cancel; off: tell servers that nobody can be asked",
    )
    browser = group.add_mutually_exclusive_group()
    browser.add_argument("--no-browser", action="store_true", help="print the link, open nothing")
    browser.add_argument("--ask-browser", action="store_true", help="ask before the browser is opened")
    group.add_argument(
        "--elicitation-timeout", type=_seconds, default=None, metavar="SECONDS", help="limit for each answer"
    )


def add_credentials(parser: argparse.ArgumentParser) -> None:
    """--token-env, --token, --header, --header-env."""
    group = parser.add_argument_group("credentials (names of variables keep them out of the process list)")
    token = group.add_mutually_exclusive_group()
    token.add_argument("--token-env", metavar="NAME", help="variable that holds the access token for the MCP server")
    token.add_argument("--token", metavar="TOKEN", help="the access token itself; '-' reads it from standard input")
    group.add_argument(
        "--header", action="append", default=[], metavar="'NAME: VALUE'", help="a header for the server; repeatable"
    )
    group.add_argument(
        "--header-env", action="append", default=[], metavar="'NAME: VARIABLE'", help="the same, value from a variable"
    )


def add_sign_in(parser: argparse.ArgumentParser) -> None:
    """--no-sign-in, --scope, --client-id, --client-secret-env, --redirect-uri, --sign-in-timeout, --token-store."""
    group = parser.add_argument_group("when the server itself wants you to sign in")
    group.add_argument("--no-sign-in", action="store_true", help="never sign in; such a server then refuses")
    group.add_argument(
        "--scope", action="append", metavar="NAME", help="what to ask for, instead of what the server says; repeatable"
    )
    group.add_argument("--client-id", metavar="ID", help="of this program, where it was registered beforehand")
    group.add_argument("--client-secret-env", metavar="NAME", help="variable that holds the secret of that client")
    group.add_argument("--redirect-uri", metavar="URI", help="loopback address that was registered, or is forwarded")
    group.add_argument(
        "--sign-in-timeout", type=_seconds, default=None, metavar="SECONDS", help="limit for you (default: 600)"
    )
    group.add_argument(
        "--token-store",
        choices=TOKEN_STORE_NAMES,
        help="where the tokens of a sign-in are kept (default: $GOPHER_MCP_TOKEN_STORE, else the system's keyring "
        "where it can be used, else an encrypted file)",
    )


def model(args: argparse.Namespace) -> str:
    """The model's name; only DirectProvider does without one."""
    if args.model:
        return str(args.model)
    if args.provider == DEFAULT_PROVIDER:
        return "direct"
    raise UsageError(f"{args.provider} needs --model (or $GOPHER_MCP_MODEL)")


def timeout_ms(args: argparse.Namespace) -> int:
    """--timeout in milliseconds."""
    return round(float(args.timeout) * 1000)


def elicitation(args: argparse.Namespace) -> Mapping[str, Any] | Literal[False] | None:
    """The elicitation options that were asked for; None leaves the default untouched."""
    if args.elicitation == "off":
        return False
    options: dict[str, Any] = {}
    if args.elicitation != "ask":
        options["handler"] = args.elicitation
    if args.no_browser or args.ask_browser:
        options["open_browser"] = False if args.no_browser else "ask"
    if args.elicitation_timeout is not None:
        options["timeout_ms"] = round(args.elicitation_timeout * 1000)
    return options or None


def token(args: argparse.Namespace) -> str | None:
    """The access token: from the named variable, from standard input, or as given."""
    if args.token_env:
        return variable(args.token_env, "--token-env")
    if args.token != "-":
        return keep_out(args.token) if args.token else None
    if sys.stdin is not None and sys.stdin.isatty():
        return keep_out(getpass.getpass("access token: ")) or None
    line = sys.stdin.readline().strip() if sys.stdin is not None else ""
    if not line:
        raise UsageError("--token -: nothing came from standard input")
    return keep_out(line)


def oauth(args: argparse.Namespace) -> Mapping[str, Any]:
    """The options of first-step OAuth that were asked for."""
    secret = variable(args.client_secret_env, "--client-secret-env") if args.client_secret_env else None
    limit = round(args.sign_in_timeout * 1000) if args.sign_in_timeout else None
    return {
        "mode": "disabled" if args.no_sign_in else None,
        "scopes": args.scope,
        "client_id": args.client_id,
        "client_secret": secret,
        "redirect_uri": args.redirect_uri,
        "open_browser": False if args.no_browser else None,
        "token_store": token_store(args),
        "timeout_ms": limit,
    }


def token_store(args: argparse.Namespace) -> GopherAgentTokenStore:
    """The store that --token-store or the variable names; otherwise one that outlives this command."""
    from ..oauth.stores import KeyringOrFileTokenStore, default_name, resolve_store

    name = args.token_store or default_name()
    return resolve_store(name) if name else KeyringOrFileTokenStore()


def headers(args: argparse.Namespace) -> dict[str, str]:
    """--header and --header-env as one mapping."""
    found = dict(_pair(text, "--header") for text in args.header)
    for text in args.header_env:
        name, source = _pair(text, "--header-env")
        found[name] = variable(source, "--header-env")
    return found


_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,60}")


def variable(name: str, option: str) -> str:
    """The value of an environment variable that an option names."""
    value = os.environ.get(name)
    if not value and not _VARIABLE.fullmatch(name):  # perhaps the secret itself, which nobody should see
        raise UsageError(f"{option} takes the name of a variable, and none of that name is set")
    if not value:
        raise UsageError(f"{option}: the variable {name!r} is not set")
    return keep_out(value)


def port(text: str) -> int:
    """A port number, for argparse."""
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port (0 to 65535)")
    return int(text)


def _pair(text: str, option: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    # The text is not repeated: it may hold a credential.
    if not colon or not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name.strip()):
        raise UsageError(f"{option}: expected 'Name: value'")
    return name.strip(), keep_out(value.strip()) if option == "--header" else value.strip()


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e7:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds (0 or more)")
    return value
