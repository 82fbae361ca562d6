"""The parser of `gopher-mcp`: a wrong command line is told in one line, every help has examples, and `--debug` is there
for each command."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NoReturn, cast

from ..display import safe_line
from .examples import EXAMPLES
from .failures import EXIT_USAGE, line, say

__all__ = ["Parser", "finish", "subparsers"]

_DEBUG = "show the logs of this package, and a failure's traceback; both without secrets"


class Parser(argparse.ArgumentParser):
    """An ArgumentParser whose errors are one line. Those of its subcommands are such parsers, too."""

    _reading = False

    def error(self, message: str) -> NoReturn:
        """Ends the process with exit code 2 and one line."""
        say(line(message, self._command(), f"{self.prog} --help"))
        self.exit(EXIT_USAGE)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse's, but what is unknown is said of the command that does not know it, and values are not said."""
        found, unknown = self.parse_known_args(args, namespace)
        if unknown:
            self._at(found).refuse(unknown)
        return found

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse's, but options may stand between the words of a list (argparse takes the first run of them)."""
        has_list = any(not action.option_strings and action.nargs in ("+", "*") for action in self._actions)
        if self._reading or not has_list:
            return super().parse_known_args(args, namespace)
        self._reading = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._reading = False

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """Ends the process: nobody knows these words. Only names of options are repeated: the rest may be secret."""
        names = [word.partition("=")[0] for word in unknown if word.startswith("-") and word != "--"]
        if not names:
            self.error(f"{len(unknown)} more words than there are arguments")
        near = _nearest(names[0], self._option_string_actions)
        self.error(f"there is no option {safe_line(names[0], limit=40)}" + (f"; is {near} meant?" if near else ""))

    def _print_message(self, message: str, file: Any = None) -> None:
        # argparse's own drops help that can't be written, as if it had been.
        stream = file or sys.stderr
        if message and stream is not None:
            stream.write(message)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            names = [str(choice) for choice in action.choices]
            near = _nearest(str(value), names)
            told = f"is {near} meant?" if near else f"choose {', '.join(names)}"
            raise argparse.ArgumentError(action, f"there is no {safe_line(str(value), limit=40)!r}; {told}")

    def _at(self, found: argparse.Namespace) -> Parser:
        """The parser of the command that was called."""
        parser = self
        while True:
            for action, commands in _choices(parser):
                name = getattr(found, action.dest, None)
                if name in commands:
                    parser = commands[name]
                    break
            else:
                return parser

    def _command(self) -> str:
        return self.prog.partition(" ")[2]


class _Help(argparse.HelpFormatter):
    """Wraps descriptions; leaves examples as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith("examples:"):
            return "\n".join(indent + part for part in text.splitlines())
        return super()._fill_text(text, width, indent)


def finish(parser: Parser, *, debug: Any = False) -> None:
    """Adds what every command has: --debug, and the examples at the end of its help."""
    parser.formatter_class = _Help
    parser.epilog = _examples(EXAMPLES[parser._command()])
    parser.add_argument("--debug", action="store_true", default=debug, help=_DEBUG)
    for _, below in subparsers(parser):
        finish(below, debug=argparse.SUPPRESS)  # what stood before the command counts, too


def subparsers(parser: argparse.ArgumentParser) -> Iterator[tuple[str, Parser]]:
    """The commands of a parser, by name."""
    for _, commands in _choices(parser):
        yield from commands.items()


def _choices(parser: argparse.ArgumentParser) -> Iterator[tuple[argparse.Action, dict[str, Parser]]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield action, cast("dict[str, Parser]", action.choices)


def _examples(examples: Iterable[tuple[str, str]]) -> str:
    return "\n".join(["examples:", *(f"  {command}\n      {what}" for command, what in examples)])


def _nearest(word: str, names: Iterable[str]) -> str | None:
    return next(iter(difflib.get_close_matches(word, list(names), n=1)), None)
