"""A command from its words to its exit code: whatever happens on the way is told in a line."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from . import process
from .failures import ExitCode, UsageError, explain, line, say
from .secrecy import keep_out_of_urls, redacted

if TYPE_CHECKING:
    import argparse

__all__ = ["guarded"]


def guarded(words: list[str], *, whole: bool) -> int:
    """The exit code of this command line. Raises SystemExit where argparse or a signal ends it.

    whole: the process is there for this command only; its streams and hooks need not be as they were before.
    """
    if whole:
        process.ready_output()
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


def _work(words: list[str], named: list[str], *, whole: bool) -> int:
    """Parse and run; what was called is put into `named`, and "--debug" where it is on."""
    from . import parser

    for word in words:
        keep_out_of_urls(word)
    args: argparse.Namespace = parser().parse_args(words)
    named.append(args.command)
    debug = process.is_debugging(args.debug)
    if debug:
        named.append("--debug")
    with process.surroundings(debug, lasting=whole):
        code: int = import_module(f"gopher_mcp_python.cli.{args.command}").run(args)
    return code


def _ended(end: SystemExit, named: list[str]) -> int:
    """The end that somebody else has chosen, unless what was said on the way did not arrive."""
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
