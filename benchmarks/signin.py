"""Signing in to a protected MCP server: from process start to the first tool result, with and without a stored token.

One whole program, the same source with this package (each engine) and with the published one: interpreter start,
import, create_with_url, run, the tool's text. Cold: an empty token store, so discovery, registration, the authorization
page and the token request come in between; the browser is a script that follows the redirects at once, so no person's
time is in it. Warm: the token store that the same side's cold start has left. The store is the program's own, a JSON
file. Native engines ask the scripted model for the tool call, DirectProvider needs none.

What the published package can do decides about the provider and the server:

- It registers at every start and looks for a token of the client that it got, so a stored token is found only where a
  provider gives every registration the same client id. This one does.
- With a server that has a stream of its own for each session, as those of the official SDK do, it waits there 5 s for
  an elicitation before it begins; its library waits 1.2 s more. The `bare_*` figures are those of the same server
  without such a stream (it answers 405, as the specification allows), where it waits for nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import _peer
from benchmarks._report import Compared, Target, main, median, note, rounded
from benchmarks.startup import ours
from tests.support import children, vendor
from tests.support.scripted_llm import ScriptedModel

TURNS = 3  # most of a turn is waiting that does not vary

TARGETS = (
    Target("embedded_warm_ratio", "<=", 0.6, "process start to tool result with a stored token, against the published"),
    Target("embedded_cold_ratio", "<=", 1.0, "the same with a sign-in, without the person's time"),
)
COMPARED = tuple(
    Compared(f"{what}, {engine} engine{where}", f"{prefix}{engine}_{kind}_ms", f"{prefix}peer_{kind}_ms",
             f"{prefix}{engine}_{kind}_ratio", _peer.NAME)
    for prefix, where in (("", ""), ("bare_", ", no streams"))
    for kind, what in (("warm", "result, stored token"), ("cold", "result, sign-in"))
    for engine in ("embedded", "native")
)  # fmt: skip
QUICK = {"TURNS": 1}

PROGRAM = """
import json, sys, time
from gopher_mcp_python import GopherAgent, GopherAgentTokenRecord
provider, url, query, path = sys.argv[1:]
names = ("access_token", "token_type", "refresh_token", "expires_at", "scope")

class Store:
    def entries(self):
        try:
            with open(path) as file:
                return json.load(file)
        except FileNotFoundError:
            return {}

    def keep(self, entries):
        with open(path, "w") as file:
            json.dump(entries, file)

    async def get(self, key):
        entry = self.entries().get(key)
        return None if entry is None else GopherAgentTokenRecord(**entry)

    async def set(self, key, token):
        self.keep({**self.entries(), key: {name: getattr(token, name) for name in names}})

    async def delete(self, key):
        self.keep({known: entry for known, entry in self.entries().items() if known != key})

agent = GopherAgent.create_with_url(provider, "scripted", url, {"oauth": {"token_store": Store()}})
text = agent.run(query)
print(json.dumps({"at": time.monotonic(), "text": text}), flush=True)
agent.dispose()
"""
# Isolated and without site-packages: the browser's own start is no part of what is compared.
_BROWSER = """#!{python} -IS
import sys, urllib.request
urllib.request.build_opener(urllib.request.ProxyHandler({{}})).open(sys.argv[-1], timeout=30).read()
"""
_SUBJECT = "ada"


@dataclass
class Side:
    """One of the things compared: an interpreter, the variables that it runs under, who calls the tool."""

    python: str
    env: Mapping[str, str]
    provider: str
    times: dict[str, list[float]] = field(default_factory=dict)

    def run(self, server: Server, store: Path) -> float:
        """Seconds from the process's start to the tool's result (both clocks are the system's)."""
        begin = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:  # not the project's: `import` must find what is installed
            done = subprocess.run(
                [self.python, "-c", PROGRAM, self.provider, server.url, "whoami", str(store)],
                env=dict(self.env), cwd=folder, capture_output=True, text=True, timeout=120, check=False,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
        if done.returncode or _SUBJECT not in done.stdout:
            raise RuntimeError(f"exit code {done.returncode}: {done.stderr.strip()[-1500:]}")
        told = json.loads(done.stdout.splitlines()[-1])
        return float(told["at"]) - begin

    def turn(self, name: str, server: Server, keep: bool) -> None:
        """A cold start and a warm one after it."""
        with tempfile.TemporaryDirectory() as folder:
            store = Path(folder) / "tokens.json"
            before = server.sign_ins()
            cold = self.run(server, store)
            between = server.sign_ins()
            warm = self.run(server, store)
            if (between - before, server.sign_ins() - between) != (1, 0):
                raise RuntimeError(f"{name}: a person was sent to the provider at the wrong moment")
        if keep:
            self.times.setdefault(f"{server.prefix}{name}_cold", []).append(cold)
            self.times.setdefault(f"{server.prefix}{name}_warm", []).append(warm)


class Server:
    """A protected server and its provider, in a process of their own."""

    def __init__(self, prefix: str, *settings: str) -> None:
        self.prefix = prefix
        argv = [sys.executable, "-m", "tests.support.idp", "--set", 'registered_id="benchmark"', *settings]
        self._process, line = children.start_server(argv)
        self.url, self._log = line["url"], line["log"]

    def sign_ins(self) -> int:
        """How often somebody came to the authorization page."""
        with urllib.request.urlopen(self._log) as reply:
            log: list[dict[str, Any]] = json.load(reply)
        return sum(entry["event"] == "authorize" for entry in log)

    def close(self) -> None:
        children.stop(self._process)


def _browser(folder: Path) -> Path:
    file = folder / "browser"
    file.write_text(_BROWSER.format(python=sys.executable))
    file.chmod(0o755)
    return file


def _sides(peer: Path, model: ScriptedModel, browser: Path) -> dict[str, Side]:
    named = {"BROWSER": str(browser)}
    scripted = {**model.environment(), **named}
    embedded = ours({"GOPHER_MCP_ENGINE": "embedded", **named})
    native = ours({"GOPHER_MCP_ENGINE": "native", **vendor.environment(), **scripted})
    return {
        "embedded": Side(sys.executable, embedded, "DirectProvider"),
        "native": Side(sys.executable, native, "OpenAIProvider"),
        "peer": Side(str(peer), _peer.environment(scripted), "OpenAIProvider"),
    }


def measure() -> dict[str, float | None]:
    """All figures in milliseconds, ratios against the published package at the same server."""
    peer = _peer.python()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        model = ScriptedModel(folder)
        stack.callback(model.close)
        servers = [Server(""), Server("bare_", "--set-servers", "stream=false")]
        for server in servers:
            stack.callback(server.close)
        sides = _sides(peer, model, _browser(folder))
        note(f"process start to tool result, cold and warm, {TURNS} turns at each of two servers")
        for turn in range(TURNS + 1):  # the first one fills the page cache and compiles .pyc files
            for server in servers:
                for name, side in sides.items():
                    side.turn(name, server, keep=turn > 0)
    found = {key: median(times) for side in sides.values() for key, times in side.times.items()}
    figures: dict[str, float | None] = {}
    for server in servers:
        for kind in ("warm", "cold"):
            for name in sides:
                figures[f"{server.prefix}{name}_{kind}_ms"] = rounded(found[f"{server.prefix}{name}_{kind}"] * 1e3)
            for name in ("embedded", "native"):
                key = f"{server.prefix}{name}_{kind}"
                figures[f"{key}_ratio"] = rounded(found[key] / found[f"{server.prefix}peer_{kind}"])
    return figures


if __name__ == "__main__":
    raise SystemExit(main("benchmarks.signin"))
