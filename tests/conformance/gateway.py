"""Runs the server scenarios of the conformance suite through the gateway, in front of a server of the SDK.

usage: python -m tests.conformance.gateway [--direct] [SCENARIO ...]      no names: all of them

With --direct they run against that server itself, for comparison. Exit code 1 when one does not pass that passes
directly or that the gateway has to pass.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gopher_mcp_python.gateway import Gateway, read_upstream
from gopher_mcp_python.gateway.http import create_app
from gopher_mcp_python.store.core import Store
from gopher_mcp_python.store.keys import KeyRing
from gopher_mcp_python.store.memory import MemoryBackend
from tests.conformance import everything
from tests.conformance.suite import HERE, INDEX, Outcome, Scenario, Unusable, json_of, judged
from tests.support import children, npm
from tests.support.hosting import Hosted

SECONDS = 60  # for one scenario
# What a server says when the stream of a call is to be closed and fetched again (SEP-1699) does not pass an
# intermediary: the SDK's client fetches it by itself, and tells nobody.
NOT_PASSED_ON = ("server-sse-polling",)


def main(arguments: Sequence[str]) -> int:
    """Runs the named scenarios, or all. Returns the exit code."""
    begin = time.monotonic()
    names = [name for name in arguments if name != "--direct"]
    try:
        command = npm.installed(HERE, "conformance", INDEX, what="the conformance suite").command(INDEX)
        scenarios = _scenarios(command)
        unknown = [name for name in names if name not in [scenario.name for scenario in scenarios]]
        if unknown:
            raise Unusable(f"the suite has no server scenario {unknown[0]!r}")
    except Unusable as why:
        print(why, file=sys.stderr)
        return 1
    chosen = [one for one in scenarios if (one.name in names if names else one.name not in NOT_PASSED_ON)]
    with serving(direct="--direct" in arguments) as url:
        outcomes = [_told(_run(command, scenario, url)) for scenario in chosen]
    passed = sum(outcome.passed for outcome in outcomes)
    checks, failed = sum(outcome.checks for outcome in outcomes), sum(outcome.failed for outcome in outcomes)
    print(f"{passed} of {len(outcomes)} server scenarios passed; {checks - failed} of {checks} checks; "
          f"{time.monotonic() - begin:.0f} s")  # fmt: skip
    if not names:
        print(f"not run: {', '.join(NOT_PASSED_ON)} (see the module)")
    return 0 if outcomes and passed == len(outcomes) else 1


@contextmanager
def serving(*, direct: bool = False) -> Iterator[str]:
    """The URL of the gateway, or of the server behind it."""
    behind = Hosted(everything.server().streamable_http_app(), "everything")
    store = Store(MemoryBackend(), KeyRing.generate())
    try:
        if direct:
            yield f"{behind.base}/mcp"
            return
        gateway = Gateway([read_upstream(f"everything={behind.base}/mcp")], store)
        front = Hosted(create_app(gateway, [], anonymous=True), "gateway")
        try:
            yield f"{front.base}/mcp"
        finally:
            front.close()
    finally:
        behind.close()
        store.close()


def _scenarios(command: list[str]) -> list[Scenario]:
    listed = subprocess.run([*command, "list", "--server"], capture_output=True, text=True, check=False)
    found = re.findall(r"^\s*- (\S+) \[([^\]]*)\]\s*$", listed.stdout, re.M)
    if listed.returncode or not found:
        raise Unusable(f"the suite lists no scenarios (exit code {listed.returncode}): {listed.stderr[-500:].strip()}")
    return [Scenario(name, tuple(versions.split(","))) for name, versions in found]


def _run(command: list[str], scenario: Scenario, url: str) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [*command, "server", "--url", url, "--scenario", scenario.name, "-o", folder],
            env=children.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=SECONDS, check=False,
        )  # fmt: skip
        checks = json_of(Path(folder)) or []
    return judged(scenario, done, checks, "")


def _told(outcome: Outcome) -> Outcome:
    word = "pass" if outcome.passed else "FAIL"
    print(f"{word}  {outcome.scenario.name:<32} {outcome.checks} checks", flush=True)
    for line in outcome.trouble:
        print(f"        {line}", flush=True)
    return outcome


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
