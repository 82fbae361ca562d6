"""The command `gopher-mcp`: run a query, sign out, look what works on this machine, see the demo, serve.

Exit codes: `failures.ExitCode`. A failure is one line on standard error, with what to do next; tracebacks come with
`--debug` only.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .parsing import Parser

COMMANDS = ("run", "logout", "doctor", "demo", "serve", "token", "gateway", "audit", "completion")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; a traceback is shown with --debug only.

    Args:
        argv: The arguments without the program's name; those of the process when omitted.
    """
    try:
        from .guarding import guarded

        return guarded(list(sys.argv[1:] if argv is None else argv), whole=argv is None)
    except KeyboardInterrupt:  # while all that could say so was still being loaded
        print("\ngopher-mcp: ended with Ctrl-C", file=sys.stderr)
        return 130


def parser() -> Parser:
    """The whole command line."""
    from .parsing import Parser, finish

    parser = Parser(
        prog="gopher-mcp",
        description="Run an MCP agent and answer what its servers ask of you in the middle of a tool call. "
        "Exit codes: 0 done, 1 failed, 2 wrong command line, 130 ended with Ctrl-C (docs/command-line.md has all).",
    )
    parser.add_argument("--version", action="version", version=f"gopher-mcp {_version()}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in COMMANDS:
        import_module(f"gopher_mcp_python.cli.{name}").add_parser(commands)
    finish(parser)
    return parser


def _version() -> str:
    from .. import __version__

    return __version__
