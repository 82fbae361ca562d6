"""The suite as a command: installed once by npm, asked for its scenarios, run for one of them.

It is installed in the very versions of package-lock.json (see tests/support/npm.py).
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support import children, npm
from tests.support.npm import Unusable

HERE = Path(__file__).parent
INDEX = Path("node_modules/@modelcontextprotocol/conformance/dist/index.js")
CLIENT_MS = 30_000  # for one scenario; the suite ends a client that takes longer
LAST_LINES, LONGEST_LINE = 15, 400  # of the client's output, shown for a scenario that did not pass
# The suite cuts this at spaces and hands it to a shell, so the interpreter's path, which may hold some, is a variable.
# A warning of the client is an error.
CLIENT = '"$CONFORMANCE_PYTHON" -W error -m tests.conformance.client'
# What the suite's servers hand out or take as proof: none of it may come out of the client again.
SECRETS = ("test-auth-code", "test-token", "cc-token", "test-client-secret", "test-secret-", "pre-registered-secret",
           "conformance-test-secret", "conformance-test-xaa-secret", "PRIVATE KEY")  # fmt: skip
# A JWT. Its first three letters alone also come in what is random and public, a state or a code challenge.
_JWT = re.compile(r"eyJ[\w-]{8,}\.[\w-]+\.")


@dataclass(frozen=True)
class Scenario:
    """One scenario, and the versions of the specification that it belongs to ("draft" and "extension" are two)."""

    name: str
    versions: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """How a scenario went. `trouble` says why it did not pass, a line each; empty: it passed."""

    scenario: Scenario
    checks: int
    failed: int
    trouble: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return not self.trouble


class Suite:
    """The suite's command line."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)

    def scenarios(self) -> list[Scenario]:
        """All client scenarios, in the suite's order. Raises Unusable."""
        done = self._run(["list", "--client"])
        found = re.findall(r"^\s*- (\S+) \[([^\]]*)\]\s*$", done.stdout, re.M)
        if done.returncode or not found:
            raise Unusable(f"the suite lists no scenarios (exit code {done.returncode}): {done.stderr[-500:].strip()}")
        return [Scenario(name, tuple(versions.split(","))) for name, versions in found]

    def run(self, scenario: Scenario) -> Outcome:
        """Runs one scenario with this package's client."""
        with tempfile.TemporaryDirectory() as folder:
            arguments = ["--command", CLIENT, "--scenario", scenario.name, "--timeout", str(CLIENT_MS), "-o", folder]
            done = self._run(["client", *arguments])
            checks = json_of(Path(folder)) or []
            output = "".join(file.read_text() for file in sorted(Path(folder).rglob("std*.txt"), reverse=True))
        return judged(scenario, done, checks, output)

    def _run(self, arguments: list[str]) -> subprocess.CompletedProcess[str]:
        ours = {"GOPHER_MCP_TOKEN_STORE": "memory", "GOPHER_MCP_OAUTH_DEBUG": "1"}
        environment = children.environment({"CONFORMANCE_PYTHON": sys.executable, **ours})
        return subprocess.run(
            [*self._command, *arguments], cwd=children.ROOT, env=environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, errors="replace", timeout=3 * CLIENT_MS / 1000, check=False,
        )  # fmt: skip


def json_of(folder: Path) -> list[dict[str, str]] | None:
    for file in folder.rglob("checks.json"):
        loaded: list[dict[str, str]] = json.loads(file.read_text())
        return loaded
    return None


def judged(
    scenario: Scenario, done: subprocess.CompletedProcess[str], checks: list[dict[str, str]], output: str
) -> Outcome:
    """The suite's own verdict (its exit code: warnings fail too, and a client's failure where it must succeed), and two
    things more: something was checked, and the client told no secrets."""
    bad = [check for check in checks if check["status"] in ("FAILURE", "WARNING")]
    good = sum(check["status"] == "SUCCESS" for check in checks)
    trouble = [f"{check['id']}: {check.get('errorMessage') or check['description']}" for check in bad]
    if not good:
        trouble.append("nothing was checked")
    if done.returncode and not bad:
        trouble.append(f"the suite ended with exit code {done.returncode}")
    if trouble:
        trouble += [f"client: {line[:LONGEST_LINE]}" for line in output.splitlines()[-LAST_LINES:]]
    trouble += [f"the client's output holds a secret ({secret})" for secret in SECRETS if secret in output]
    trouble += ["the client's output holds a secret (a JWT)"] * bool(_JWT.search(output))
    return Outcome(scenario, good + len(bad), len(bad), tuple(trouble))


def installed() -> Suite:
    """The suite, installed first where it is not. Raises Unusable."""
    return Suite(npm.installed(HERE, "conformance", INDEX, what="the conformance suite").command(INDEX))
