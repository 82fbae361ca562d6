"""The command `gopher-mcp`: run a query, sign out, look what works on this machine, see the demo, serve.

Exit codes: `failures.ExitCode`. A failure is one line on standard error, with what to do next; tracebacks come with
`--debug` only.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from .failures import ExitCode, UsageError, explain, line, say

if TYPE_CHECKING:
    import argparse

    from .parsing import Parser

COMMANDS = ("run", "logout", "doctor", "demo", "serve", "token", "gateway", "audit", "completion")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; a traceback is shown with --debug only.

    Args:
        argv: The arguments without the program's name; those of the process when omitted.
    """
    from . import process

    whole = argv is None
    if whole:
        process.ready_output()
    words = list(sys.argv[1:] if argv is None else argv)
    named: list[str] = []
    try:
        code = _work(words, named, whole=whole)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except SystemExit as end:  # of --help, of a wrong command line, of SIGTERM
        return _ended(end, named)
    except BaseException as error:
        return _failed(error, named)
    finally:
        if whole:
            process.end_at_the_next_interrupt()
            process.let_go_of_output()


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


def _work(words: list[str], named: list[str], *, whole: bool) -> int:
    """Parse and run; what was called is put into `named`, and "--debug" where it is on."""
    from .process import is_debugging, surroundings
    from .secrecy import keep_out_of_urls

    for word in words:
        keep_out_of_urls(word)
    args: argparse.Namespace = parser().parse_args(words)
    named.append(args.command)
    debug = is_debugging(args.debug)
    if debug:
        named.append("--debug")
    with surroundings(debug, lasting=whole):
        code: int = import_module(f"gopher_mcp_python.cli.{args.command}").run(args)
    return code


def _ended(end: SystemExit, named: list[str]) -> int:
    """The end that somebody else has chosen, unless what was said on the way did not arrive."""
    from . import process

    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        return _failed(error, named)
    if process.is_reader_gone():
        return ExitCode.READER_GONE
    raise end from None


def _failed(error: BaseException, named: list[str]) -> int:
    """Say what failed, in one line; the exit code."""
    from . import process
    from .secrecy import redacted

    command = named[0] if named else ""
    if process.is_reader_gone():
        process.let_go_of_output()
        return ExitCode.READER_GONE
    if isinstance(error, KeyboardInterrupt):
        say("\n" + line("ended with Ctrl-C", command))
        return ExitCode.INTERRUPTED
    if not isinstance(error, Exception):
        raise error
    debug = "--debug" in named
    if debug and not isinstance(error, UsageError):
        process.show_traceback(error)
    told = explain(error, command)
    if told is None:
        advice = None if debug else f"run it again with --debug (gopher-mcp {command} --debug ...), and report that"
        told = line(f"a defect of this program: {type(error).__name__}: {redacted(str(error))}", command, advice)
        say(told)
        return ExitCode.DEFECT
    say(told)
    return ExitCode.USAGE if isinstance(error, UsageError) else ExitCode.FAILED


def _version() -> str:
    from .. import __version__

    return __version__
