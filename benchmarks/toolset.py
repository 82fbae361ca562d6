"""McpToolset against the raw SDK client: a tool call, an elicitation round trip, 100 calls at once.

In turns, in one process and one event loop, on one real server over streamable HTTP, at the same protocol version. Both
clients answer the same form with the same content, from an async handler; the toolset checks it against the form first.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Any

from benchmarks._report import Compared, Target, main, median, note, rounded
from tests.support.servers import McpServer

TURNS = 100
ROUNDS = 5
AT_ONCE = 100
CONTENT = {"reason": "audit"}

TARGETS = (
    Target("call_ratio", "<=", 1.10, "one tool call, McpToolset against the raw SDK client"),
    Target("elicitation_ratio", "<=", 1.10, "one tool call that asks a form, the same"),
    Target("parallel_ratio", "<=", 1.10, f"{AT_ONCE} calls at once, the same"),
)
COMPARED = tuple(
    Compared(what, f"{kind}_toolset_us", f"{kind}_raw_client_us", f"{kind}_ratio", "the SDK's client")
    for kind, what in (
        ("call", "tool call, McpToolset"),
        ("elicitation", "tool call that asks a form, McpToolset"),
        ("parallel", f"{AT_ONCE} tool calls at once, McpToolset"),
    )
)
QUICK = {"TURNS": 10, "ROUNDS": 2}
Work = Callable[[], Awaitable[Any]]


async def _seconds(work: Work) -> float:
    begin = time.perf_counter()
    await work()
    return time.perf_counter() - begin


async def _in_turns(ours: Work, raw: Work, turns: int) -> tuple[float, float]:
    """Medians in seconds; each turn runs both, the order changes from turn to turn."""
    figures: dict[Work, list[float]] = {ours: [], raw: []}
    warm_up = max(1, turns // 10)
    for turn in range(turns + warm_up):
        for work in (ours, raw) if turn % 2 else (raw, ours):
            spent = await _seconds(work)
            if turn >= warm_up:
                figures[work].append(spent)
    return median(figures[ours]), median(figures[raw])


def _checked(text: str, wanted: str) -> None:
    if wanted not in text:
        raise RuntimeError(f"a call failed: {text!r}")


async def _measure(url: str) -> dict[str, float | str | None]:
    import mcp_types as types
    from mcp import Client

    from gopher_mcp_python import GopherAgentElicitationResponse, McpToolset

    async def handler(request: Any) -> GopherAgentElicitationResponse:
        return GopherAgentElicitationResponse("accept", CONTENT)

    async def callback(context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content=CONTENT)

    async with (
        McpToolset(url, elicitation_handler=handler, oauth=False) as toolset,
        Client(url, mode="legacy", elicitation_callback=callback) as client,
    ):

        def both(tool: str, wanted: str) -> tuple[Work, Work]:
            async def ours() -> None:
                _checked(str((await toolset.call_tool(tool))["output"]), wanted)

            async def raw() -> None:
                _checked((await client.call_tool(tool, {})).content[0].text, wanted)  # type: ignore[union-attr]

            return ours, raw

        def at_once(work: Work) -> Work:
            async def many() -> None:
                await asyncio.gather(*(work() for _ in range(AT_ONCE)))

            return many

        plain, asking = both("plain", "plain: ok"), both("form_tool", "audit")
        kinds: dict[str, tuple[Work, Work, int]] = {
            "call": (*plain, TURNS),
            "elicitation": (*asking, TURNS),
            "parallel": (at_once(plain[0]), at_once(plain[1]), 4),
        }
        figures: dict[str, float | str | None] = {"protocol": str(client.protocol_version)}
        for kind, (ours, raw, turns) in kinds.items():
            note(f"{kind}: {ROUNDS} rounds of {turns} turns")
            rounds = [await _in_turns(ours, raw, turns) for _ in range(ROUNDS)]
            figures[f"{kind}_toolset_us"] = rounded(median([own for own, _ in rounds]) * 1e6)
            figures[f"{kind}_raw_client_us"] = rounded(median([theirs for _, theirs in rounds]) * 1e6)
            figures[f"{kind}_ratio"] = rounded(median([own / theirs for own, theirs in rounds]))
    return figures


def measure() -> dict[str, float | str | None]:
    """Microseconds (median of the rounds' medians) and the median of the rounds' ratios."""
    with contextlib.closing(McpServer("--era", "legacy")) as server:
        return asyncio.run(_measure(server.url))


if __name__ == "__main__":
    raise SystemExit(main("benchmarks.toolset"))
