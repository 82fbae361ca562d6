"""JavaScript's own regular expressions in one long-lived Node process, as the independent judge of patterns."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.node import Lines

SCRIPT = Path(__file__).with_name("regexp.cjs")


@dataclass(frozen=True)
class Verdict:
    """What Node says of a pattern: `flag` "u", "" (only without the flag) or None (no regular expression), and for each
    text whether it fits somewhere; None: Node gave up, or saw a place that is none (regexp.cjs)."""

    flag: str | None
    fits: tuple[bool | None, ...]


class RegExps(Lines):
    """The Node process. `ask` takes many patterns with many texts each."""

    def __init__(self) -> None:
        node = shutil.which("node")
        if node is None:
            pytest.fail("Node.js, the judge of patterns, is missing: apt-get install nodejs", pytrace=False)
        super().__init__(node, str(SCRIPT))

    def ask(self, cases: Sequence[tuple[str, Sequence[str]]]) -> list[Verdict]:
        """Node's verdict on each (pattern, texts)."""
        return [_verdict(one) for one in self.exchange(cases)]


def _verdict(answer: list | None) -> Verdict:
    if answer is None:
        return Verdict(None, ())
    return Verdict(answer[0], tuple(fits if isinstance(fits, bool) else None for fits in answer[1]))
