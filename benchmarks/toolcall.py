"""One tool call through the embedded engine against the raw SDK client, in turns, in one process, on one real server.

Both speak the same protocol version to the same server process over streamable HTTP. The engine's side is the whole of
`agent.run("plain")` with DirectProvider: the caller's thread, the engine's event loop, the call, the text.
"""

from __future__ import annotations

import asyncio
import contextlib
import time

from benchmarks._report import Compared, Target, main, median, note, rounded
from tests.support.servers import McpServer

TURNS = 200
ROUNDS = 5
WARM_UP = 20

TARGETS = (Target("tool_call_ratio", "<=", 1.10, "one tool call, embedded engine against the raw SDK client"),)
COMPARED = (
    Compared("tool call, embedded engine", "engine_us", "raw_client_us", "tool_call_ratio", "the SDK's client"),
)
QUICK = {"TURNS": 20, "ROUNDS": 2}


async def _round(agent, client) -> tuple[float, float]:  # type: ignore[no-untyped-def]
    """Medians of one round, in seconds: the engine's call, the client's call."""
    through_engine, raw = [], []
    for turn in range(TURNS + WARM_UP):
        begin = time.perf_counter()
        result = await client.call_tool("plain", {})
        between = time.perf_counter()
        text = agent.run("plain")
        end = time.perf_counter()
        if result.is_error or "plain: ok" not in text:
            raise RuntimeError(f"a call failed: {text!r}")
        if turn >= WARM_UP:
            raw.append(between - begin)
            through_engine.append(end - between)
    return median(through_engine), median(raw)


async def _measure(url: str) -> dict[str, float | str | None]:
    from mcp import Client

    from gopher_mcp_python import GopherAgent

    rounds = []
    with GopherAgent.create_with_url("DirectProvider", "direct", url, {"engine": "embedded"}) as agent:
        async with Client(url, mode="legacy") as client:
            version = str(client.protocol_version)
            for turn in range(ROUNDS):
                note(f"round {turn + 1} of {ROUNDS}: {TURNS} calls each")
                rounds.append(await _round(agent, client))
    return {
        "protocol": version,
        "engine_us": rounded(median([engine for engine, _ in rounds]) * 1e6),
        "raw_client_us": rounded(median([raw for _, raw in rounds]) * 1e6),
        "tool_call_ratio": rounded(median([engine / raw for engine, raw in rounds])),
    }


def measure() -> dict[str, float | str | None]:
    """Microseconds a call (median of the rounds' medians) and the median of the rounds' ratios."""
    with contextlib.closing(McpServer("--era", "legacy")) as server:
        return asyncio.run(_measure(server.url))


if __name__ == "__main__":
    raise SystemExit(main("benchmarks.toolcall"))
