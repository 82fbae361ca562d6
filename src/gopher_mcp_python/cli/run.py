"""`gopher-mcp run`: one query against one MCP server, or against the servers of a configuration."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ..display import safe_line, safe_text
from . import options
from .failures import EXIT_FAILED, EXIT_OK, UsageError, explain, tell

_USAGE = """gopher-mcp run URL QUERY [options]
       gopher-mcp run --config FILE QUERY [options]
       gopher-mcp run --server-name NAME QUERY [options]    (also --server-id, --gateway-id, --gateway-name)
       gopher-mcp run --account QUERY [options]"""

_MORE_TIME = "--timeout SECONDS gives the run more time (0: no limit)"
_ROUTES = ("server_id", "server_name", "gateway_id", "gateway_name")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `run` to the command line."""
    parser = commands.add_parser(
        "run",
        usage=_USAGE,
        help="run one query against an MCP server",
        description="Runs one query and prints the answer on standard output; everything else goes to standard error.",
    )
    parser.add_argument("words", nargs="+", metavar="URL QUERY", help="the server's address, and what to ask")
    where = parser.add_argument_group("servers, instead of a URL").add_mutually_exclusive_group()
    where.add_argument("--config", metavar="FILE", help="JSON server configuration; '-' reads standard input")
    for name in _ROUTES:
        where.add_argument(f"--{name.replace('_', '-')}", metavar=name.rpartition("_")[2].upper())
    where.add_argument("--account", action="store_true", help="all servers of the API key's account")
    options.add_model(parser)
    options.add_credentials(parser)
    parser.add_argument(
        "--api-key-env",
        default="GOPHER_API_KEY",
        metavar="NAME",
        help="variable with the Gopher API key, for --server-id and its like (default: GOPHER_API_KEY)",
    )
    options.add_sign_in(parser)
    options.add_elicitation(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the answer's text")
    parser.add_argument("--quiet", action="store_true", help="no status on standard error")


def run(args: argparse.Namespace) -> int:
    """Create the agent, run the query, print the answer."""
    make, what, query = _target(args)
    from .status import Status

    started = time.monotonic()
    facts: dict[str, Any] = {"ok": False, "answer": None, "engine": None, "iterations": 0, "error": None}
    try:
        with Status(enabled=not args.quiet) as status:
            status.waiting(f"connecting to {what}")
            with make(_create_options(args, status.event)) as agent:
                facts["engine"] = agent.engine
                status.waiting("waiting for the answer")
                result = agent.run_detailed(query, options.timeout_ms(args))
    except Exception as error:
        if not args.json or explain(error) is None:
            raise
        facts["error"] = {"type": type(error).__name__, "message": str(error)}
    else:
        facts.update(ok=result.is_success(), answer=result.response, iterations=result.iteration_count)
        if not result.is_success():
            facts.update(answer=None, error={"type": result.status.value, "message": result.error_message})
    facts["seconds"] = round(time.monotonic() - started, 3)
    return _report(facts, as_json=args.json)


def _report(facts: dict[str, Any], *, as_json: bool) -> int:
    if as_json:
        # Escapes of a narrower encoding would not be JSON's.
        print(json.dumps(facts, ensure_ascii=(sys.stdout.encoding or "").lower().replace("-", "") != "utf8"))
    elif facts["ok"]:
        answer = facts["answer"]
        # A program gets the text as it is; a terminal is not given what could drive it.
        print(safe_text(answer, limit=len(answer)) if sys.stdout.isatty() else answer)
    else:
        late = facts["error"]["type"] == "timeout"
        tell(facts["error"]["message"], "run", _MORE_TIME if late else None)
    return EXIT_OK if facts["ok"] else EXIT_FAILED


def _create_options(args: argparse.Namespace, on_event: Callable[[Any], None]) -> Any:
    from .. import GopherAgentCreateOptions

    return GopherAgentCreateOptions(
        access_token=options.token(args),
        headers=options.headers(args),
        oauth=options.oauth(args),
        elicitation=options.elicitation(args),
        engine=args.engine,
        on_event=on_event,
    )


def _target(args: argparse.Namespace) -> tuple[Callable[[Any], Any], str, str]:
    """Which factory to call, a label for people, and the query."""
    from .. import GopherAgent

    model = options.model(args)
    factory: Callable[..., Any]
    for name in _ROUTES:
        value = getattr(args, name)
        if value is not None:
            factory, key = getattr(GopherAgent, f"create_with_{name}"), _api_key(args)
            return partial(factory, args.provider, model, key, value), value, _query(args, 1)
    if args.account:
        factory = GopherAgent.create_with_api_key
        return partial(factory, args.provider, model, _api_key(args)), "the account's servers", _query(args, 1)
    if args.config is not None:
        factory = GopherAgent.create_with_server_config
        return partial(factory, args.provider, model, _read(args.config)), "the configured servers", _query(args, 1)
    query = _query(args, 2)
    url = args.words[0]
    if not url.lower().startswith(("http://", "https://")):
        raise UsageError(f"{url!r} is not an http or https address; the order is: URL, then the query")
    return partial(GopherAgent.create_with_url, args.provider, model, url), _host(url), query


def _host(url: str) -> str:
    """The host of a server's address, for people. Raises UsageError, without the address: it may hold a password."""
    try:
        parts = urlsplit(url)
        known = parts.port != 0
    except ValueError:
        known = False
    if not known:
        raise UsageError("the address can't be read: a port is 1 to 65535, and an IPv6 host stands in brackets")
    if not parts.hostname:
        raise UsageError("the address has no host")
    return safe_line(parts.hostname)


def _query(args: argparse.Namespace, expected: int) -> str:
    """The last word; `expected` words must be there."""
    if len(args.words) == expected and not args.words[-1].strip():
        raise UsageError("the query is empty")
    if len(args.words) != expected:
        form = "URL QUERY" if expected == 2 else "QUERY"
        raise UsageError(f"expected {form}, found {len(args.words)} words (put the query in quotes)")
    return str(args.words[-1])


def _api_key(args: argparse.Namespace) -> str:
    return options.variable(args.api_key_env, "--api-key-env")


def _read(name: str) -> str:
    """The text of --config. Raises UsageError where there is none."""
    try:
        if name != "-":
            text = Path(os.path.expanduser(name)).read_text(encoding="utf-8")
        else:
            text = sys.stdin.read() if sys.stdin is not None else ""
    except OSError as error:
        raise UsageError(f"--config {name}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"--config {name}: it is no text (UTF-8)") from None
    if not text.strip():
        raise UsageError(f"--config {name}: {'nothing came from standard input' if name == '-' else 'it is empty'}")
    return text
