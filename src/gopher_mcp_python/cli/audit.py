"""`gopher-mcp audit`: whether a store's audit is whole, by itself and by an anchor elsewhere."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from .colour import paint
from .failures import EXIT_FAILED, EXIT_OK, UsageError, as_usage
from .storing import add_anchor, anchor_of, backend_of

if TYPE_CHECKING:
    from ..store.backend import Backend


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `audit` to the command line."""
    parser = commands.add_parser(
        "audit",
        help="verify that the audit of a store is whole",
        description="Looks at every record of a store's audit, says which were changed, removed or added, and fails "
        "then. That the last ones were cut off only an anchor shows: a place elsewhere that remembers the end.",
    )
    where = "sqlite:PATH or postgresql://USER@HOST/DATABASE"
    parser.add_argument("--store", required=True, metavar="STORE", help=where)
    add_anchor(parser, "where the end of the audit is remembered")
    parser.add_argument("--write", action="store_true", help="when it is whole, remember its end at the anchor")


def run(args: argparse.Namespace) -> int:
    """Verify, and say what was found."""
    from ..store import chores
    from .status import waiting

    anchor = anchor_of(args)
    if args.write and anchor is None and args.store != "memory":
        raise UsageError("--write needs --anchor: the place to write to")
    with waiting("opening the store") as status:
        backend = _opened(args.store)
        try:
            status.waiting("verifying the audit")
            found = chores.verify(backend, anchor, lambda seq: status.detail(f"{seq:,} records"))
        finally:
            backend.close()
    print(f"{found.records} records" + (f", the last is {found.head.seq} {found.head.hash}" if found.head else ""))
    for fault in found.faults:
        print(f"  {fault}")
    if not found.ok:
        print(paint("the audit is not whole", "bad", sys.stdout))
        return EXIT_FAILED
    anchored = f", and anchored up to record {found.anchored}" if found.anchored else ""
    print(paint("the audit is whole", "good", sys.stdout) + anchored)
    if anchor is not None and found.records and not found.anchored:
        print("the anchor remembers nothing: unless it is new, its own content was removed")
    if args.write and anchor is not None and found.head is not None and found.head.seq > found.anchored:
        with waiting("writing to the anchor"):
            anchor.write(found.head)
        print(f"the anchor remembers record {found.head.seq} now")
    return EXIT_OK


def _opened(spec: str) -> Backend:
    from ..serve.opening import path_of

    kind, _, rest = spec.partition(":")
    if kind == "memory":
        raise UsageError("--store memory has no audit that others could look at")
    with as_usage("--store"):
        missing = kind == "sqlite" and rest and not path_of(rest.removeprefix("//")).is_file()
    if missing:
        raise UsageError("--store names a file that is not there")  # it would be made
    return backend_of(spec)
