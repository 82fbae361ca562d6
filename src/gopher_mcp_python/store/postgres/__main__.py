"""`python -m gopher_mcp_python.store.postgres DSN`: makes the store's tables, or brings them up to date."""

from __future__ import annotations

import argparse
import sys

from ..errors import StoreError
from .migrating import migrate


def main(arguments: list[str] | None = None) -> int:
    """Exit code 1, with the reason on standard error, when it could not be done."""
    parser = argparse.ArgumentParser(prog="python -m gopher_mcp_python.store.postgres", description=__doc__)
    parser.add_argument(
        "dsn", help="the owner's login, as libpq takes it; leave the password to PGPASSWORD or the password file"
    )
    try:
        applied = migrate(parser.parse_args(arguments).dsn)
    except (StoreError, ValueError) as why:
        print(why, file=sys.stderr)
        return 1
    print("\n".join(f"applied {name}" for name in applied) or "up to date")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
