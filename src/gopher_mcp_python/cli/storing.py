"""The store of `serve`, `gateway` and `audit`: where it is, what seals it, and what remembers its audit's end."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from .failures import UsageError, as_usage

if TYPE_CHECKING:
    from ..store.anchors import Anchor
    from ..store.backend import Backend
    from ..store.core import Store

__all__ = ["ANCHOR_VARIABLE", "add_anchor", "add_store", "anchor_of", "backend_of", "store_of"]

ANCHOR_VARIABLE = "GOPHER_MCP_STORE_ANCHOR"


def add_store(parser: argparse.ArgumentParser) -> None:
    """--store, --keys, --keys-from-keyring, --anchor."""
    where = "memory, sqlite:PATH or postgresql://USER@HOST/DATABASE"
    parser.add_argument("--store", required=True, metavar="STORE", help=where)
    keys = parser.add_mutually_exclusive_group()
    keys.add_argument("--keys", metavar="FILE", help="keys that seal what is stored (default: "
                      "$GOPHER_MCP_STORE_KEYS, else a file in this user's data folder)")  # fmt: skip
    keys.add_argument("--keys-from-keyring", action="store_true",
                      help="take them from the system's keyring, which gets a new one on first use")  # fmt: skip
    add_anchor(parser, "where the end of the audit is remembered, each minute and at the end, for gopher-mcp audit")


def add_anchor(parser: argparse.ArgumentParser, what: str) -> None:
    """--anchor, with that help."""
    parser.add_argument("--anchor", metavar="FILE|URL", help=f"{what} (default: ${ANCHOR_VARIABLE})")


def anchor_of(args: argparse.Namespace, *, make: bool = False) -> Anchor | None:
    """The anchor that is meant, as `open_anchor`. Raises UsageError for one of a store that ends with its process and
    where `--anchor` names none, else as `open_anchor`."""
    from ..serve.opening import open_anchor

    if args.store == "memory":  # the next process begins another chain
        if args.anchor is not None:
            raise UsageError("--anchor needs a store that stays: sqlite:PATH or postgresql://...")
        return None
    if args.anchor:
        with as_usage("--anchor"):
            return open_anchor(args.anchor, make=make)
    place = os.environ.get(ANCHOR_VARIABLE) if args.anchor is None else None
    return open_anchor(place, make=make) if place else None


def backend_of(spec: str) -> Backend:
    """What `--store` names. Raises UsageError where it names none, StoreError where it can't be opened."""
    from ..serve.opening import open_backend

    with as_usage("--store"):
        return open_backend(spec)


def store_of(args: argparse.Namespace) -> Store:
    """The store that is meant, its anchor written. Raises UsageError; ValueError for what a variable says; StoreError
    when store, keys or anchor can't be used, or the anchor is another audit's."""
    from ..serve.opening import open_over
    from ..store.keys import keys_from_keyring

    anchor = anchor_of(args, make=True)
    keys = keys_from_keyring() if args.keys_from_keyring else args.keys
    return open_over(backend_of(args.store), keys, anchor=anchor)
