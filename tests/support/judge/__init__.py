"""Ajv (full formats, JSON Schema 2020-12) in one long-lived Node process, as the independent judge of answers."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support import children, npm

HERE = Path(__file__).parent
AJV = Path("node_modules/ajv/dist/2020.js")


@dataclass(frozen=True)
class Verdict:
    """What Ajv says of one schema: `refused` (why it can't be compiled) or whether each answer is valid."""

    refused: str | None
    valid: tuple[bool, ...]


class Judge:
    """The Node process. `ask` takes many schemas with many answers each, so that Node is never waited for much."""

    def __init__(self) -> None:
        try:
            installed = npm.installed(HERE, "judge", AJV, what="Ajv, the judge of JSON Schema,")
        except npm.Unusable as why:
            pytest.fail(str(why), pytrace=False)
        self._process = subprocess.Popen(
            [installed.node, str(HERE / "judge.cjs"), str(installed.folder)],
            env=children.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def ask(self, cases: Sequence[tuple[Any, Sequence[Any]]]) -> list[Verdict]:
        """Ajv's verdict on each (schema, answers)."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(cases).encode() + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the judge has ended"
        return [Verdict(one.get("refused"), tuple(one.get("valid", ()))) for one in json.loads(line)]

    def close(self) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.wait(20)
        self._process.stdout.close()
