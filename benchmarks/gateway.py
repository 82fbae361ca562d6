"""What the gateway adds to a tool call: against no gateway, and against FastMCP's proxy, in one run.

A client of the SDK calls a tool of one server in turns: directly, and through the gateway; then directly, and through
FastMCP's proxy (which opens and ends a session of the server for each call, and so would be in the way of the others).
Server, gateways and proxy are processes of their own. The gateway lists the server's tools before every call to judge
it by what they are now; where a rule allows a tool by name it need not.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcp.client.client import Client

from benchmarks._report import Compared, Target, main, median, note, rounded
from tests.support import children, frameworks
from tests.support.vendor import Unavailable

TURNS = 40
ROUNDS = 5
AT_ONCE = 60
FASTMCP = ["fastmcp==4.2.3"]

TARGETS = (
    Target("allowed_overhead_ratio", "<=", 1.0, "what the gateway adds to a call of an allowed tool, in direct calls"),
    Target("judged_overhead_ratio", "<=", 2.0, "the same, for a tool that is judged on each call", 1.0),
    Target("fastmcp_to_allowed", ">=", 8.0, "what FastMCP's proxy adds, against the gateway (allowed tool)", 15.0),
    Target("fastmcp_to_judged", ">=", 3.0, "the same, for a tool that is judged on each call", 15.0),
    Target("replicas_ratio", "<=", 1.2, f"{AT_ONCE} calls at once, two gateways against one"),
)
COMPARED = (
    Compared("tool call through the gateway, allowed by name", "allowed_ms", "direct_ms", "allowed_overhead_ratio",
             "no gateway", "added"),
    Compared("tool call through the gateway, judged each time", "judged_ms", "direct_ms", "judged_overhead_ratio",
             "no gateway", "added"),
    Compared("what the gateway adds to a call, allowed by name", "allowed_overhead_ratio", "fastmcp_overhead_ratio",
             "fastmcp_to_allowed", "FastMCP's proxy", "speedup", "direct calls"),
    Compared("what the gateway adds to a call, judged each time", "judged_overhead_ratio", "fastmcp_overhead_ratio",
             "fastmcp_to_judged", "FastMCP's proxy", "speedup", "direct calls"),
    Compared(f"{AT_ONCE} calls at once, two gateways", "two_gateways_calls_per_s", "one_gateway_calls_per_s",
             "replicas_ratio", "one gateway", "share", "calls a second"),
)  # fmt: skip
QUICK = {"TURNS": 5, "ROUNDS": 2}

# What servers log about each session says nothing here.
_SERVER = """
import logging
logging.disable(logging.INFO)
import mcp_types as types
from mcp.server.mcpserver import MCPServer
server = MCPServer("up")
@server.tool(annotations=types.ToolAnnotations(destructive_hint=False))
def echo(text: str) -> str:
    return text
from tests.support.gateways import _serve
_serve(server.streamable_http_app(), 0)
"""
_GATEWAY = """
import logging, sys
logging.disable(logging.INFO)
from gopher_mcp_python.gateway import Gateway, Rules, read_upstream
from gopher_mcp_python.gateway.http import create_app
from gopher_mcp_python.serve.opening import open_store
from tests.support.gateways import _serve
url, spec, keys, *allow = sys.argv[1:]
gateway = Gateway([read_upstream("up=" + url)], open_store(spec, keys), rules=Rules(allow=tuple(allow)))
_serve(create_app(gateway, [], anonymous=True), 0)
"""
_PROXY = """
import json, logging, socket, sys
logging.disable(logging.INFO)
import uvicorn
from fastmcp.server import create_proxy
listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # as `bind` of the other side does it
listener.bind(("127.0.0.1", 0))
listener.listen()
print(json.dumps({"port": listener.getsockname()[1]}), flush=True)
app = create_proxy(sys.argv[1], name="proxy").http_app(path="/mcp")
uvicorn.Server(uvicorn.Config(app, log_level="critical")).run(sockets=[listener])
"""


@contextlib.contextmanager
def _process(python: str, code: str, *arguments: str) -> Iterator[str]:
    """A server, and its URL."""
    process, told = children.start_server([python, "-c", code, *arguments])
    try:
        yield f"http://127.0.0.1:{told['port']}/mcp"
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def _fastmcp() -> str | None:
    """The interpreter with FastMCP; None where it can't be had."""
    frameworks.WANTED.setdefault("fastmcp-proxy", FASTMCP)
    try:
        return str(frameworks.python("fastmcp-proxy"))
    except (AssertionError, Unavailable, OSError) as why:
        note(f"FastMCP can't be had: {str(why)[-200:]}")
        return None


async def _call(client: Client) -> float:
    begin = time.perf_counter()
    result = await client.call_tool("echo", {"text": "x"})
    spent = time.perf_counter() - begin
    assert not result.is_error, result
    return spent


async def _in_turns(clients: dict[str, Client]) -> dict[str, float]:
    """Medians in seconds; each turn calls through every way, the order changes from turn to turn."""
    figures: dict[str, list[float]] = {name: [] for name in clients}
    names = list(clients)
    for turn in range(TURNS):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            figures[name].append(await _call(clients[name]))
    return {name: median(values) for name, values in figures.items()}


async def _at_once(clients: list[Client]) -> float:
    begin = time.perf_counter()
    await asyncio.gather(*(_call(clients[n % len(clients)]) for n in range(AT_ONCE)))
    return time.perf_counter() - begin


async def _measure(urls: dict[str, str]) -> dict[str, float | str | None]:
    async with contextlib.AsyncExitStack() as stack:
        clients: dict[str, Client] = {}
        for name, url in urls.items():
            clients[name] = await stack.enter_async_context(Client(url, mode="legacy"))
            await clients[name].list_tools()
            for _ in range(5):
                await _call(clients[name])
        replica, fastmcp = clients.pop("replica"), clients.pop("fastmcp", None)
        rounds, against = [], []
        for number in range(ROUNDS):
            note(f"round {number + 1} of {ROUNDS}")
            rounds.append(await _in_turns(clients))
            if fastmcp is not None:
                against.append(await _in_turns({"direct": clients["direct"], "fastmcp": fastmcp}))
        figures: dict[str, float | str | None] = {
            f"{name}_ms": rounded(median([one[name] for one in rounds]) * 1e3) for name in clients
        }
        added = {name: median([one[name] / one["direct"] - 1 for one in rounds]) for name in ("allowed", "judged")}
        figures |= {f"{name}_overhead_ratio": rounded(value) for name, value in added.items()}
        figures |= {"fastmcp_ms": None, "fastmcp_overhead_ratio": None, "fastmcp_to_allowed": None}
        figures["fastmcp_to_judged"] = None
        if against:
            theirs = median([one["fastmcp"] / one["direct"] - 1 for one in against])
            figures["fastmcp_ms"] = rounded(median([one["fastmcp"] for one in against]) * 1e3)
            figures["fastmcp_overhead_ratio"] = rounded(theirs)
            figures |= {f"fastmcp_to_{name}": rounded(theirs / value) for name, value in added.items()}
        pairs = [
            (await _at_once([clients["judged"]]), await _at_once([clients["judged"], replica])) for _ in range(ROUNDS)
        ]
        figures["one_gateway_calls_per_s"] = rounded(median([AT_ONCE / one for one, _ in pairs]))
        figures["two_gateways_calls_per_s"] = rounded(median([AT_ONCE / two for _, two in pairs]))
        figures["replicas_ratio"] = rounded(median([two / one for one, two in pairs]))
    return figures


def measure() -> dict[str, float | str | None]:
    """Milliseconds for a call (median of the rounds' medians), and the medians of the rounds' ratios."""
    fastmcp = _fastmcp()
    with contextlib.ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        spec, keys = f"sqlite:{Path(folder) / 'store.db'}", str(Path(folder) / "keys")
        direct = stack.enter_context(_process(sys.executable, _SERVER))
        urls: dict[str, Any] = {"direct": direct}
        for name, allow in (("judged", []), ("allowed", ["up:echo"]), ("replica", [])):
            urls[name] = stack.enter_context(_process(sys.executable, _GATEWAY, direct, spec, keys, *allow))
        if fastmcp is not None:
            urls["fastmcp"] = stack.enter_context(_process(fastmcp, _PROXY, direct))
        return asyncio.run(_measure(urls))


if __name__ == "__main__":
    raise SystemExit(main("benchmarks.gateway"))
