"""The command `gopher-mcp`: run a query, sign out, look what works on this machine, see the demo.

Exit codes: 0 done; 1 it failed, with one line that says why and what to do; 2 the command line was wrong;
130 ended with Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from .failures import EXIT_FAILED, EXIT_INTERRUPTED, UsageError, explain

_COMMANDS = ("run", "logout", "doctor", "demo", "serve", "token", "gateway", "audit")

_EPILOG = """\
exit codes: 0 done, 1 failed, 2 wrong command line, 130 ended with Ctrl-C

  gopher-mcp demo                                   see a sign-in in the middle of a tool call
  gopher-mcp run https://host/mcp "query"           run one query against an MCP server
  gopher-mcp logout https://host/mcp                delete the tokens that a sign-in left on this machine
  gopher-mcp doctor                                 what works on this machine, and what to do about the rest
  gopher-mcp serve --store sqlite:FILE              answer from elsewhere: a page and a REST interface
  gopher-mcp token add ada --scope answer           make the token that the page asks for
  gopher-mcp gateway --upstream NAME=URL            an MCP server that asks before a tool destroys anything
  gopher-mcp audit --store sqlite:FILE              whether nobody changed the record of what was answered
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; an expected failure never shows a traceback.

    Args:
        argv: The arguments without the program's name; those of the process when omitted.
    """
    parser = _parser()
    args = parser.parse_args(argv)
    if os.environ.get("DEBUG"):
        _show_logs()
    try:
        code = _dispatch(args)
        sys.stdout.flush()
        return code
    except UsageError as error:
        print(f"gopher-mcp {args.command}: {error}\n  try: gopher-mcp {args.command} --help", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ngopher-mcp: ended with Ctrl-C", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        return _quietly_closed()
    except Exception as error:
        lines = explain(error)
        if lines is None or os.environ.get("DEBUG"):
            raise
        print("\n".join(lines), file=sys.stderr)
        return EXIT_FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gopher-mcp",
        description="Run an MCP agent and answer what its servers ask of you in the middle of a tool call.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"gopher-mcp {_version()}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in _COMMANDS:
        import_module(f"gopher_mcp_python.cli.{name}").add_parser(commands)
    return parser


def _dispatch(args: argparse.Namespace) -> int:
    code: int = import_module(f"gopher_mcp_python.cli.{args.command}").run(args)
    return code


def _version() -> str:
    from .. import __version__

    return __version__


def _show_logs() -> None:
    """What the package logs, on standard error; it holds no secrets at any level."""
    import logging

    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s: %(message)s"))
    logger = logging.getLogger("gopher_mcp_python")
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)


def _quietly_closed() -> int:
    """Whoever read our output has gone (`| head`): nothing more is written, not even by the interpreter's own flush."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    os.close(devnull)
    return EXIT_FAILED
