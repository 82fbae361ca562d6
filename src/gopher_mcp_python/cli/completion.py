"""`gopher-mcp completion`: a script for a shell, with which the Tab key completes commands, options and values."""

from __future__ import annotations

import argparse

from .failures import EXIT_OK

SHELLS = ("bash", "zsh", "fish")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `completion` to the command line."""
    parser = commands.add_parser(
        "completion",
        help="print a script that completes gopher-mcp with the Tab key",
        description="Prints a script for your shell. It knows every command, option and value of this version; print "
        "it anew after an update.",
    )
    parser.add_argument("shell", choices=SHELLS, help="the shell that the script is for")


def run(args: argparse.Namespace) -> int:
    """Print it."""
    from . import parser
    from .completing import SCRIPTS, words_of

    print(SCRIPTS[args.shell](words_of(parser())), end="")
    return EXIT_OK
