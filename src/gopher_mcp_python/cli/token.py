"""`gopher-mcp token`: who may call tools through the gateway and who may answer what is asked."""

from __future__ import annotations

import argparse
import sys
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from ..display import safe_line
from .failures import EXIT_FAILED, EXIT_OK, tell

if TYPE_CHECKING:
    from ..serve.tokens import TokenFile

FILE_NAME = "serve-tokens.json"


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `token` to the command line."""
    parser = commands.add_parser(
        "token",
        help="make, list and revoke tokens for `serve` and `gateway`",
        description="A token belongs to one caller. With the scope `answer` somebody sees and answers what that caller "
        "is asked; with `call` a program calls tools as that caller. Give a program no token that can answer.",
    )
    parser.add_argument("--tokens", metavar="FILE", help="the file of tokens (default: in this user's data folder)")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    add = actions.add_parser("add", help="make a token; it is shown once")
    add.add_argument("caller", metavar="CALLER", help="whose elicitations: a name such as ada")
    add.add_argument("--scope", choices=("call", "answer"), required=True, help="what it may do")
    add.add_argument("--name", help="what to call it, such as laptop")
    actions.add_parser("list", help="what tokens there are (not the tokens)")
    revoke = actions.add_parser("revoke", help="end a token")
    revoke.add_argument("id", metavar="ID", help="as `list` shows it")
    for action in actions.choices.values():  # before the action or after it
        action.add_argument("--tokens", metavar="FILE", default=argparse.SUPPRESS, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Do it, and say what was done."""
    file = token_file(args.tokens)
    if args.action == "add":
        return _add(file, args)
    return _list(file) if args.action == "list" else _revoke(file, args.id)


def token_file(path: str | None) -> TokenFile:
    """The file that is meant."""
    from ..serve.opening import default_folder
    from ..serve.tokens import TokenFile

    return TokenFile(path if path is not None else default_folder() / FILE_NAME)


def _add(file: TokenFile, args: argparse.Namespace) -> int:
    token = file.add(args.caller, [args.scope], name=args.name)
    what = "answer what is asked of" if args.scope == "answer" else "call tools as"
    print(f"This token may {what} {safe_line(args.caller)}. It is shown this once:\n", file=sys.stderr)
    print(token, flush=True)
    return EXIT_OK


def _list(file: TokenFile) -> int:
    entries = file.entries()
    if not entries:
        print(f"no tokens in {file.path}")
    for entry in entries:
        made = datetime.fromtimestamp(entry.created, timezone.utc).strftime("%Y-%m-%d")
        scopes = "+".join(sorted(entry.scopes))
        print(f"{entry.id}  {scopes:6}  {made}  {safe_line(entry.caller)}  ({safe_line(entry.name)})")
    return EXIT_OK


def _revoke(file: TokenFile, identity: str) -> int:
    from ..serve.tokens import TokenFileError

    try:
        entry = file.revoke(identity)
    except TokenFileError as error:
        tell(str(error), "token")
        return EXIT_FAILED
    print(f"revoked: {safe_line(entry.name)} of {safe_line(entry.caller)}; a running server refuses it within a second")
    return EXIT_OK
