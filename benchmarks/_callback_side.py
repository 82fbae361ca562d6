"""One side of benchmarks/callback.py, in a process of its own: `_callback_side.py ours|peer DRIVER`.

Reads a line (the number of calls in a batch) from standard input, prints a JSON line with nanoseconds a callback
(medians of the batches), until the input ends. The file stands alone, since the published package's interpreter runs
it, too. Both sides are given the same options, normalised by the package itself, and are driven by the same C code
(csrc/testkit/callback_driver.c).
"""

from __future__ import annotations

import ctypes
import json
import statistics
import sys
from collections.abc import Callable

BATCHES = 15


def accept(request: object) -> str:
    return "accept"


class Driver:
    """The C driver, called without the GIL."""

    def __init__(self, path: str) -> None:
        self._library = ctypes.CDLL(path)
        for name in ("driver_same_thread", "driver_foreign_thread"):
            function = getattr(self._library, name)
            function.restype = ctypes.c_double
            function.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64), ctypes.c_long, ctypes.c_long]

    def same_thread(self, callback: int, tokens: ctypes.Array[ctypes.c_uint64], calls: int) -> float:
        return float(self._library.driver_same_thread(callback, tokens, len(tokens), calls))

    def foreign_thread(self, callback: int, tokens: ctypes.Array[ctypes.c_uint64], calls: int) -> float:
        return float(self._library.driver_foreign_thread(callback, tokens, len(tokens), calls))

    def measure(self, callback: int, token: int, calls: int) -> dict[str, float]:
        tokens = (ctypes.c_uint64 * 1)(token)
        return {
            "same_thread_ns": self.same_thread(callback, tokens, calls),
            "foreign_thread_ns": self.foreign_thread(callback, tokens, calls),
        }


def ours(driver: Driver) -> Callable[[int], dict[str, float]]:
    """The callback that create_with_url gave to the library, and runs whose requests are handed over to the caller."""
    from gopher_mcp_python import GopherAgent
    from gopher_mcp_python.elicitation import non_blocking
    from gopher_mcp_python.ffi import _bridge

    def made(handler: Callable[[object], str]) -> GopherAgent:
        options = {"engine": "native", "elicitation": {"handler": handler}}
        return GopherAgent.create_with_url("OpenAIProvider", "model", "https://mcp.example.test/mcp", options)

    inline, handed_over = made(non_blocking(lambda request: "accept")), made(accept)

    def measure(calls: int) -> dict[str, float]:
        engine = inline._life.engine()  # the token is the bridge's own business, so there is no public way to it
        token = engine._handle.token  # type: ignore[attr-defined]
        figures = driver.measure(_bridge.trampoline_address(), token, calls)
        figures["handed_over_ns"] = float(handed_over.run(f"bench 0 {calls // 50}"))
        figures["handed_over_foreign_ns"] = float(handed_over.run(f"bench 1 {calls // 50}"))
        return figures

    return measure


def peer(driver: Driver) -> Callable[[int], dict[str, float]]:
    """The callback that the published package makes for its library."""
    from gopher_mcp_python.ffi.library import _create_elicitation_callback

    from gopher_mcp_python.elicitation import normalize_elicitation_options

    callback = _create_elicitation_callback(normalize_elicitation_options({"handler": accept}))
    address = ctypes.cast(callback, ctypes.c_void_p).value
    return lambda calls: driver.measure(address, 0, calls // 10)


def main() -> None:
    side, path = sys.argv[1:]
    measure = {"ours": ours, "peer": peer}[side](Driver(path))
    for line in sys.stdin:
        batches = [measure(int(line)) for _ in range(BATCHES)]
        medians = {key: statistics.median(batch[key] for batch in batches) for key in batches[0]}
        failed = any(min(batch.values()) < 0 for batch in batches)
        print(json.dumps(dict.fromkeys(medians, -1) if failed else medians), flush=True)


if __name__ == "__main__":
    main()
