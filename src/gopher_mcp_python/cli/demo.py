"""`gopher-mcp demo`: a sign-in in the middle of a tool call, from the server's start to the result."""

from __future__ import annotations

import argparse
import os

from . import options
from .failures import EXIT_OK


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `demo` to the command line."""
    parser = commands.add_parser(
        "demo",
        help="see a sign-in in the middle of a tool call",
        description="Starts a real MCP server on this machine whose mail tool needs a sign-in, and runs an agent that "
        "gets through it. Account and mail are made up; nothing leaves this machine unless you choose a model.",
    )
    parser.add_argument(
        "--click",
        choices=("allow", "deny"),
        nargs="?",
        const="allow",
        help="let the demo press the button of its page itself (it does where there is no terminal)",
    )
    parser.add_argument("--serve", action="store_true", help="only start the server, for programs of your own")
    parser.add_argument(
        "--port", type=options.port, default=0, help="port of the server on 127.0.0.1 (default: a free one)"
    )
    options.add_model(parser)
    options.add_elicitation(parser)


def run(args: argparse.Namespace) -> int:
    """Show the demo, or serve until Ctrl-C."""
    _reach_loopback_directly()
    if args.serve:
        return _serve(args.port)
    from ..demo.show import show

    return show(args)


def _serve(port: int) -> int:
    from ..demo import QUERY
    from ..demo.child import DemoServer

    with DemoServer(port) as server:
        print(f'serving on {server.url}   Ctrl-C stops\n\n  gopher-mcp run {server.url} "{QUERY}"\n', flush=True)
        server.wait()
    return EXIT_OK


def _reach_loopback_directly() -> None:
    """A proxy that the environment names can't reach this machine's loopback interface: leave it out for that."""
    for name in ("no_proxy", "NO_PROXY"):
        listed = [entry for entry in os.environ.get(name, "").split(",") if entry]
        os.environ[name] = ",".join([*listed, *(h for h in ("127.0.0.1", "localhost") if h not in listed)])
