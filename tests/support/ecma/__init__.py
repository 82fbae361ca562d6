"""JavaScript's own regular expressions in one long-lived Node process, as the independent judge of patterns."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support import children

SCRIPT = Path(__file__).with_name("regexp.cjs")


@dataclass(frozen=True)
class Verdict:
    """What Node says of a pattern: `flag` "u", "" (only without the flag) or None (no regular expression), and for each
    text whether it fits somewhere; None: Node gave up, or saw a place that is none (regexp.cjs)."""

    flag: str | None
    fits: tuple[bool | None, ...]


class RegExps:
    """The Node process. `ask` takes many patterns with many texts each, so that Node is never waited for much."""

    def __init__(self) -> None:
        node = shutil.which("node")
        if node is None:
            pytest.fail("Node.js, the judge of patterns, is missing: apt-get install nodejs", pytrace=False)
        self._process = subprocess.Popen(
            [node, str(SCRIPT)], env=children.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def ask(self, cases: Sequence[tuple[str, Sequence[str]]]) -> list[Verdict]:
        """Node's verdict on each (pattern, texts)."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(cases).encode() + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "Node has ended"
        return [_verdict(one) for one in json.loads(line)]

    def close(self) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.wait(20)
        self._process.stdout.close()


def _verdict(answer: list | None) -> Verdict:
    if answer is None:
        return Verdict(None, ())
    return Verdict(answer[0], tuple(fits if isinstance(fits, bool) else None for fits in answer[1]))
