"""How callbacks scale over threads: so many native threads call at once, with the GIL and without.

    python -m benchmarks.threads [NAME=PYTHON ...]

Threads that Python did not start call the callback that `create_with_url` gave to the library, with an inline handler
that does nothing but answer: once each thread on an agent of its own, once all on the same one. The work is the same
however many threads share it, so the rate of one thread is what the others' are compared to; more threads than the
machine has cores can only wait for each other. Measured are the running interpreter, of the wheels in dist/ the
free-threaded ones with their counterparts, and what is named: all points of all builds in turn, and medians count.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import _builds
from benchmarks._report import NotHere, Target, main, median, note, rounded
from tests.support import testkit

SIDE = Path(__file__).with_name("_threads_side.py")
NAMED: tuple[str, ...] = ()
THREADS = (1, 2, 4, 8)
ROUNDS = 21
CALLS = 40_000  # shared by all threads of a point: some 20 ms when nobody waits
TARGETS: tuple[Target, ...] = ()
QUICK = {"ROUNDS": 3}


class Side:
    """The process of one build."""

    def __init__(self, build: _builds.Build, library: Path) -> None:
        driver = testkit.folder() / "csrc" / "testkit" / "libgopher-callback-driver.so"
        kept = {} if build.interpreter == sys.executable else {"PYTHONPATH": ""}
        self.build = build
        self.rates: dict[tuple[str, int], list[float]] = {}
        self._process = subprocess.Popen(
            [build.interpreter, str(SIDE), str(driver), str(max(THREADS))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **kept, "GOPHER_MCP_PYTHON_LIBRARY_PATH": str(library)},
        )  # fmt: skip
        self.about = self._line()

    def point(self, threads: int, *, keep: bool) -> None:
        """Measures both kinds at one number of threads."""
        assert self._process.stdin
        print(threads, CALLS, file=self._process.stdin, flush=True)
        for key, nanoseconds in self._line().items():
            if nanoseconds <= 0:
                raise RuntimeError(f"{self.build.name}: a callback was not accepted")
            if keep:
                self.rates.setdefault((key.removesuffix("_ns"), threads), []).append(1e9 / nanoseconds)

    def figures(self) -> dict[str, Any]:
        """Callbacks a second, and how many times those of one thread."""
        found: dict[str, Any] = {**self.build.entry(), "gil": self.about["gil"]}
        for kind in ("own", "shared"):
            one = median(self.rates[kind, 1])
            for threads in THREADS:
                rate = median(self.rates[kind, threads])
                found[f"{kind}_{threads}_per_s"] = rounded(rate)
                found[f"{kind}_{threads}_ratio"] = rounded(rate / one)
        return found

    def close(self) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()

    def _line(self) -> dict[str, Any]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.build.name}: its process ended with code {self._process.wait()}")
        return dict(json.loads(line))


def _chosen() -> list[_builds.Build]:
    here = _builds.running()
    try:
        found = _builds.chosen(NAMED)
    except NotHere as why:
        note(f"only {here.name}: {why}")
        return [here]
    free = {build.name for build in found if build.free_threaded}
    wanted = free | {name.removesuffix("t") for name in free} | {word.partition("=")[0] for word in NAMED}
    others = [build for build in found if build.name in wanted and build.name != here.name]
    return [here, *others]


def measure() -> dict[str, Any]:
    """For each build: callbacks a second by the number of threads, and their ratio to one thread's."""
    with tempfile.TemporaryDirectory() as folder:
        library = testkit.as_vendor_library(Path(folder))
        sides: list[Side] = []
        try:
            for build in _chosen():
                sides.append(Side(build, library))
            note(f"{ROUNDS} rounds of {CALLS:,} callbacks, {len(sides)} builds in turn")
            for turn in range(ROUNDS + 1):
                for threads in THREADS:
                    for side in sides:
                        side.point(threads, keep=turn > 0)
        finally:
            for side in sides:
                side.close()
    return {"calls": CALLS, "threads": [side.figures() for side in sides]}


if __name__ == "__main__":
    raise SystemExit(main("benchmarks.threads", named="NAME=PYTHON"))
