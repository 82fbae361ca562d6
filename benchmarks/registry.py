"""The whole inline callback with a million live agents in the registry against a thousand, tokens picked at random.

Every entry is an agent of the bridge with a Python side of its own, and every call goes to another one, so that the
look-up finds neither its slot nor the agent's Python side in a cache. Both sizes are measured in turn in one process.
"""

from __future__ import annotations

import ctypes
import gc
import random

from benchmarks._callback_side import Driver
from benchmarks._report import Compared, Target, main, median, note, rounded
from gopher_mcp_python.elicitation import GopherAgentElicitationOptions, non_blocking
from gopher_mcp_python.elicitor import Elicitor
from gopher_mcp_python.ffi import _bridge
from tests.support import testkit

SMALL, LARGE = 1_000, 1_000_000
# Many short rounds, each with tokens of its own: one that the system interrupted is an outlier and not the median.
CALLS = 2_000
ROUNDS = 201
WARM_UP = 5

TARGETS = (Target("registry_ratio", "<=", 1.15, "callback among 1,000,000 live entries against among 1,000"),)
COMPARED = (
    Compared(f"inline callback among {LARGE:,} live agents", "large_ns", "small_ns", "registry_ratio",
             f"the same among {SMALL:,}"),
)  # fmt: skip
QUICK = {"ROUNDS": 11}


def _handles(count: int, host: testkit.Host) -> list[_bridge.AgentHandle]:
    library = testkit.library()
    return [_bridge.AgentHandle(library, host, answer="inline") for _ in range(count)]


def _random_tokens(handles: list[_bridge.AgentHandle]) -> list[ctypes.Array[ctypes.c_uint64]]:
    """For each round, one for each call."""
    pick = random.Random(7)
    return [
        (ctypes.c_uint64 * CALLS)(*(handle.token for handle in pick.choices(handles, k=CALLS)))
        for _ in range(WARM_UP + ROUNDS)
    ]


def measure() -> dict[str, float | int | None]:
    options = GopherAgentElicitationOptions(handler=non_blocking(lambda request: "accept"))
    host = testkit.Host(Elicitor(options).inline_answer)
    gc.disable()
    small = _handles(SMALL, host)
    small_tokens = _random_tokens(small)
    note(f"making {LARGE:,} agents")
    large = _handles(LARGE, host)
    large_tokens = _random_tokens(large)
    gc.freeze()
    driver = Driver(str(testkit.folder() / "csrc" / "testkit" / "libgopher-callback-driver.so"))
    callback = _bridge.trampoline_address()
    figures: dict[int, list[float]] = {SMALL: [], LARGE: []}
    for turn in range(WARM_UP + ROUNDS):
        for size, tokens in ((SMALL, small_tokens), (LARGE, large_tokens)):
            nanoseconds = driver.same_thread(callback, tokens[turn], CALLS)
            if turn >= WARM_UP:
                figures[size].append(nanoseconds)
    live = _bridge.counts()["live_agents"]
    if live != SMALL + LARGE or min(map(min, figures.values())) < 0:
        raise RuntimeError(f"{live} agents were live, or a callback was not accepted")
    return {
        "live_agents": live,
        "small_ns": rounded(median(figures[SMALL])),
        "large_ns": rounded(median(figures[LARGE])),
        "registry_ratio": rounded(median([big / few for few, big in zip(figures[SMALL], figures[LARGE], strict=True)])),
    }


if __name__ == "__main__":
    raise SystemExit(main("benchmarks.registry"))
