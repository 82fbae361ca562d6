"""Builds of this package against each other: what a callback and an import cost. `make bench` does not run it.

    python -m benchmarks.builds NAME=PYTHON NAME=PYTHON ...      ratios are to the first

PYTHON is the interpreter of an environment in which one build is installed. All are measured in turn, in many short
rounds, and the best round of each counts: it is the one that the rest of the machine disturbed least. docs/wheels.md
holds the figures that decided against one wheel for all versions (abi3).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from pathlib import Path

from benchmarks._report import note, rounded
from benchmarks.callback import Side
from tests.support import testkit

CALLS = 600  # in one batch of a round
_IMPORT = "import time; t = time.perf_counter(); import gopher_mcp_python; from gopher_mcp_python.ffi import _bridge; "
_IMPORT += "print(time.perf_counter() - t)"


def import_seconds(python: str, environ: dict[str, str]) -> float:
    """One import of package and bridge in a fresh interpreter, outside the project's folder."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([python, "-c", _IMPORT], env=environ, cwd=folder, stdout=subprocess.PIPE, check=True)
    return float(done.stdout)


def measure(builds: dict[str, str], rounds: int) -> dict[str, dict[str, float]]:
    """Name -> figure -> best of all rounds: nanoseconds a callback, milliseconds an import."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    found: dict[str, dict[str, list[float]]] = {name: {} for name in builds}
    with tempfile.TemporaryDirectory() as folder:
        library = testkit.as_vendor_library(Path(folder))
        env = {**clean, "GOPHER_MCP_PYTHON_LIBRARY_PATH": str(library)}
        sides = {name: Side(python, "ours", env) for name, python in builds.items()}
        try:
            for turn in range(rounds + 1):
                for name, side in sides.items():
                    side.round(CALLS, keep=turn > 0)
                    taken = import_seconds(builds[name], clean) * 1e3
                    if turn:
                        found[name].setdefault("import_ms", []).append(taken)
        finally:
            for side in sides.values():
                side.close()
    for name, side in sides.items():
        for figures in side.rounds:
            for key, value in figures.items():
                found[name].setdefault(key, []).append(value)
    return {name: {key: min(values) for key, values in figures.items()} for name, figures in found.items()}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.builds")
    parser.add_argument("builds", nargs="+", metavar="NAME=PYTHON")
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    builds = dict(build.partition("=")[::2] for build in args.builds)
    note(f"{args.rounds} rounds of each build, in turn")
    results = measure(builds, args.rounds)
    first = next(iter(results.values()))
    for name, figures in results.items():
        shown = (f"{key} {rounded(value):g} (x{value / first[key]:.2f})" for key, value in sorted(figures.items()))
        print(f"{name}: {', '.join(shown)}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
