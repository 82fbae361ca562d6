"""The store of `serve`, `gateway` and `audit`: where it is, what seals it, and what remembers its audit's end."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from .failures import UsageError

if TYPE_CHECKING:
    from ..store.anchors import Anchor
    from ..store.core import Store

__all__ = ["ANCHOR_VARIABLE", "add_anchor", "add_store", "anchor_of", "store_of"]

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
    """The anchor that is meant, as `open_anchor`; raises as that does, and UsageError for one of a store that ends with
    its process."""
    from ..serve.opening import open_anchor

    if args.store == "memory":  # the next process begins another chain
        if args.anchor is not None:
            raise UsageError("--anchor needs a store that stays: sqlite:PATH or postgresql://...")
        return None
    place = args.anchor if args.anchor is not None else os.environ.get(ANCHOR_VARIABLE)
    return open_anchor(place, make=make) if place else None


def store_of(args: argparse.Namespace) -> Store:
    """The store that is meant, its anchor written. Raises UsageError, ValueError; StoreError when store, keys or anchor
    can't be used, or the anchor is another audit's."""
    from ..serve.opening import open_store
    from ..store.keys import keys_from_keyring

    anchor = anchor_of(args, make=True)
    return open_store(args.store, keys_from_keyring() if args.keys_from_keyring else args.keys, anchor=anchor)
