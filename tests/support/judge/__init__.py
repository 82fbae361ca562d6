"""Ajv (full formats, JSON Schema 2020-12) in one long-lived Node process, as the independent judge of answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support import npm
from tests.support.node import Lines

HERE = Path(__file__).parent
AJV = Path("node_modules/ajv/dist/2020.js")


@dataclass(frozen=True)
class Verdict:
    """What Ajv says of one schema: `refused` (why it can't be compiled) or whether each answer is valid."""

    refused: str | None
    valid: tuple[bool, ...]


class Judge(Lines):
    """The Node process. `ask` takes many schemas with many answers each."""

    def __init__(self) -> None:
        try:
            installed = npm.installed(HERE, "judge", AJV, what="Ajv, the judge of JSON Schema,")
        except npm.Unusable as why:
            pytest.fail(str(why), pytrace=False)
        super().__init__(installed.node, str(HERE / "judge.cjs"), str(installed.folder))

    def ask(self, cases: Sequence[tuple[Any, Sequence[Any]]]) -> list[Verdict]:
        """Ajv's verdict on each (schema, answers)."""
        return [Verdict(one.get("refused"), tuple(one.get("valid", ()))) for one in self.exchange(cases)]
