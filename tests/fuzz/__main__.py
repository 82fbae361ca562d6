"""python -m tests.fuzz: each target for a time; one line for each, exit code 1 when something was found."""

from __future__ import annotations

import argparse
import importlib.util
import sys

from .running import C_TARGETS, NotHere, Result, build, run
from .targets import PYTHON_TARGETS

ALL = (*C_TARGETS, *PYTHON_TARGETS)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(ALL)}; none: all")
    parser.add_argument("--seconds", type=int, default=60, help="for each target (default 60)")
    told = parser.parse_args()
    unknown = set(told.targets) - set(ALL)
    if unknown or told.seconds < 1:
        parser.error(f"unknown: {', '.join(sorted(unknown))}" if unknown else "--seconds must be at least 1")
    names = told.targets or ALL
    if importlib.util.find_spec("atheris") is None and set(names) & set(PYTHON_TARGETS):
        print("atheris is not here: inputs of the targets in Python are changed at random, not led by coverage")
    try:
        c_folder = build() if set(names) & set(C_TARGETS) else None
    except NotHere as missing:
        print(missing, file=sys.stderr)
        return 2
    results = []
    for name in names:
        print(f"{name:10}", end=" ", flush=True)
        results.append(run(name, told.seconds, c_folder))
        print(line(results[-1], told.seconds), flush=True)
    return 0 if all(result.well and not result.findings for result in results) else 1


def line(result: Result, seconds: int) -> str:
    said = f"{seconds} s, {result.cpu_s:.0f} s of processor time, {result.executions:,} executions"
    if result.findings:
        return f"{said}, FOUND: {', '.join(map(str, result.findings))} (log: {result.log})"
    return said if result.well else f"{said}, FAILED (log: {result.log})"


if __name__ == "__main__":
    sys.exit(main())
