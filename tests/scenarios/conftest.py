"""The function that runs a scenario in a child process."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support import children
from tests.support.variants import Variant


@dataclass(frozen=True)
class Played:
    """A scenario's facts and what its process wrote to stderr."""

    facts: dict[str, Any]
    err: str
    seconds: float

    def __getitem__(self, name: str) -> Any:
        return self.facts[name]


@pytest.fixture
def play(environment_for: Callable[[Variant], dict[str, str]]) -> Callable[..., Played]:
    """Plays a scenario: `play("answer", variant, server.url, query=..., env=...)`."""

    def run(
        name: str, variant: Variant, url: str, *, env: dict[str, str] | None = None, limit: float = 90, **given: Any
    ) -> Played:
        argument = {"scenario": name, "engine": variant.engine, "provider": variant.provider, "url": url, **given}
        argv = [sys.executable, "-W", "error", "-m", "tests.scenarios.driver", json.dumps(argument)]
        ended = children.run(argv, env={**environment_for(variant), **(env or {})}, timeout=limit).check()
        return Played(json.loads(ended.out.splitlines()[-1]), ended.err, ended.seconds)

    return run
