"""A callback from native code to a Python handler and back: on the caller's thread, on a foreign one, handed over.

Inline figures go through the callback that `create_with_url` gave to the library: all seven fields decoded, a request
made, the handler called, its answer checked. Handed-over ones are those of `run()` with an ordinary handler: the
callback's thread waits, the thread that called run() answers. The library is csrc/testkit, so neither network nor model
is in the figures. The published package runs in turn with this one, in a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from benchmarks import _peer
from benchmarks._report import Compared, Target, main, median, note, rounded
from tests.support import testkit

SIDE = Path(__file__).with_name("_callback_side.py")
ROUNDS = 15
WARM_UP = 2
CALLS = 3_000  # in one batch; a tenth of it for the published package, a fiftieth handed over

TARGETS = (
    Target("same_thread_ns", "<=", 450, "inline callback on the caller's thread"),
    Target("foreign_thread_ns", "<=", 1_200, "inline callback on a foreign thread"),
    Target("handed_over_ns", "<=", 40_000, "callback answered by the thread that called run()"),
    Target("same_thread_speedup", ">=", 30, "times faster than the published package"),
    Target("foreign_thread_speedup", ">=", 20, "times faster than the published package"),
)
COMPARED = (
    Compared("inline callback, caller's thread", "same_thread_ns", "peer_same_thread_ns", "same_thread_speedup",
             _peer.NAME, "speedup"),
    Compared("inline callback, foreign thread", "foreign_thread_ns", "peer_foreign_thread_ns",
             "foreign_thread_speedup", _peer.NAME, "speedup"),
    Compared("callback handed over to the thread of run()", "handed_over_ns"),
    Compared("the same, from a foreign thread", "handed_over_foreign_ns"),
)  # fmt: skip
QUICK = {"ROUNDS": 2, "WARM_UP": 1}


class Side:
    """A process that measures when it is told to. A round is many short batches of which it gives the medians: one that
    the system interrupted is an outlier then."""

    def __init__(self, python: str | Path, name: str, env: Mapping[str, str]) -> None:
        driver = testkit.folder() / "csrc" / "testkit" / "libgopher-callback-driver.so"
        self._process = subprocess.Popen(
            [str(python), str(SIDE), name, str(driver)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(env),
        )  # fmt: skip
        self.rounds: list[dict[str, float]] = []

    def round(self, calls: int, *, keep: bool = True) -> None:
        assert self._process.stdin and self._process.stdout
        print(calls, file=self._process.stdin, flush=True)
        figures = json.loads(self._process.stdout.readline() or '{"same_thread_ns": -1}')
        if min(figures.values()) < 0:
            raise RuntimeError(f"a callback was not accepted, or the process ended: {figures}")
        if keep:
            self.rounds.append(figures)

    def median(self, key: str) -> float:
        return median([figures[key] for figures in self.rounds])

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(timeout=30)


@contextmanager
def _sides() -> Iterator[tuple[Side, Side]]:
    with tempfile.TemporaryDirectory() as folder:
        library = testkit.as_vendor_library(Path(folder))
        own = {**os.environ, "GOPHER_MCP_PYTHON_LIBRARY_PATH": str(library)}
        ours = Side(sys.executable, "ours", own)
        peer = Side(_peer.python(), "peer", _peer.environment())
        try:
            yield ours, peer
        finally:
            ours.close()
            peer.close()


def measure() -> dict[str, float | None]:
    with _sides() as (ours, peer):
        note(f"{ROUNDS} rounds of each side, in turn")
        for turn in range(WARM_UP + ROUNDS):
            for side in (ours, peer):
                side.round(CALLS, keep=turn >= WARM_UP)
    figures: dict[str, float | None] = {}
    for key in ("same_thread_ns", "foreign_thread_ns"):
        figures[key] = rounded(ours.median(key))
        figures[f"peer_{key}"] = rounded(peer.median(key))
        figures[key.replace("_ns", "_speedup")] = rounded(peer.median(key) / ours.median(key))
    for key in ("handed_over_ns", "handed_over_foreign_ns"):
        figures[key] = rounded(ours.median(key))
    return figures


if __name__ == "__main__":
    raise SystemExit(main("benchmarks.callback"))
