"""How long a program waits before its work begins: importing the package, and from process start to the handler.

The second is one whole program: interpreter start, import, create_with_url, run, the tool call, the server's URL
elicitation, the program's handler. The same source runs with this package (each engine) and with the published one.
The native engines ask the scripted model for the tool call (over TLS, as they only speak to their vendors' hosts);
DirectProvider needs no model, so `embedded_openai_*` shows the embedded engine with the same model and the vendor's
SDK. The embedded engine's time is the processor's, the native one's mostly waiting: measure on an idle machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

from benchmarks import _peer
from benchmarks._report import Compared, Target, main, median, note, rounded
from tests.support import children, vendor
from tests.support.scripted_llm import ScriptedModel

IMPORT_TURNS = 15
PROGRAM_TURNS = 5

TARGETS = (
    Target("import_ratio", "<=", 0.4, "import time against the published package"),
    Target("embedded_ratio", "<=", 0.6, "process start to handler, embedded engine against the published package"),
)
COMPARED = (
    Compared("import of the package", "import_ms", "peer_import_ms", "import_ratio", _peer.NAME),
    Compared("import of GopherAgent", "import_agent_ms", "peer_import_agent_ms", "import_agent_ratio", _peer.NAME),
    *(
        Compared(f"start to handler, {what}", f"{side}_handler_ms", "peer_handler_ms", f"{side}_ratio",
                 _peer.NAME)
        for side, what in (
            ("embedded", "embedded engine"),
            ("embedded_openai", "embedded engine, OpenAI's SDK"),
            ("native", "native engine"),
        )
    ),
)  # fmt: skip
QUICK = {"IMPORT_TURNS": 2, "PROGRAM_TURNS": 1}

_IMPORT = "import time; t = time.perf_counter(); import gopher_mcp_python; print(time.perf_counter() - t)"
# Names are loaded on first use here, with the import there: so the import of the name that every program needs, too.
_IMPORT_AGENT = _IMPORT.replace("import gopher_mcp_python;", "from gopher_mcp_python import GopherAgent;")
_PROGRAM = """
import sys, time
from gopher_mcp_python import GopherAgent
provider, url, query = sys.argv[1:]
def handler(request):
    print(time.monotonic(), flush=True)
    return "cancel"
options = {"elicitation": {"handler": handler}, "oauth": {"mode": "disabled"}}
agent = GopherAgent.create_with_url(provider, "scripted", url, options)
try:
    agent.run(query)
except Exception as error:
    print(repr(error), file=sys.stderr)
agent.dispose()
"""
_QUERY = "get mail profile, using get_gmail_users_get_profile"


class Side:
    """One of the things compared: an interpreter and the variables that it runs under."""

    def __init__(self, python: str | Path, env: Mapping[str, str], provider: str = "") -> None:
        self._python, self._env, self._provider = str(python), dict(env), provider
        self.times: list[float] = []

    def import_once(self, program: str = _IMPORT) -> None:
        """Seconds that the import takes in a fresh interpreter."""
        self.times.append(float(self._run("-c", program)))

    def program_once(self, url: str) -> None:
        """Seconds from the process's start to the first line of its handler (both clocks are the system's)."""
        begin = time.monotonic()
        self.times.append(float(self._run("-c", _PROGRAM, self._provider, url, _QUERY).split()[0]) - begin)

    def _run(self, *arguments: str) -> str:
        with tempfile.TemporaryDirectory() as folder:  # not the project's: `import` must find what is installed
            done = subprocess.run(
                [self._python, *arguments],
                env=self._env,
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
        if done.returncode or not done.stdout.strip():
            raise RuntimeError(f"exit code {done.returncode}: {done.stderr.strip()[-1500:]}")
        return done.stdout


def ours(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Our environment: without the project folder, unless the package is used from the source tree."""
    env = {name: value for name, value in children.environment(extra).items() if name != "PYTHONPATH"}
    if "PYTHONPATH" in os.environ:
        env["PYTHONPATH"] = os.environ["PYTHONPATH"]
    return env


def _in_turns(sides: Mapping[str, Side], turns: int, step: Callable[[Side], None]) -> dict[str, float]:
    """The medians, each side measured once a turn, so that a slow moment of the machine meets all of them."""
    for side in sides.values():
        side.times.clear()
    for turn in range(turns + 1):
        for side in sides.values():
            step(side)
            if turn == 0:
                side.times.clear()  # the first turn fills the page cache and compiles .pyc files
    return {name: median(side.times) for name, side in sides.items()}


def _imports(peer: Path) -> dict[str, float | None]:
    note(f"import, {IMPORT_TURNS} turns")
    sides = {"ours": Side(sys.executable, ours()), "peer": Side(peer, _peer.environment())}
    found = _in_turns(sides, IMPORT_TURNS, Side.import_once)
    agent = _in_turns(sides, IMPORT_TURNS, lambda side: side.import_once(_IMPORT_AGENT))
    return {
        "import_ms": rounded(found["ours"] * 1e3),
        "peer_import_ms": rounded(found["peer"] * 1e3),
        "import_ratio": rounded(found["ours"] / found["peer"]),
        "import_agent_ms": rounded(agent["ours"] * 1e3),
        "peer_import_agent_ms": rounded(agent["peer"] * 1e3),
        "import_agent_ratio": rounded(agent["ours"] / agent["peer"]),
    }


def _sides(peer: Path, model: ScriptedModel) -> dict[str, Side]:
    scripted = model.environment()
    sides = {
        "embedded": Side(sys.executable, ours({"GOPHER_MCP_ENGINE": "embedded"}), "DirectProvider"),
        "native": Side(
            sys.executable, ours({"GOPHER_MCP_ENGINE": "native", **vendor.environment(), **scripted}), "OpenAIProvider"
        ),
        "peer": Side(peer, _peer.environment(scripted), "OpenAIProvider"),
    }
    if find_spec("openai"):
        env = ours({"GOPHER_MCP_ENGINE": "embedded", **scripted})
        sides["embedded_openai"] = Side(sys.executable, env, "OpenAIProvider")
    return sides


def _programs(peer: Path) -> dict[str, float | None]:
    note(f"process start to handler, {PROGRAM_TURNS} turns")
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        model = ScriptedModel(Path(folder))
        stack.callback(model.close)
        server, line = children.start_server([sys.executable, "-m", "tests.support.mcp_server"])
        stack.callback(children.stop, server)
        sides = _sides(peer, model)
        found = _in_turns(sides, PROGRAM_TURNS, lambda side: side.program_once(line["url"]))
    figures = {f"{name}_handler_ms": rounded(seconds * 1e3) for name, seconds in found.items()}
    ratios = {f"{name}_ratio": rounded(found[name] / found["peer"]) for name in found if name != "peer"}
    return {**figures, **ratios}


def measure() -> dict[str, float | None]:
    """All figures in milliseconds, ratios against the published package."""
    peer = _peer.python()
    return {**_imports(peer), **_programs(peer)}


if __name__ == "__main__":
    raise SystemExit(main("benchmarks.startup"))
