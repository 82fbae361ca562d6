"""Runs every benchmark in a process of its own and prints one table. Exit code 1 when a target is missed."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

from benchmarks._report import missed, note, table

MODULES = ("callback", "startup", "signin", "toolcall", "toolset", "forms", "prompts", "registry", "store", "gateway")


def main() -> int:
    """Run the named benchmarks, all when none is named."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=f"any of {', '.join(MODULES)}")
    parser.add_argument("--json", action="store_true", help="print a JSON list instead of the table")
    args = parser.parse_args()
    results, failed = [], []
    for module in args.modules or MODULES:
        note(f"{module} ...")
        done = subprocess.run(
            [sys.executable, "-m", f"benchmarks.{module}", "--json"], stdout=subprocess.PIPE, text=True, check=False
        )
        try:
            results.append(json.loads(done.stdout.splitlines()[-1]))
        except (IndexError, ValueError):
            failed.append(module)
    print(json.dumps(results) if args.json else table(results))
    for key in missed(results):
        print(f"missed: {key}", file=sys.stderr)
    for module in failed:
        print(f"failed: {module} (its message is above)", file=sys.stderr)
    return 1 if failed or missed(results) else 0


if __name__ == "__main__":
    raise SystemExit(main())
