"""Builds of this package against each other: what a wheel weighs, what an import and a callback cost.

    python -m benchmarks.builds [NAME=PYTHON ...]      the wheels in dist/, which `make dist` makes, and those named

PYTHON is the interpreter of an environment in which a build is installed. All are measured in turn, in many short
rounds, and the best round of each counts: it is the one that the rest of the machine disturbed least. docs/wheels.md
holds the figures that decided against one wheel for all versions (abi3).
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import _builds
from benchmarks._report import Target, main, note, rounded
from benchmarks.callback import Side
from tests.support import testkit

NAMED: tuple[str, ...] = ()
ROUNDS = 15
TARGETS: tuple[Target, ...] = ()
QUICK = {"ROUNDS": 2}
CALLS = 600  # in one batch of a round
_IMPORT = "import time; t = time.perf_counter(); import gopher_mcp_python; from gopher_mcp_python.ffi import _bridge; "
_IMPORT += "print(time.perf_counter() - t)"


def import_seconds(python: str, environ: dict[str, str]) -> float:
    """One import of package and bridge in a fresh interpreter, outside the project's folder."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([python, "-c", _IMPORT], env=environ, cwd=folder, stdout=subprocess.PIPE, check=True)
    return float(done.stdout)


def measure() -> dict[str, Any]:
    """For each build: bytes of the wheel, milliseconds an import, nanoseconds a callback.

    Raises:
        NotHere: No build is named, and no wheel is there.
    """
    builds = _builds.chosen(NAMED)
    note(f"{ROUNDS} rounds of each of {len(builds)} builds, in turn")
    best = _best(builds)
    return {"builds": [{**build.entry(), "wheel_bytes": build.wheel_bytes, **best[build.name]} for build in builds]}


def _best(builds: list[_builds.Build]) -> dict[str, dict[str, float | None]]:
    """Name -> figure -> best of all rounds."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    imports: dict[str, list[float]] = {build.name: [] for build in builds}
    with tempfile.TemporaryDirectory() as folder:
        library = testkit.as_vendor_library(Path(folder))
        env = {**clean, "GOPHER_MCP_PYTHON_LIBRARY_PATH": str(library)}
        sides = {build.name: Side(build.interpreter, "ours", env) for build in builds}
        try:
            for turn in range(ROUNDS + 1):
                for build in builds:
                    sides[build.name].round(CALLS, keep=turn > 0)
                    taken = import_seconds(build.interpreter, clean) * 1e3
                    if turn:
                        imports[build.name].append(taken)
        finally:
            for side in sides.values():
                side.close()
    return {
        name: {
            "import_ms": rounded(min(imports[name])),
            **{key: rounded(min(one[key] for one in side.rounds)) for key in side.rounds[0]},
        }
        for name, side in sides.items()
    }


if __name__ == "__main__":
    raise SystemExit(main("benchmarks.builds", named="NAME=PYTHON"))
